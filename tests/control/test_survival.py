"""How likely a drafted token is right: a prior, then what was seen."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.control import Calibration
from edgespec.control.survival import prior, table_of

COPIED = st.tuples(
    st.integers(1, 200).map(float),
    st.one_of(st.just(1.0), st.floats(0.001, 0.999)),
    st.integers(1, 99).map(float),
)
DRAWN = st.tuples(st.floats(0.0, 1.0), st.sampled_from([-1.0, 0.0, 1.0]))
EVIDENCE = st.one_of(COPIED, DRAWN)
SEEN = st.lists(st.tuples(EVIDENCE, st.booleans()), max_size=60)


def taught(seen):
    calibration = Calibration()
    for evidence, hit in seen:
        calibration.learn(evidence, hit)
    return calibration


@given(SEEN, EVIDENCE)
def test_a_chance_is_a_probability(seen, evidence):
    assert 0.0 < prior(evidence) < 1.0
    assert 0.0 < taught(seen).chance(evidence) < 1.0


@given(EVIDENCE)
def test_before_anything_was_seen_the_prior_holds(evidence):
    assert Calibration().chance(evidence) == pytest.approx(prior(evidence))


def test_longer_matches_and_surer_models_are_likelier():
    lengths = [prior((float(n), 1.0, 1.0)) for n in (1, 2, 3, 4, 6, 8, 10, 16, 24, 60)]
    tops = [prior((p, 0.0)) for p in (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 1.0)]
    assert lengths == sorted(lengths)
    assert tops == sorted(tops)


def test_a_model_that_copying_agrees_with_is_likelier_right():
    for top in (0.3, 0.6, 0.95):
        assert prior((top, -1.0)) < prior((top, 0.0)) < prior((top, 1.0))


def test_a_continuation_among_others_is_less_likely_than_the_only_one():
    assert prior((8.0, 0.5, 2.0)) < prior((8.0, 1.0, 1.0)) < prior((8.0, 1.0, 3.0))


@pytest.mark.parametrize("evidence", [(3.0, 1.0, 1.0), (8.0, 0.5, 2.0), (0.9, 0.0), (0.9, 1.0)])
@pytest.mark.parametrize("rate", [0.0, 0.25, 1.0])
def test_what_is_seen_moves_the_chance_to_the_rate_of_hits(evidence, rate):
    calibration = Calibration()
    before = calibration.chance(evidence)
    distance = [abs(before - rate)]
    for _ in range(4):
        for i in range(100):
            calibration.learn(evidence, i < 100 * rate)
        distance.append(abs(calibration.chance(evidence) - rate))
    assert distance == sorted(distance, reverse=True)
    assert distance[-1] < 0.1


def test_a_change_is_noticed_however_long_it_went_the_other_way():
    calibration, evidence = Calibration(), (8.0, 1.0, 1.0)
    for _ in range(20_000):
        calibration.learn(evidence, True)
    for _ in range(1000):
        calibration.learn(evidence, False)
    assert calibration.chance(evidence) < 0.2


def test_what_is_seen_of_one_kind_says_nothing_of_another():
    calibration = Calibration()
    others = [(20.0, 1.0, 1.0), (3.0, 0.5, 2.0), (0.9, 0.0), (0.9, 1.0)]
    before = [calibration.chance(e) for e in others]
    for _ in range(100):
        calibration.learn((3.0, 1.0, 1.0), False)
    assert [calibration.chance(e) for e in others] == before


@given(SEEN, st.lists(EVIDENCE, max_size=5))
def test_what_was_learnt_survives_being_stored(seen, asked):
    calibration = taught(seen)
    again = Calibration.from_json(json.loads(json.dumps(calibration.as_json())))
    assert [again.chance(e) for e in asked] == pytest.approx([calibration.chance(e) for e in asked])
    assert again.as_json() == calibration.as_json()


@pytest.mark.parametrize(
    "stored",
    [
        None,
        3,
        "text",
        {},
        {"a": 1},
        [1, 2],
        [[]],
        [["copy", 1, 0, 3]],
        [["copy", 1, 0, "x", 4]],
        [["copy", 1, 0, 5.0, 4.0]],
        [["copy", 1, 0, -1.0, 4.0]],
        [["copy", 1, 0, float("nan"), 4.0]],
        [["copy", 1, 0, 1.0, float("nan")]],
        [["copy", 1, 0, 4.0, float("inf")]],
        [["copy", float("inf"), 0, 4.0, 5.0]],
        [None],
    ],
)
def test_a_stored_table_that_makes_no_sense_reads_as_empty(stored):
    calibration = Calibration.from_json(stored)
    assert calibration.as_json() == []
    assert calibration.chance((1.0, 1.0, 1.0)) == pytest.approx(prior((1.0, 1.0, 1.0)))
    assert 0.0 < calibration.drafting < 1.0


def test_rows_that_make_sense_are_kept_beside_one_that_counts_more_hits_than_tries():
    rows = [["copy", 3, 0, 9.0, 4.0], ["copy", 4, 0, 3.0, 4.0]]
    assert Calibration.from_json(rows).as_json() == [["copy", 4, 0, 3.0, 4.0]]


def test_the_draft_model_is_forgotten_slowly_and_copying_is_not():
    calibration = Calibration()
    for _ in range(300):
        calibration.learn((0.9, 0.0), False)
        calibration.learn((3.0, 1.0, 1.0), False)
    drafted, copied = calibration.chance((0.9, 0.0)), calibration.chance((3.0, 1.0, 1.0))
    rates = [calibration.drafting]
    for _ in range(60):
        calibration.fade()
        rates.append(calibration.drafting)
    assert rates == sorted(rates)
    assert rates[1] < 0.1
    assert rates[-1] == pytest.approx(0.85, abs=0.06)
    assert calibration.chance((0.9, 0.0)) > drafted + 0.3
    assert calibration.chance((3.0, 1.0, 1.0)) == copied


def test_recycled_successors_are_likelier_the_surer_their_place():
    chances = [prior((float(place),)) for place in range(12)]
    assert all(0.0 < chance < 1.0 for chance in chances)
    assert chances == sorted(chances, reverse=True)


def test_a_new_source_is_counted_apart_and_copying_in_the_text_together():
    calibration = Calibration()
    for _ in range(200):
        calibration.learn((8.0, 1.0, 1.0), False, table_of("memory", False))
    for source in ("suffix", "ngram"):
        assert calibration.chance((8.0, 1.0, 1.0), table_of(source, False)) == prior((8.0, 1.0, 1.0))
    assert calibration.chance((8.0, 1.0, 1.0), table_of("memory", False)) < 0.1
    assert table_of("anything new", False) != table_of("suffix", False)
