"""Which draft model drafts: the one that is faster by what was learnt, and the other is tried again."""

import pytest
from engine_kit import CURVES, N_VOCAB, PROMPT, answer, looping, plain, timed

from edgespec.backends.scripted import ScriptedBackend
from edgespec.control import SMALL, Calibration, Controller, CostModel, Stages
from edgespec.engine import Session
from edgespec.proposers import ModelProposer, SuffixProposer
from edgespec.types import NO_DRAFT, Offer, Outcome, chain

LOGITS = looping()


def wrong(context):
    return -LOGITS(context)


def stages(curve="flat", mid=0.2, small=0.02, sources=("draft",)):
    passes = {n: CURVES[curve](n) for n in range(1, 66)}
    first = Calibration()
    return Stages(
        {
            "draft": Controller(sources, CostModel(passes, {"draft": mid}), first),
            SMALL: Controller(sources, CostModel(passes, {"draft": small}), Calibration().sharing(first)),
        }
    )


def running(policy, mid, small, curve="flat", sources=()):
    """A session of two draft models on simulated time."""
    target, clock = timed(LOGITS, CURVES[curve])
    drafts = {
        name: ModelProposer(
            ScriptedBackend(logits, N_VOCAB, clock=clock, seconds=lambda n, each=each: each), N_VOCAB, print
        )
        for name, logits, each in (("draft", mid, 0.2), (SMALL, small, 0.02))
    }
    proposers = drafts | {name: SuffixProposer() for name in sources}
    return Session(target, lambda _: False, policy, proposers, clock=clock)


def test_the_cheaper_one_is_kept_where_it_is_as_right():
    policy = stages()
    s = running(policy, LOGITS, LOGITS)
    for turn in range(4):
        got = answer(s, (*PROMPT, turn), 80)
        assert got.ids == plain(LOGITS, (*PROMPT, turn), 80).ids
        assert policy.now == SMALL
    assert policy.status.on


def test_one_that_is_mostly_wrong_gives_way_and_is_tried_again():
    policy = stages()
    s = running(policy, LOGITS, wrong)
    taken = []
    for turn in range(60):
        answer(s, (*PROMPT, turn % N_VOCAB), 40)
        taken.append(policy.now)
    assert taken[0] == SMALL, "before anything is known the cheaper one promises more"
    assert taken[1:9] == ["draft"] * 8
    assert SMALL in taken[9:]
    assert taken.count("draft") > 45


@pytest.mark.parametrize("curve", CURVES)
def test_two_that_are_always_wrong_cost_three_percent_at_most(curve):
    policy = stages(curve)
    s = running(policy, wrong, wrong, curve)
    for turn in range(6):
        outcomes = answer(s, (*PROMPT, turn), 100).outcomes[1:]
        spent = sum(o.t_propose + o.t_verify for o in outcomes)
        assert sum(o.emitted for o in outcomes) / spent >= 0.97


def test_only_the_one_that_drafts_is_asked_and_made_ready():
    policy = stages(sources=("suffix", "draft"))
    assert policy.begin() == ("suffix", SMALL)
    assert policy.plan(8).proposers == ("suffix", SMALL)
    assert policy.plan(0).proposers == ()


def test_passes_and_copying_are_learnt_for_both_and_drafting_for_one():
    policy = stages(sources=("suffix", "draft"))
    policy.begin()
    policy.plan(8)
    copied = chain([1], "suffix", [(3.0, 1.0, 1.0)])
    drafted = chain([1], "draft", [(0.9, 0.0)])
    for _ in range(50):
        offers = (Offer(copied, ((0, False),)), Offer(drafted, ((0, False),)))
        policy.observe(Outcome(NO_DRAFT, 0, 1, 0, 0.02, 3.0, 0.0, offers))
    mid, small = policy._ways["draft"], policy._ways[SMALL]
    assert mid.cost.plain == pytest.approx(small.cost.plain)
    assert mid.calibration.chance((3.0, 1.0, 1.0)) == small.calibration.chance((3.0, 1.0, 1.0)) < 0.3
    assert small.calibration.drafting < 0.3 < 0.8 < mid.calibration.drafting
    kept = Calibration.from_json(mid.calibration.as_json())
    assert kept.chance((3.0, 1.0, 1.0)) == mid.calibration.chance((3.0, 1.0, 1.0))
