from hypothesis import given
from hypothesis import strategies as st

from edgespec.text.stops import StopFilter


def run(parts, stops):
    stop_filter = StopFilter(stops)
    texts = [stop_filter.push(part) for part in parts]
    return texts, stop_filter.finish(), stop_filter.stopped


def test_a_stop_string_over_many_parts_lets_nothing_out():
    assert run(["DEF", "G", "HI", "J"], ["DEFGHIJ"]) == (["", "", "", ""], "", True)


def test_the_beginning_of_a_stop_string_comes_out_at_the_end():
    assert run(["DEF"], ["DEFGHIJ"]) == ([""], "DEF", False)


def test_text_that_cannot_be_a_stop_string_is_not_withheld():
    assert run(["abc", "D", "x"], ["DEF"])[0] == ["abc", "", "Dx"]


def test_only_the_possible_end_is_withheld():
    assert run(["aaab", "aab", "c"], ["aabc"])[0] == ["a", "aab", ""]


def test_text_after_the_stop_is_dropped():
    assert run(["one STOP two", "three"], ["STOP"]) == (["one ", ""], "", True)


def test_the_stop_that_begins_first_wins():
    assert run(["xabc", "d"], ["bc", "abcd"]) == (["x", ""], "", True)
    assert run(["xabc", "e"], ["bc", "abcd"]) == (["x", "a"], "", True)
    assert run(["xabc"], ["bc", "abcd"]) == (["x"], "a", True)


def test_without_stops_or_with_empty_ones_everything_passes():
    assert run(["a", "b"], []) == (["a", "b"], "", False)
    assert run(["a", "b"], [""]) == (["a", "b"], "", False)


letters = st.text("ab", max_size=4)


def naive(text, stops):
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]


@given(st.lists(letters, max_size=12), st.lists(letters.filter(bool), max_size=3))
def test_streamed_text_is_the_whole_text_cut_at_its_first_stop(parts, stops):
    texts, tail, stopped = run(parts, stops)
    whole = "".join(parts)
    assert "".join(texts) + tail == naive(whole, stops)
    assert stopped == any(stop in whole for stop in stops)


@given(st.lists(letters, max_size=12), st.lists(letters.filter(bool), min_size=1, max_size=3))
def test_withheld_text_is_always_the_beginning_of_a_stop(parts, stops):
    stop_filter = StopFilter(stops)
    seen = ""
    for part in parts:
        seen += part
        stop_filter.push(part)
        if stop_filter.stopped:
            return
        held = seen[stop_filter.passed :]
        assert held == "" or any(stop.startswith(held) and stop != held for stop in stops)
