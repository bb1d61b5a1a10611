"""What a pass costs: learnt from passes, whatever else the machine does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.control import CostModel
from edgespec.control.cost import MOST_ROWS

TABLE = {1: 0.034, 2: 0.0637, 4: 0.104, 8: 0.225, 16: 0.268, 64: 0.775}


def test_what_was_measured_is_what_is_expected():
    cost = CostModel(TABLE)
    for n, seconds in TABLE.items():
        assert cost.verify(n) == pytest.approx(seconds)
    assert cost.plain == pytest.approx(0.034)


@given(st.integers(1, MOST_ROWS))
def test_between_measured_counts_cost_is_linear_and_beyond_them_proportional(n):
    known = sorted(TABLE)
    expected = float(np.interp(n, known, [TABLE[k] for k in known])) if n <= 64 else TABLE[64] * n / 64
    assert CostModel(TABLE).verify(n) == pytest.approx(expected)
    assert CostModel(TABLE).relative[n] == pytest.approx(expected / TABLE[1])


def test_knowing_one_row_only_every_row_is_taken_to_cost_as_much():
    cost = CostModel({1: 0.5})
    assert [cost.relative[n] for n in (1, 2, 5, 65)] == pytest.approx([1, 2, 5, 65])


@pytest.mark.parametrize("table", [{}, {2: 1.0}, {1: 0.0}, {1: -1.0, 2: 1.0}, {1: float("nan")}])
def test_without_the_cost_of_one_row_there_is_no_model(table):
    with pytest.raises(ValueError, match="one row"):
        CostModel(table)


def test_times_that_are_none_are_left_out():
    cost = CostModel({1: 1.0, 2: 0.0, 3: -4.0, 4: float("inf"), 8: 8.0})
    assert cost.verify(4) == pytest.approx(4.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_pass_that_took_no_time_or_all_of_it_teaches_nothing(seconds):
    cost = CostModel(TABLE)
    cost.observe_verify(4, seconds)
    cost.observe_draft("draft", 2, seconds if seconds != 0.0 else -1.0)
    for n, known in TABLE.items():
        assert cost.verify(n) == pytest.approx(known)
    assert "draft" not in cost.draft


def test_more_rows_than_there_is_room_for_teach_nothing():
    cost = CostModel(TABLE)
    assert cost.observe_verify(MOST_ROWS + 1, 3.0) == 3.0
    assert cost.as_json() == {str(n): s for n, s in TABLE.items()}


@pytest.mark.parametrize("times", [0.6, 0.8, 1.3, 1.8])
def test_a_row_count_that_costs_something_else_is_learnt(times):
    cost = CostModel(TABLE)
    for _ in range(60):
        cost.observe_verify(1, TABLE[1])
        cost.observe_verify(4, TABLE[4] * times)
    assert cost.verify(4) == pytest.approx(TABLE[4] * times, rel=0.03)
    assert cost.plain == pytest.approx(TABLE[1], rel=0.03)


def test_a_busy_machine_moves_all_counts_and_is_not_kept():
    cost = CostModel(TABLE)
    for _ in range(80):
        cost.observe_verify(1, 1.7 * TABLE[1])
    assert cost.plain == pytest.approx(1.7 * TABLE[1], rel=0.02)
    assert cost.verify(8) == pytest.approx(1.7 * TABLE[8], rel=0.02)
    assert cost.relative[8] == pytest.approx(TABLE[8] / TABLE[1])
    assert cost.as_json() == pytest.approx({str(n): s for n, s in TABLE.items()})


def test_a_context_that_grows_is_followed():
    cost = CostModel(TABLE)
    for i in range(400):
        growing = 1.0 + i / 400
        for n in (1, 4):
            cost.observe_verify(n, growing * TABLE[n])
    assert cost.plain == pytest.approx(2 * TABLE[1], rel=0.05)
    assert cost.relative[4] == pytest.approx(TABLE[4] / TABLE[1], rel=0.05)


@pytest.mark.parametrize("n", [1, 4])
def test_one_pass_that_took_ten_times_as_long_changes_little(n):
    cost = CostModel(TABLE)
    for _ in range(3):
        cost.observe_verify(1, TABLE[1])
    counted = cost.observe_verify(n, 10 * TABLE[n])
    assert counted == pytest.approx(2 * TABLE[n])
    for k, known in TABLE.items():
        assert known <= cost.verify(k) <= 1.25 * known


@pytest.mark.parametrize("busy", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("n", [1, 4])
def test_the_first_pass_of_an_answer_says_at_once_how_busy_the_machine_is(busy, n):
    cost = CostModel(TABLE)
    for times in (busy, 1.5 * busy):
        cost.recall()
        counted = cost.observe_verify(n, times * TABLE[n])
        assert counted / cost.plain == pytest.approx(TABLE[n] / TABLE[1])


def test_a_first_pass_that_was_held_up_is_forgotten_within_a_few():
    cost = CostModel(TABLE)
    cost.observe_verify(1, 6 * TABLE[1])
    for _ in range(6):
        cost.observe_verify(1, TABLE[1])
    assert cost.plain == pytest.approx(TABLE[1], rel=0.15)


def test_outliers_now_and_then_do_not_move_the_estimate_far():
    cost, rng = CostModel(TABLE), np.random.default_rng(0)
    for i in range(400):
        for n in (1, 4):
            seconds = TABLE[n] * rng.normal(1.0, 0.05) * (10 if i % 20 == 7 else 1)
            cost.observe_verify(n, seconds)
    for n in (1, 4, 16):
        assert cost.verify(n) == pytest.approx(TABLE[n], rel=0.25)
    assert cost.relative[4] == pytest.approx(TABLE[4] / TABLE[1], rel=0.15)


def test_what_a_drafted_token_costs_is_learnt_and_outliers_are_cut():
    cost = CostModel(TABLE)
    cost.observe_draft("draft", 4, 0.08)
    assert cost.draft["draft"] == pytest.approx(0.02)
    cost.observe_draft("draft", 1, 0.2)
    assert cost.draft["draft"] < 0.03
    for _ in range(50):
        cost.observe_draft("draft", 2, 0.02)
    assert cost.draft["draft"] == pytest.approx(0.01, rel=0.02)
    cost.observe_draft("draft", 0, 5.0)
    assert cost.draft["draft"] == pytest.approx(0.01, rel=0.02)


@given(st.lists(st.tuples(st.integers(1, 65), st.floats(1e-5, 10.0)), max_size=40))
def test_whatever_it_sees_costs_stay_positive_and_finite(passes):
    cost = CostModel(TABLE)
    for n, seconds in passes:
        cost.observe_verify(n, seconds)
    assert np.isfinite(cost.relative).all()
    assert (cost.relative[1:] > 0).all()
    again = CostModel({int(n): s for n, s in cost.as_json().items()})
    assert again.relative == pytest.approx(cost.relative)
