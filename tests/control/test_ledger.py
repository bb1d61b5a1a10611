"""What may be risked, against all outcomes written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.control.ledger import FLOOR, Bets, Branches, Ledger, price_of_risk, urgency

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


@given(st.integers(0, 2**32))
def test_branches_win_and_lack_what_all_outcomes_of_their_tree_do(seed):
    """A tree of random shape; an outcome is a leaf, or a node whose children are all wrong."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    parents = [-1, *(int(rng.integers(-1, i)) for i in range(1, n))]
    chance = np.zeros(n)
    for node in range(-1, n):
        children = [i for i in range(n) if parents[i] == node]
        chance[children] = rng.dirichlet(np.ones(len(children) + 1))[:-1]
    survival, depth = np.ones(n + 1), np.zeros(n + 1, int)
    for i in range(n):
        survival[i], depth[i] = survival[parents[i]] * chance[i], depth[parents[i]] + 1
    order = np.argsort(-survival[:n], kind="stable")
    bets = Branches(survival[order], depth[order])
    needed = rng.uniform(-1.0, 6.0, n)
    lacking = bets.shortfall(needed)
    for size in range(1, n + 1):
        kept = set(order[:size].tolist())
        ends = [
            (survival[i] * (1.0 - sum(chance[c] for c in kept if parents[c] == i)), depth[i])
            for i in (-1, *kept)
        ]
        assert bets.emitted[size - 1] == pytest.approx(sum(p * (1 + d) for p, d in ends))
        mean = sum(p * max(0.0, needed[size - 1] - d) for p, d in ends)
        assert lacking[size - 1] == pytest.approx(mean, abs=1e-9)
