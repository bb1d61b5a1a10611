"""Figures: percentiles by weight, ratios with intervals, what is made of arrivals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.bench.answers import Answer, First, Place, Taken, differences
from edgespec.bench.machine import EnergyMeter, peak_memory
from edgespec.bench.rows import METRICS, rows
from edgespec.bench.stats import median, percentile, ratio_of_medians


def taken(seconds, text="abc", **how):
    """Three tokens, the last two after `seconds` each."""
    arrivals = ((1.0, 1), (1.0 + seconds, 1), (1.0 + 2 * seconds, 1))
    return Taken(text, tuple(text.encode()), 3, arrivals, **how)


def answer(configuration, seconds, repetition=0, text="abc", category="chat", **how):
    return Answer(configuration, Place(f"{category}/1", category, 0, repetition), taken(seconds, text, **how))


def test_the_same_pairs_give_the_same_interval():
    pairs = [(10.0, 11.0), (9.0, 12.0), (11.0, 13.0), (10.5, 10.0)]
    assert ratio_of_medians(pairs) == ratio_of_medians(pairs)
    assert ratio_of_medians(pairs, seed=1) is not None


def test_a_constant_ratio_has_no_width():
    ratio = ratio_of_medians([(x, 1.5 * x) for x in (3.0, 9.0, 4.0, 20.0)])
    assert ratio.value == pytest.approx(1.5)
    assert ratio.low <= 1.5 <= ratio.high


@given(st.lists(st.tuples(*[st.floats(0.1, 1000)] * 2), min_size=2, max_size=20))
def test_the_interval_stays_within_what_pairs_can_give(pairs):
    ratio = ratio_of_medians(pairs)
    lowest = min(y for _, y in pairs) / max(x for x, _ in pairs)
    highest = max(y for _, y in pairs) / min(x for x, _ in pairs)
    assert lowest - 1e-9 <= ratio.low <= ratio.high <= highest + 1e-9


def test_one_pair_has_no_interval_and_none_no_ratio():
    one = ratio_of_medians([(2.0, 3.0)])
    assert (one.value, one.low, one.high) == (1.5, None, None)
    assert ratio_of_medians([]) is None
    assert median([]) is None


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 9)), min_size=1), st.floats(1, 100))
def test_a_weighted_percentile_is_that_of_the_values_written_out(pairs, percent):
    values, weights = zip(*pairs, strict=True)
    written = sorted(v for v, w in pairs for _ in range(w))
    at = next(i for i in range(len(written)) if (i + 1) / len(written) >= percent / 100 * (1 - 1e-12))
    assert percentile(values, weights, percent) == written[at]


def test_tokens_that_arrive_together_share_their_pause():
    arrivals = ((0.5, 1), (0.7, 4), (0.7002, 1), (0.8, 1), (0.9, 0))
    pauses = list(Taken("", None, 7, arrivals).pauses())
    assert [n for _, n in pauses] == [5, 1]
    assert [seconds for seconds, _ in pauses] == pytest.approx([0.2002, 0.0998])


def test_the_rate_leaves_the_first_token_out_and_counts_to_the_end():
    assert Taken("", None, 7, ((0.5, 1), (0.9, 6), (1.0, 0))).tokens_per_second == pytest.approx(12)
    assert Taken("", None, 1, ((0.5, 1),)).tokens_per_second is None
    assert Taken("", None, 0, ()).tokens_per_second is None


def test_rows_a_category_and_over_all():
    answers = [
        answer("auto", 0.05, draft_n=4, draft_n_accepted=3, rounds=2),
        answer("plain", 0.1, rounds=3, joules=1.5),
        answer("plain", 0.1, category="code"),
        answer("auto", 0.2, category="code", text="abd"),
    ]
    firsts = [First("auto", "chat/1", "chat", 0, 2.0), First("auto", "code/1", "code", 0, 4.0)]
    table = rows(answers, firsts)
    assert [(r.category, r.configuration) for r in table] == [
        (category, name) for category in ("chat", "code", "all") for name in ("plain", "auto")
    ]
    plain, auto = table[0], table[1]
    assert plain.speedup is None
    assert plain.joules_per_token == 0.5
    assert auto.speedup.value == pytest.approx(2)
    assert (auto.ttft, table[-1].ttft) == (2.0, 3.0)
    assert (auto.acceptance_rate, auto.mean_acceptance_length) == (0.75, 1.5)
    assert [r.differ for r in table] == [0, 0, 0, 1, 0, 1]
    assert set(auto.metrics()) == set(METRICS)


def test_the_first_difference_is_told():
    found = differences(
        [answer("plain", 1), answer("a", 1), answer("b", 1, text="abx"), answer("c", 1, text="a")]
    )
    assert [(d.configuration, d.position) for d in found] == [("b", 2), ("c", 1)]


def test_energy_is_absent_where_the_machine_does_not_tell(tmp_path):
    meter = EnergyMeter(tmp_path / "none")
    assert meter.joules(meter.read(), meter.read()) is None


def test_energy_of_packages_and_a_counter_that_wraps(tmp_path):
    for zone, value in (("intel-rapl:0", 900), ("intel-rapl:1", 5), ("intel-rapl:0:0", 7)):
        (tmp_path / zone).mkdir()
        (tmp_path / zone / "energy_uj").write_text(f"{value}\n")
        (tmp_path / zone / "max_energy_range_uj").write_text("1000\n")
    meter = EnergyMeter(tmp_path)
    before = meter.read()
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("100\n")
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("25\n")
    assert meter.joules(before, meter.read()) == pytest.approx(220e-6)


def test_peak_memory_is_that_of_a_python_process():
    assert 10 * 2**20 < peak_memory() < 2**40
