"""Exact wherever that costs under a tenth of what can be reached."""

import pytest
from engine_kit import CURVES
from hypothesis import given
from hypothesis import strategies as st

from edgespec.calibration import Measured, choose_numerics, price_of_exactness
from edgespec.calibration.survey import COUNTS
from edgespec.control import CostModel
from edgespec.control.attainable import attainable_rate, best_depth, steady

ALL = (1, *COUNTS)
FLAT = {1: 10.0, 8: 11.5, 16: 13.0, 32: 17.0}
LLAMACPP_Q4_K_M = {
    1: 33.0,
    2: 59.0,
    3: 78.0,
    4: 96.0,
    5: 119.0,
    6: 139.0,
    8: 226.0,
    12: 278.0,
    16: 270.0,
    64: 780.0,
}
"""Two cores, AVX-512, rearranged weights: exact to 3 rows."""

curves = st.lists(st.floats(0.01, 1.5), min_size=12, max_size=12).map(
    lambda steps: {1: 1.0} | {n: 1.0 + sum(steps[: i + 1]) for i, n in enumerate(COUNTS)}
)
"""Seconds that grow with the rows, from nearly flat to worse than one by one."""
counts = st.integers(0, len(COUNTS)).map(lambda k: ALL[: k + 1])
costs = st.floats(0.0, 1.0)


def chosen(exact, seconds, each=0.0):
    return choose_numerics("auto", exact, price_of_exactness(Measured(exact, seconds, exact), each))


@given(curves, counts, costs)
def test_exact_exactly_where_it_costs_under_a_tenth(seconds, exact, each):
    price = price_of_exactness(Measured(exact, seconds, exact), each)
    relative = CostModel(seconds).relative
    assert attainable_rate(relative, exact, each) == pytest.approx(
        (1 - price) * attainable_rate(relative, None, each)
    )
    assert chosen(exact, seconds, each).mode == ("exact" if price < 0.1 else "near")


@given(curves, counts, costs)
def test_more_exact_counts_never_cost_more(seconds, exact, each):
    price = price_of_exactness(Measured(exact, seconds, exact), each)
    assert -1e-9 <= price <= 1.0
    for more in range(len(exact), len(ALL)):
        assert price_of_exactness(Measured(ALL[:more], seconds), each) <= price + 1e-9


@given(curves, costs)
def test_all_counts_exact_is_exact(seconds, each):
    every = tuple(range(1, 66))
    assert price_of_exactness(Measured(every, seconds), each) == pytest.approx(0.0, abs=1e-9)
    assert chosen(every, seconds, each).mode == "exact"


@given(st.floats(0.75, 3.0), counts)
def test_where_rows_cost_as_much_as_passes_exact_costs_nothing(slope, exact):
    steep = {n: 1.0 + max(slope, 1.0) * (n - 1) for n in ALL}
    rows = chosen(exact, steep)
    assert rows.mode == "exact"
    assert rows.allowed == exact


def test_exact_counts_that_cover_the_useful_ones_are_enough():
    """A step after four rows: nobody would verify more anyway."""
    cliff = {1: 1.0, 2: 1.2, 3: 1.4, 4: 1.6, 5: 9.0, 6: 10.0, 8: 12.0, 16: 24.0, 32: 48.0}
    rows = chosen((1, 2, 3, 4), cliff)
    assert rows.mode == "exact"
    assert "4 rows" in rows.reason


def test_the_reason_says_what_exact_costs():
    price = price_of_exactness(Measured((1, 2, 3), LLAMACPP_Q4_K_M))
    rows = chosen((1, 2, 3), LLAMACPP_Q4_K_M)
    assert rows.mode == ("exact" if price < 0.1 else "near")
    assert f"{price:.1%}" in rows.reason
    assert "3 rows" in rows.reason
    flatter = {n: ms**0.8 for n, ms in LLAMACPP_Q4_K_M.items()}
    near = chosen((1, 2, 3), flatter)
    assert near.allowed is None
    assert "only passes of up to 3 rows" in near.reason


def test_only_single_rows_exact_is_near_where_several_rows_pay():
    rows = chosen((1,), FLAT)
    assert rows.mode == "near"
    assert "no pass of several rows" in rows.reason


@pytest.mark.parametrize("asked", ["exact", "near"])
@pytest.mark.parametrize("price", [None, 0.0, 0.9])
def test_what_was_asked_for_is_done(asked, price):
    rows = choose_numerics(asked, (1, 2), price)
    assert (rows.mode, rows.reason) == (asked, "asked for")
    assert rows.allowed == ((1, 2) if asked == "exact" else None)


@pytest.mark.parametrize(("asked", "price"), [("exact", 0.9), ("auto", 0.0), ("auto", None)])
def test_in_exact_mode_drafts_branch_only_where_trees_are_exact(asked, price):
    assert choose_numerics(asked, ALL, price, True).trees
    assert not choose_numerics(asked, ALL, price, False).trees
    assert ("trees too" in choose_numerics(asked, ALL, price, True).reason) == (price == 0.0)


@pytest.mark.parametrize(("asked", "price"), [("near", 0.0), ("auto", 0.9)])
def test_in_near_mode_they_branch_wherever_the_backend_can(asked, price):
    assert choose_numerics(asked, (1, 2), price, False).trees


@pytest.mark.parametrize("exact", [(1,), (1, 2, 3)])
def test_before_all_is_measured_only_what_is_known_to_be_exact_is_used(exact):
    rows = choose_numerics("auto", exact, None)
    assert rows.allowed == exact
    assert "measured" in rows.reason


@given(curves, st.floats(0.05, 0.99), costs, counts)
def test_the_depth_that_pays_is_the_best_of_all_by_brute_force(seconds, acceptance, each, exact):
    relative = CostModel(seconds).relative
    depth, rate = best_depth(relative, steady(acceptance), exact, each)
    best = (0, 1.0)
    for n in (rows - 1 for rows in exact if rows > 1):
        emitted = sum(acceptance**i for i in range(n + 1))
        value = emitted / (relative[n + 1] + n * each)
        if value > best[1] + 1e-12:
            best = (n, value)
    assert rate == pytest.approx(best[1])
    assert depth == best[0]


def test_dearer_drafts_pay_less_and_less_deep():
    relative = CostModel({n: CURVES["linear"](n) for n in range(1, 66)}).relative
    found = [best_depth(relative, steady(0.8), each=each) for each in (0.0, 0.1, 0.2, 0.5, 1.0)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == (0, 1.0)
