"""Whose drafts are weighed at all, and what asking costs."""

import pytest
from control_kit import SURE, UNLIKELY, copied, round_of
from engine_kit import CURVES, controller

from edgespec.types import NO_DRAFT, Offer, Outcome, chain, merge


def test_recycling_runs_only_where_it_can_pay():
    assert controller(("suffix", "recycling"), CURVES["steep"]).begin() == ("suffix",)
    assert controller(("suffix", "recycling"), CURVES["flat"]).begin() == ("suffix", "recycling")
    only_one = controller(("recycling",), CURVES["flat"], row_counts=(1,))
    assert only_one.begin() == ()


def test_status_says_that_no_draft_was_likely_enough():
    policy = controller(("suffix",), CURVES["steep"])
    policy.begin()
    policy.plan(16)
    draft = policy.trim(copied(UNLIKELY))
    policy.observe(round_of(draft, 0, 1.0))
    assert not draft.tokens
    assert "likely enough" in policy.status.reason


def test_asking_proposers_counts_in_plain_rounds_where_it_takes_more_than_a_hundredth():
    policy = controller(("suffix",), CURVES["steep"])
    policy.begin()
    for _ in range(20):
        policy.plan(16)
        policy.observe(round_of(NO_DRAFT, 0, 1.0, t_propose=0.02))
    assert policy.saved == pytest.approx(-0.2)
    for _ in range(20):
        policy.plan(16)
        policy.observe(round_of(NO_DRAFT, 0, 1.0, t_propose=0.01))
    assert policy.saved == pytest.approx(-0.2)


@pytest.mark.parametrize(("curve", "branches"), [("flat", True), ("linear", False), ("steep", False)])
def test_branches_are_drafted_only_where_rows_are_cheap(curve, branches):
    policy = controller(("suffix",), CURVES[curve], trees=True)
    policy.begin()
    assert policy.plan(16, True).tree == branches


def test_drafts_that_lose_at_any_length_are_left_out_and_sure_ones_kept_whole():
    policy = controller(("suffix",), CURVES["linear"])
    policy.begin()
    policy.plan(16)
    assert not policy.trim(copied(*[UNLIKELY] * 8)).tokens
    policy.observe(round_of(copied(*[SURE] * 8), 8, CURVES["linear"](9)))
    policy.plan(16)
    assert len(policy.trim(copied(*[SURE] * 12))) == 12


def test_on_a_machine_that_is_busier_than_it_was_drafts_that_are_right_earn_from_the_first_on():
    policy = controller(("suffix",), CURVES["linear"])
    policy.begin()
    for _ in range(4):
        policy.plan(16)
        draft = policy.trim(copied(*[SURE] * 3))
        policy.observe(round_of(draft, len(draft), 5 * CURVES["linear"](len(draft) + 1)))
    assert policy.saved > 0.5


def test_a_proposer_that_is_always_wrong_does_not_silence_the_others_in_one_tree():
    policy = controller(("suffix", "memory"), CURVES["flat"], trees=True)
    policy.begin()
    wrong = chain((1,), "suffix", [(2.0, 1.0, 1.0)])
    right = chain((2, 3), "memory", [(32.0, 1.0, 1.0)] * 2)
    for _ in range(60):
        plan = policy.plan(8, True)
        draft = policy.trim(merge([wrong, right]))
        offers = (Offer(wrong, ((0, False),)), Offer(right, ((0, True), (1, True))))
        policy.observe(Outcome(draft, min(2, len(draft)), 3, 100, 0.0, 1.0, 0.0, offers, plan))
    assert policy.trim(merge([wrong, right])).sources.count("memory") == 2


def test_a_sure_branch_is_not_held_back_by_an_unsure_one_that_was_asked_first():
    policy = controller(("suffix", "memory"), CURVES["linear"], trees=True)
    policy.begin()
    policy.plan(16, True)
    sure = chain(range(20, 28), "memory", [(32.0, 1.0, 1.0)] * 8)
    alone = policy.trim(sure)
    beside = policy.trim(merge([chain((1,), "suffix", [(2.0, 1.0, 1.0)]), sure]))
    assert len(alone) >= 4
    assert beside.sources.count("memory") == len(alone)
