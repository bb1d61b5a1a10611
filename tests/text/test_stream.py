import time

from hypothesis import given
from hypothesis import strategies as st

from edgespec.text.stream import TokenStream
from edgespec.text.table import TableVocabulary
from edgespec.text.thinking import HARMONY, ThinkingTags

TAGS = ThinkingTags("<think>", "</think>")


def run(pieces, control=(), **options):
    """Texts released after each token, after the end, and the stream."""
    pieces = [piece if isinstance(piece, bytes) else piece.encode() for piece in pieces]
    stream = TokenStream(TableVocabulary(pieces, control=control), **options)
    steps = [stream.push(token, "target", 100 + token) for token in range(len(pieces))]
    return steps, stream.finish(), stream


def texts(steps):
    return [[piece.text for piece in step] for step in steps]


def by_kind(steps, tail):
    pieces = [piece for step in steps for piece in step] + tail
    return tuple("".join(p.text for p in pieces if p.kind == kind) for kind in ("thinking", "answer"))


def test_every_token_gives_one_piece_with_its_source_and_position():
    stream = TokenStream(TableVocabulary([b"a", b"b"]))
    (first,) = stream.push(0, "target", 7)
    (second,) = stream.push(1, "draft", 8)
    assert (first.token, first.text, first.source, first.position, first.kind) == (
        0,
        "a",
        "target",
        7,
        "answer",
    )
    assert (second.token, second.text, second.source, second.position) == (1, "b", "draft", 8)
    assert stream.finish() == []
    assert stream.released == 2


def test_tokens_wait_while_they_may_be_a_stop():
    steps, tail, stream = run(["a", "DE", "F", "x"], stops=["DEFG"])
    assert texts(steps) == [["a"], [], [], ["DE", "F", "x"]]
    assert tail == []
    assert not stream.stopped


def test_a_stop_over_many_tokens_releases_nothing():
    steps, tail, stream = run(["DEF", "G", "HI", "J", "K"], stops=["DEFGHIJ"])
    assert texts(steps) == [[]] * 5
    assert tail == []
    assert stream.stopped
    assert stream.released == 0


def test_a_possible_stop_at_the_end_is_released():
    steps, tail, _ = run(["DEF"], stops=["DEFGHIJ"])
    assert texts(steps) == [[]]
    assert [piece.text for piece in tail] == ["DEF"]


def test_a_token_partly_before_the_stop_keeps_that_part():
    steps, tail, stream = run(["x", "yDE", "FGz", "w"], stops=["DEFG"])
    assert texts(steps) == [["x"], [], ["y"], []]
    assert tail == []
    assert stream.released == 2


def test_a_stop_that_only_the_end_decides():
    steps, tail, stream = run(["xab", "c"], stops=["bc", "abcd"])
    assert texts(steps) == [[], []]
    assert [piece.text for piece in tail] == ["xa"]
    assert stream.stopped


def test_tokens_of_a_split_character_come_together():
    steps, tail, _ = run([b"\xe6\xad", b"\xaa", "b"])
    assert texts(steps) == [[], ["", "歪"], ["b"]]
    assert tail == []


def test_an_incomplete_tail_is_one_replacement_character_of_its_last_token():
    steps, tail, stream = run(["a", b"\xf0", b"\x9f"])
    assert texts(steps) == [["a"], [], []]
    assert [piece.text for piece in tail] == ["", "\ufffd"]
    assert stream.released == 3


def test_bytes_of_a_stop_character_are_no_pieces():
    steps, _, stream = run(["a", b"\xe6", b"\xad", b"\xaa"], stops=["歪"])
    assert texts(steps) == [["a"], [], [], []]
    assert stream.stopped


def test_control_tokens_are_empty_pieces_in_order():
    steps, _, _ = run(["a", "<|x|>", "D", "<|x|>", "b"], control={1, 3}, stops=["DE"])
    assert texts(steps) == [["a"], [""], [], [], ["D", "", "b"]]


def test_thinking_and_answer_are_told_apart_and_tags_stay():
    steps, tail, _ = run(["<think>", "\nhm", "</think>", "\n\n", "yes", "<think>"], thinking=TAGS)
    assert by_kind(steps, tail) == ("<think>\nhm</think>", "\n\nyes<think>")


def test_a_tag_split_over_tokens_waits_only_until_it_is_decided():
    steps, tail, _ = run(["<", "th", "ink", ">", "a", "</", "think>", "b"], thinking=TAGS)
    assert texts(steps)[:5] == [[], [], [], ["<", "th", "ink", ">"], ["a"]]
    assert by_kind(steps, tail) == ("<think>a</think>", "b")
    steps, tail, _ = run(["<", "th", "e>", "b"], thinking=TAGS)
    assert texts(steps) == [[], [], ["<", "th", "e>"], ["b"]]
    assert by_kind(steps, tail) == ("", "<the>b")


def test_inside_a_section_nothing_waits():
    steps, _, _ = run(["a", "</", "think", ">\n\n", "b"], thinking=TAGS, thinking_open=True)
    assert texts(steps) == [["a"], ["</"], ["think"], [">\n\n"], ["b"]]
    assert [step[0].kind for step in steps] == ["thinking"] * 4 + ["answer"]


def test_a_token_with_tag_and_answer_counts_as_answer():
    steps, _, _ = run(["</think", ">Yes"], thinking=TAGS, thinking_open=True)
    assert [step[0].kind for step in steps] == ["thinking", "answer"]


def test_an_unfinished_tag_at_the_end_is_released():
    steps, tail, _ = run(["<thi"], thinking=TAGS)
    assert by_kind(steps, tail) == ("", "<thi")
    steps, tail, _ = run(["hm"], thinking=TAGS, thinking_open=True)
    assert by_kind(steps, tail) == ("hm", "")


def test_tags_that_are_control_tokens_are_seen_and_shown():
    steps, tail, _ = run(["<think>", "a", "</think>", "b"], control={0, 2}, thinking=TAGS)
    assert by_kind(steps, tail) == ("<think>a</think>", "b")


def test_channels():
    pieces = ["<|channel|>", "analysis", "<|message|>", "hm", "<|end|>", "<|start|>", "assistant"]
    pieces += ["<|channel|>", "final", "<|message|>", "Yes"]
    control = {i for i, piece in enumerate(pieces) if piece.startswith("<|")}
    steps, tail, _ = run(pieces, control=control, thinking=HARMONY)
    thinking, answer = by_kind(steps, tail)
    assert thinking.startswith("<|channel|>analysis<|message|>hm")
    assert answer == "Yes"


parts = st.lists(
    st.text("ab<>", max_size=3) | st.sampled_from([b"\xe6", b"\xad", b"\xaa", b"\xff", b""]), max_size=12
)
tags = st.none() | st.builds(ThinkingTags, st.sampled_from(["<a>", "<"]), st.sampled_from(["<b>", ">"]))


@given(parts, st.lists(st.text("ab<", min_size=1, max_size=4), max_size=3), tags, st.booleans())
def test_the_stream_is_the_whole_text_cut_at_its_first_stop(pieces, stops, thinking, is_open):
    pieces = [piece if isinstance(piece, bytes) else piece.encode() for piece in pieces]
    whole = b"".join(pieces).decode(errors="replace")
    cut = min((at for stop in stops if (at := whole.find(stop)) >= 0), default=len(whole))
    steps, tail, stream = run(pieces, stops=stops, thinking=thinking, thinking_open=is_open)
    out = [piece for step in steps for piece in step] + tail
    assert "".join(piece.text for piece in out) == whole[:cut]
    assert [piece.token for piece in out] == list(range(len(out)))
    assert stream.released == len(out)
    assert stream.stopped == (cut < len(whole))
    if not stream.stopped:
        assert len(out) == len(pieces)


def test_push_costs_microseconds():
    stream = TokenStream(TableVocabulary([b" word"]), thinking=TAGS)
    begin = time.perf_counter()
    for position in range(10_000):
        stream.push(0, "target", position)
    assert time.perf_counter() - begin < 0.5
