"""Trees of a draft model: what they cost, and when they are drafted."""

import numpy as np
import pytest
from engine_kit import GREEDY, PROMPT, answer, session
from hypothesis import given
from hypothesis import strategies as st

from edgespec.backends.scripted import ScriptedBackend, SimulatedClock, hashed
from edgespec.control import Controller, CostModel
from edgespec.control.branching import LEVELS, depths, typical, work
from edgespec.proposers import ModelProposer
from edgespec.text.table import TableVocabulary
from edgespec.types import NO_DRAFT, Draft, SamplingSettings

N = 40
LETTERS = TableVocabulary([bytes([33 + i]) for i in range(N)])
FLAT = {n: 1.0 + 0.02 * (n - 1) for n in range(1, 66)}
STEEP = {n: 1.0 + 0.5 * (n - 1) for n in range(1, 66)}
SAMPLED = SamplingSettings(temperature=0.8, seed=3)

parents = st.lists(st.integers(0, 10**6), min_size=1, max_size=20).map(
    lambda numbers: [number % (i + 1) - 1 for i, number in enumerate(numbers)]
)


@given(parents, st.floats(0.0, 1.0))
def test_a_tree_costs_a_pass_a_level_over_all_that_is_above(parents, row):
    depth = depths(parents)
    assert depth.tolist() == [len(path(parents, i)) for i in range(len(parents))]
    for n, taken in enumerate(work(depth, row), 1):
        first = depth[:n]
        above = [1, *(int((first <= level).sum()) for level in range(1, first.max()))]
        assert taken == pytest.approx(sum(1.0 + row * (rows - 1) for rows in above))


def path(parents, node):
    return [] if node < 0 else [*path(parents, parents[node]), node]


@pytest.mark.parametrize("levels", LEVELS)
def test_a_typical_tree_brings_more_with_every_node_and_no_more_than_it_is_deep(levels):
    tree, depth = typical(0.7, 0.4, levels)
    assert (np.diff(tree.survival) <= 0).all()
    assert depth.max() <= levels
    assert tree.emitted[-1] <= 1 + levels
    assert tree.survival[0] == pytest.approx(0.7)


def chosen(seconds, row, first=0.6, second=0.4, each=0.1, **how):
    """Does the draft model draft trees on these costs, once it is known how often it is right?"""
    policy = Controller(("draft",), CostModel(seconds, {"draft": each}, row), trees=True, **how)
    for i in range(200):
        policy.calibration.learn((0.6, 0.0), i < 200 * first)
        policy.calibration.learn((0.4, 0.0), i < 200 * second, "+")
    policy.begin()
    return policy.plan(16, True).grow is not None


def test_trees_are_drafted_where_rows_of_both_models_cost_little():
    assert chosen(FLAT, 0.02)
    assert not chosen(FLAT, 1.0), "every row of the draft model costs what a token does"
    assert not chosen(STEEP, 0.02), "every row of the target costs half a token"
    assert not chosen(FLAT, 0.02, first=0.97), "a chain that is nearly always right is as good"
    assert not chosen(FLAT, 0.02, second=0.02), "the next best is never right"
    assert not chosen(FLAT, None), "the backend of the draft model cannot branch"
    assert not chosen(FLAT, 0.02, row_counts=(1, 2)), "no tree has two rows"


def test_a_plan_for_a_target_without_branches_has_none():
    policy = Controller(("draft",), CostModel(FLAT, {"draft": 0.1}, 0.0), trees=True)
    assert policy.plan(16, False).grow is None


def started():
    policy = Controller(("draft",), CostModel(FLAT, {"draft": 0.05}, 0.02), trees=True)
    for i in range(400):
        policy.calibration.learn((0.6, 0.0), i < 240)
        policy.calibration.learn((0.05, 0.0), i < 4, "+")
        policy.calibration.learn((0.6, 0.0), i < 280, "+")
    policy.begin()
    return policy, policy.plan(16, True)


def test_nodes_that_are_hardly_ever_reached_are_dropped_and_levels_end_where_they_do_not_pay():
    _, plan = started()
    _, more = plan.grow(NO_DRAFT)
    assert more
    evidence = ((0.6, 0.0), (0.6, 0.0), (0.05, 0.0))
    kept, more = plan.grow(Draft((1, 2, 3), (-1, -1, -1), evidence, ("draft",) * 3))
    assert kept.tokens == (1, 2)
    assert more
    deep = Draft(tuple(range(16)), tuple(range(-1, 15)), ((0.6, 0.0),) * 16, ("draft",) * 16)
    kept, more = plan.grow(deep)
    assert 2 < len(kept) < 10, "0.6 to the power of ten is not worth a row"
    assert not more
    assert list(kept.survival) == sorted(kept.survival, reverse=True)


def off_by(logits, amount):
    """A model that is like another one, but for noise."""

    def noisy(context):
        rng = np.random.default_rng([5, *context[-2:]])
        return (logits(context) + rng.standard_normal(N) * amount).astype(np.float32)

    return noisy


def decoded(seconds, row, amount, sampling, trees):
    """(ids, simulated seconds, rounds with branches) of two answers."""
    clock, each = SimulatedClock(), 0.1
    logits = hashed(N, order=2, sharpness=2.0, salt=3)
    target = ScriptedBackend(logits, N, clock=clock, seconds=seconds.__getitem__)
    small = ScriptedBackend(
        off_by(logits, amount), N, clock=clock, seconds=lambda n: each * (1 + row * (min(n, 16) - 1))
    )
    policy = Controller(("draft",), CostModel(seconds, {"draft": each}, row), trees=trees)
    s = session(target, ModelProposer(small, N, lambda _: None), policy=policy, clock=clock)
    ids, branched = [], 0
    for last in range(2):
        got = answer(s, (*PROMPT, last), 200, sampling, vocabulary=LETTERS)
        ids += got.ids
        branched += sum(not outcome.draft.is_chain for outcome in got.outcomes)
    return ids, clock.now, branched


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("amount", [0.8, 1.5])
def test_where_they_pay_trees_are_faster_than_chains_and_say_the_same(sampling, amount):
    ids, chains, none = decoded(FLAT, 0.02, amount, sampling, False)
    same, trees, branched = decoded(FLAT, 0.02, amount, sampling, True)
    assert same == ids
    assert none == 0 < branched
    assert trees < 0.97 * chains


def test_where_they_do_not_pay_there_are_none():
    assert decoded(STEEP, 0.02, 0.3, GREEDY, True) == decoded(STEEP, 0.02, 0.3, GREEDY, False)


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_leaves_beside_a_chain_cost_the_draft_model_nothing(sampling):
    """So they pay where its passes over several rows do not."""
    ids, chains, _ = decoded(FLAT, 1.0, 0.3, sampling, False)
    same, leaves, branched = decoded(FLAT, 1.0, 0.3, sampling, True)
    assert same == ids
    assert branched > 0
    assert leaves < 0.95 * chains
