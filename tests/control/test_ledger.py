"""What may be risked, against all outcomes written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.control.ledger import FLOOR, Bets, Ledger, price_of_risk, urgency

CHANCES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12).map(np.array)
COSTS = st.lists(st.floats(1.0, 12.0), min_size=12, max_size=12).map(np.array)
LEAST, HOPE = 40, 0.0015
"""Beyond the budget: tokens for which the floor holds whatever comes; expected shortfall a token."""


def outcomes(chances, n):
    """(probability, accepted) of every way that a draft of n tokens can end."""
    reached = 1.0
    for i in range(n):
        yield reached * (1.0 - chances[i]), i
        reached *= chances[i]
    yield reached, n


@given(CHANCES)
def test_expected_tokens_are_the_mean_over_all_outcomes(chances):
    bets = Bets(chances)
    for n in range(1, len(chances) + 1):
        mean = sum(p * (1 + accepted) for p, accepted in outcomes(chances, n))
        assert bets.emitted[n - 1] == pytest.approx(mean)
        assert bets.survival[n - 1] == pytest.approx(np.prod(chances[:n]))


@given(CHANCES, st.lists(st.floats(-3.0, 15.0), min_size=12, max_size=12))
def test_shortfall_is_the_mean_of_what_is_lacking_over_all_outcomes(chances, needed):
    needed = np.array(needed[: len(chances)])
    got = Bets(chances).shortfall(needed)
    for n in range(1, len(chances) + 1):
        lacking = sum(p * max(0.0, needed[n - 1] - accepted) for p, accepted in outcomes(chances, n))
        assert got[n - 1] == pytest.approx(lacking, abs=1e-7)


@given(CHANCES, COSTS, st.lists(st.tuples(st.integers(1, 9), st.floats(0.5, 9.0)), max_size=8))
def test_what_is_allowed_costs_at_worst_the_budget_or_in_expectation_little_beyond_it(chances, costs, rounds):
    ledger = Ledger()
    for emitted, cost in rounds:
        ledger.add(emitted, cost)
    cost = costs[: len(chances)]
    allowed = ledger.allows(cost, Bets(chances))
    for n in range(1, len(cost) + 1):
        worst = cost[n - 1] - 1.0
        beyond = worst - ledger.budget
        lacking = sum(p * max(0.0, beyond - accepted) for p, accepted in outcomes(chances, n))
        if beyond <= 0:
            assert allowed[n - 1]
        if allowed[n - 1]:
            emitted = ledger.emitted + 1
            loss = worst - ledger.saved
            assert beyond <= 0 or loss <= (1 / FLOOR - 1) * max(emitted, LEAST) + 1e-9
            assert beyond <= 0 or lacking <= HOPE * max(emitted, 11) + 1e-7


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0.5, 9.0)), max_size=20))
def test_saved_is_what_was_emitted_less_what_it_cost(rounds):
    ledger = Ledger()
    for emitted, cost in rounds:
        ledger.add(emitted, cost)
    assert ledger.saved == pytest.approx(sum(e - c for e, c in rounds))
    assert ledger.emitted == sum(e for e, _ in rounds)


@given(st.integers(41, 2000), st.integers(0, 2**32))
def test_bets_that_are_allowed_and_all_lost_leave_the_floor(tokens, seed):
    """Whoever always bets what is allowed at a chance that looks sure, and always loses."""
    ledger, rng = Ledger(), np.random.default_rng(seed)
    while ledger.emitted < tokens:
        cost = 1.0 + np.cumsum(rng.uniform(0.0, 0.3, 12))
        allowed = ledger.allows(cost, Bets(np.full(12, 0.9999))).nonzero()[0]
        ledger.add(1, float(cost[allowed[-1]]) if len(allowed) else 1.0)
    spent = ledger.emitted - ledger.saved
    assert ledger.emitted / spent >= FLOOR


@pytest.mark.parametrize("each", [0.01, 0.3, 0.9])
def test_a_scarce_budget_has_a_price_and_the_cheaper_the_rows_the_higher(each):
    def price(each):
        return price_of_risk(1.0 + each * np.arange(1, 64))

    assert price(each) >= 0.0
    assert price(each) <= price(each / 2)


def test_where_nothing_ever_pays_risk_has_no_price():
    assert price_of_risk(1.0 + 2.0 * np.arange(1, 64)) == 0.0


def test_the_price_applies_in_full_on_an_empty_budget_and_fades_as_it_fills():
    assert urgency(0.0) == urgency(-3.0) == 1.0
    falling = [urgency(b) for b in (0.0, 0.2, 0.5, 1.0, 3.0, 10.0)]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] < 1e-6
