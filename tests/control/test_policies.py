"""Which proposer, how deep, or not at all: decisions on known costs."""

import numpy as np
import pytest
from control_kit import LIKELY, SURE, UNLIKELY, copied, drawn, round_of
from engine_kit import (
    CURVES,
    N_VOCAB,
    PROPOSERS,
    answer,
    controller,
    looping,
    plain,
    proposer,
    session,
)

from edgespec.backends.scripted import ScriptedBackend, SimulatedClock
from edgespec.control import Calibration, FixedPolicy
from edgespec.sampling import Sampler
from edgespec.types import NO_DRAFT, Offer, Outcome, Plan, SamplingSettings, chain


def rich(policy, seconds, tokens=200):
    """Let it earn: long drafts that are all right."""
    policy.begin()
    while policy.saved < tokens:
        policy.plan(64)
        draft = policy.trim(copied(*[SURE] * 32))
        policy.observe(round_of(draft, len(draft), seconds(len(draft) + 1)))
    return policy


def cut(policy, draft, limit=64):
    policy.plan(limit)
    return len(policy.trim(draft))


@pytest.mark.parametrize("curve", CURVES)
def test_unlikely_drafts_are_not_verified_where_rows_cost(curve):
    policy = controller(("suffix",), CURVES[curve])
    policy.begin()
    n = cut(policy, copied(*[UNLIKELY] * 8))
    assert n == 0 or CURVES[curve](n + 1) < 1.05


def test_nothing_drafted_is_nothing_to_verify():
    policy = controller(("suffix",))
    policy.begin()
    policy.plan(10)
    assert policy.trim(NO_DRAFT) == NO_DRAFT


@pytest.mark.parametrize("curve", CURVES)
def test_with_something_saved_the_depth_is_that_of_the_best_expected_rate(curve):
    seconds = CURVES[curve]
    policy = rich(controller(("suffix",), seconds), seconds)
    for evidence in (
        [SURE] * 20,
        [LIKELY] * 20,
        [SURE] * 5 + [UNLIKELY] * 10,
        [LIKELY] * 3 + [SURE] * 9 + [UNLIKELY] * 3,
    ):
        chances = [policy.calibration.chance(e) for e in evidence]
        emitted = 1.0 + np.cumsum(np.cumprod(chances))
        rates = emitted / np.array([seconds(n + 2) for n in range(len(evidence))])
        n = cut(policy, copied(*evidence))
        if rates.max() <= 1.0:
            assert n == 0
        else:
            assert rates[n - 1] == pytest.approx(rates.max(), rel=1e-6)


def test_a_likelier_draft_is_cut_no_shorter():
    policy = rich(controller(("suffix",)), CURVES["linear"])
    depths = [cut(policy, copied(*[(float(length), 1.0, 1.0)] * 30)) for length in (1, 3, 6, 10, 16, 24)]
    assert depths == sorted(depths)
    assert depths[0] < depths[-1]


def test_a_cold_start_bets_less_than_it_does_with_something_saved():
    cold = controller(("suffix",), CURVES["steep"])
    cold.begin()
    draft = copied(*[SURE] * 30)
    assert cut(cold, draft) < cut(rich(controller(("suffix",), CURVES["steep"]), CURVES["steep"]), draft)


def test_stairs_are_climbed_whole():
    """Where a step is paid for, all rows on it are used."""
    seconds = CURVES["stairs"]
    policy = rich(controller(("suffix",), seconds), seconds)
    for length in (6.0, 10.0, 16.0, 24.0):
        n = cut(policy, copied(*[(length, 1.0, 2.0)] * 40))
        assert n == 0 or (n + 1) % 4 == 0


def test_what_a_draft_is_cut_to_says_how_likely_each_token_is_reached():
    policy = rich(controller(("suffix",), CURVES["flat"]), CURVES["flat"])
    policy.plan(64)
    draft = policy.trim(copied(SURE, LIKELY, LIKELY))
    chances = [policy.calibration.chance(e) for e in (SURE, LIKELY, LIKELY)]
    assert draft.survival == pytest.approx(np.cumprod(chances)[: len(draft)].tolist())
    assert len(draft) == 3


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 7])
def test_the_rounds_limit_is_kept(limit):
    policy = rich(controller(("suffix", "draft"), CURVES["flat"]), CURVES["flat"])
    assert policy.plan(limit).max_draft <= limit
    assert len(policy.trim(copied(*[SURE] * 40))) <= limit
    assert bool(policy.plan(limit).proposers) == (limit > 0)
    assert limit or policy.plan(limit) == Plan()


def test_the_most_that_was_allowed_for_a_draft_is_kept():
    policy = controller(("suffix",), CURVES["flat"], draft_max=5)
    policy.begin()
    assert policy.plan(64).max_draft == 5
    assert len(policy.trim(copied(*[SURE] * 40))) <= 5


@pytest.mark.parametrize("rows", [(1,), (1, 2), (1, 2, 3, 6), (1, 4), (1, 16), (1, 40, 200)])
def test_trims_only_reach_allowed_row_counts(rows):
    reached = set()
    for policy in (
        controller(("suffix",), CURVES["flat"], row_counts=rows),
        FixedPolicy(("suffix",), 15, row_counts=rows),
    ):
        policy.begin()
        for _ in range(30):
            for limit in range(18):
                plan = policy.plan(limit)
                assert plan.row_counts in (None, rows)
                assert bool(plan.proposers) == bool(plan.max_draft)
                for n in range(plan.max_draft + 1):
                    reached.add(len(policy.trim(copied(*[SURE] * n))) + 1)
            draft = policy.trim(copied(*[SURE] * policy.plan(17).max_draft))
            policy.observe(round_of(draft, len(draft), CURVES["flat"](len(draft) + 1)))
    assert reached <= {1, *rows}
    assert {n for n in rows if n <= 16} <= reached


@pytest.mark.parametrize("rows", [(1, 2, 3, 6), (1, 3, 7), (1, 16)])
def test_fixed_plans_only_reach_allowed_row_counts(rows):
    policy = FixedPolicy(("suffix",), 9, row_counts=rows)
    for limit in range(12):
        assert policy.plan(limit).max_draft + 1 in rows


@pytest.mark.parametrize("kind", PROPOSERS)
@pytest.mark.parametrize("rows", [(1, 2), (1, 2, 3), (1, 4, 7)])
@pytest.mark.parametrize("verify", ["coupled", "rejection"])
def test_every_pass_of_an_answer_has_an_allowed_row_count(kind, rows, verify):
    logits, seen = looping(), []

    class Watching(ScriptedBackend):
        def forward(self, tokens, parents=None, *, rows="all"):
            if rows == "all":
                seen.append(len(tokens))
            return super().forward(tokens, parents, rows=rows)

    made = proposer(kind, logits)
    for policy in (
        controller((made.name,), CURVES["flat"], row_counts=rows),
        FixedPolicy((made.name,), 8, row_counts=rows),
    ):
        clock = SimulatedClock()
        target = Watching(logits, N_VOCAB, clock=clock, seconds=CURVES["flat"])
        s = session(target, made, policy=policy, clock=clock)
        sampling = SamplingSettings(temperature=0.0 if verify == "coupled" else 1.0, seed=3)
        got = answer(s, n=80, sampling=sampling, verify=verify)
        if verify == "coupled":
            assert got.ids == plain(logits, n=80).ids
    assert set(seen) <= set(rows)


def sampled(tops):
    sampler = Sampler(SamplingSettings(temperature=1.0))
    q = sampler.distribution(np.zeros(N_VOCAB, np.float32), (0,), ())
    return chain(range(len(tops)), "draft", [(top, 0.0) for top in tops], [q] * len(tops))


@pytest.mark.parametrize("rows", [None, (1, 3, 4, 6)])
@pytest.mark.parametrize("n", range(1, 9))
def test_how_much_of_a_sampled_draft_is_verified_depends_on_its_length_alone(rows, n):
    policy = controller(("draft",), CURVES["linear"], row_counts=rows)
    policy.begin()
    plan = policy.plan(64)
    kept = {len(policy.trim(sampled(tops))) for tops in ([0.01] * n, [1.0] * n, [1.0] + [0.01] * (n - 1))}
    assert kept == {plan.fit(n)}


def test_a_draft_of_points_is_cut_where_a_sampled_one_is_not():
    policy = controller(("draft",), CURVES["linear"])
    policy.begin()
    tops = [0.99, 0.01, 0.01, 0.01]
    assert cut(policy, sampled(tops)) == 4
    assert cut(policy, drawn(*tops)) < 4


def test_a_draft_model_that_cannot_pay_on_this_device_is_not_even_begun():
    assert controller(("suffix", "draft"), CURVES["steep"], draft=0.6).begin() == ("suffix",)
    assert controller(("suffix", "draft"), CURVES["flat"], draft=1.5).begin() == ("suffix",)
    assert controller(("suffix", "draft"), CURVES["flat"], draft=0.1).begin() == ("suffix", "draft")
    assert controller(("suffix", "draft"), CURVES["flat"], draft=0.1, row_counts=(1,)).begin() == ("suffix",)


def test_a_draft_model_that_was_given_up_is_tried_again_some_answers_later():
    policy = controller(("draft",), CURVES["linear"], draft=0.1)
    assert policy.begin() == ("draft",)
    for _ in range(300):
        policy.calibration.learn((0.9, 0.0), False)
    answers = 0
    while policy.begin() != ("draft",):
        answers += 1
        assert answers < 100
    assert answers > 3


def off(policy, source="suffix"):
    """Drafts that are wrong from their first token, until the policy gives up."""
    draft = chain(range(4), source, [SURE if source == "suffix" else (0.99, 0.0)] * 4)
    for _ in range(64):
        policy.plan(64)
        policy.observe(round_of(NO_DRAFT, 0, 1.0, offered=draft, t_propose=0.8 * (source == "draft")))
    return draft


def test_drafts_that_were_wrong_from_the_first_token_for_long_are_off_and_the_reason_is_said():
    policy = controller(("suffix",), CURVES["flat"])
    policy.begin()
    assert cut(policy, copied(*[SURE] * 4)) == 4
    draft = off(policy)
    assert cut(policy, draft) == 0
    assert not policy.status.on
    assert "64 drafts were wrong" in policy.status.reason


def test_copying_that_is_off_is_on_again_once_it_would_have_been_right():
    policy = controller(("suffix",), CURVES["flat"])
    policy.begin()
    draft = off(policy)
    policy.observe(round_of(NO_DRAFT, 0, 1.0, offered=draft))
    assert cut(policy, draft) == 0
    policy.observe(Outcome(NO_DRAFT, 0, 1, 0, 0.0, 1.0, 0.0, (Offer(draft, ((0, True),)),)))
    assert "likely" in policy.status.reason
    for _ in range(200):
        policy.observe(Outcome(NO_DRAFT, 0, 1, 0, 0.0, 1.0, 0.0, (Offer(draft, ((0, True),)),)))
    assert cut(policy, draft) == 4


def test_a_draft_model_that_is_off_is_asked_for_single_tokens_at_one_percent_of_the_time():
    policy = controller(("draft",), CURVES["flat"], draft=0.2)
    policy.begin()
    off(policy, "draft")
    draws = 0
    for _ in range(1000):
        choose = policy.plan(64).choose
        drew = choose([], []) == "draft"
        draws += drew
        assert choose([(0.99, 0.0)], []) == "stop"
        offered = drawn(0.99) if drew else NO_DRAFT
        policy.observe(round_of(NO_DRAFT, 0, 1.0, offered=offered, t_propose=0.2 * drew))
    assert 0 < draws * 0.2 <= 10


def test_a_new_answer_gives_what_is_off_another_chance():
    policy = controller(("suffix",), CURVES["flat"])
    policy.begin()
    off(policy)
    policy.begin()
    assert "wrong" not in policy.status.reason


def test_a_new_answer_has_a_ledger_of_its_own():
    policy = rich(controller(("suffix",), CURVES["steep"]), CURVES["steep"])
    assert policy.saved > 100
    policy.begin()
    assert policy.saved == 0.0
    for _ in range(3):
        policy.plan(64)
        draft = policy.trim(copied(*[SURE] * 20))
        policy.observe(round_of(draft, 0, CURVES["steep"](len(draft) + 1)))
    lost = policy.saved
    assert lost < 0
    policy.begin()
    assert policy.saved == 0.0


def test_the_models_draft_goes_on_while_it_pays_and_no_further():
    policy = controller(("draft",), CURVES["flat"], draft=0.05)
    policy.begin()
    plan = policy.plan(64)
    assert plan.choose([], []) == "draft"
    assert plan.choose([(0.999, 0.0)], []) == "draft"
    assert plan.choose([(0.999, 0.0)] * 2 + [(0.05, 0.0)] * 3, []) == "stop"
    assert plan.choose([(0.999, 0.0)] * 64, []) == "stop"


def test_a_model_whose_token_costs_more_than_it_brings_is_not_asked():
    policy = controller(("draft",), CURVES["linear"], draft=0.9)
    assert policy.plan(64).choose([], []) == "stop"
    assert policy.plan(64).choose([(0.999, 0.0)], []) == "stop"


def test_inside_a_models_draft_copying_goes_on_for_nothing():
    policy = controller(("suffix", "draft"), CURVES["flat"], draft=0.5, calibration=Calibration())
    policy.begin()
    choose = policy.plan(64).choose
    assert choose([(0.99, 1.0)], [SURE] * 12) == "copy"
    assert choose([(0.99, 1.0)], [UNLIKELY] * 12) != "copy"
    assert choose([(0.99, 0.0)], []) != "copy"


def test_copying_is_not_chosen_where_the_suffix_is_not_allowed():
    policy = controller(("draft",), CURVES["flat"], draft=0.1)
    policy.begin()
    assert policy.plan(64).choose([(0.99, 1.0)], [SURE] * 12) != "copy"


@pytest.mark.parametrize(
    ("policy", "word"),
    [
        (controller(()), "switched off"),
        (controller(("suffix",), row_counts=(1,)), "row count"),
        (controller(("suffix",)), "no answer yet"),
    ],
)
def test_status_says_why_nothing_is_drafted(policy, word):
    assert not policy.status.on
    assert word in policy.status.reason
    assert policy.status.depth == 0


def test_status_says_who_drafts_how_deep_and_what_it_brings():
    policy = rich(controller(("suffix",), CURVES["flat"]), CURVES["flat"], tokens=20)
    assert policy.status.on
    assert (policy.status.proposer, policy.status.depth) == ("suffix", 32)
    assert "ahead of plain" in policy.status.reason


def test_fixed_depth_is_always_the_same():
    policy = FixedPolicy(("suffix", "ngram"), 5)
    assert policy.begin() == ("suffix", "ngram")
    for accepted in (0, 5, 2):
        assert policy.plan(100).max_draft == 5
        policy.observe(round_of(copied(*[SURE] * 5), accepted, 1.0))
    assert policy.status.on
    assert policy.status.depth == 5
