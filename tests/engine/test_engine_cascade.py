"""A draft model that is drafted for: it says what it would say alone, and the text stays the target's."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from engine_kit import (
    CURVES,
    GREEDY,
    N_VOCAB,
    PROMPT,
    answer,
    cascade,
    controller,
    looping,
    plain,
    session,
    timed,
    wandering,
)
from scipy import stats
from session_kit import Recording

from edgespec.backends.scripted import Faults, ScriptedBackend, SimulatedClock, from_table
from edgespec.control import Controller, CostModel, FixedPolicy
from edgespec.engine.cascade import Cascade
from edgespec.proposers import ModelProposer, SuffixProposer
from edgespec.proposers.suffix import SuffixAhead
from edgespec.types import Plan, SamplingSettings

HOT = SamplingSettings(temperature=1.2, top_k=0, top_p=1.0, min_p=0.0, seed=11)
OPEN = SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=5)
PENALISED = replace(HOT, repeat_penalty=1.3, presence_penalty=0.4)


def made(mid, tiny=None, *, inner=None, clock=None, notify=lambda _: None, backend=None, **how):
    """(a draft model, its backend, what drafts for it); `inner`: the policy of that."""
    clock = clock or SimulatedClock()
    backend = backend or ScriptedBackend(mid, N_VOCAB, clock=clock, **how)
    suffix = SuffixProposer()
    proposers = {"suffix": SuffixAhead(suffix)}
    if tiny is not None:
        small = tiny if isinstance(tiny, ScriptedBackend) else ScriptedBackend(tiny, N_VOCAB, clock=clock)
        proposers["draft"] = ModelProposer(small, N_VOCAB, notify, SuffixAhead(suffix))
    quick = Cascade(backend, N_VOCAB, proposers, notify, clock)
    quick.use(inner or FixedPolicy(tuple(proposers), 4), getattr(inner, "cost", None))
    return ModelProposer(backend, N_VOCAB, notify, suffix, quick), backend, quick


@pytest.mark.parametrize("sampling", [GREEDY, HOT, PENALISED], ids=["greedy", "hot", "penalised"])
@pytest.mark.parametrize("depth", [0, 1, 3, 7])
@pytest.mark.parametrize("tiny", [1, 2, None], ids=["the same", "another", "copying alone"])
def test_under_coupling_it_drafts_what_the_model_alone_drafts(tiny, depth, sampling):
    mid, rng = looping(), np.random.default_rng(depth)
    alone = ModelProposer(ScriptedBackend(mid, N_VOCAB), N_VOCAB, lambda _: None, SuffixProposer())
    inner = FixedPolicy(("suffix",) if tiny is None else ("draft",), depth)
    quick, backend, _ = made(mid, None if tiny is None else looping(salt=tiny), inner=inner)
    history = list(PROMPT)
    for proposer in (alone, quick):
        proposer.configure(sampling, "coupled")
        proposer.begin(history)
    for _ in range(30):
        plan = Plan(("draft",), int(rng.integers(1, 9)))
        draft = quick.propose(history, plan)
        assert draft == alone.propose(history, plan)
        right = int(rng.integers(len(draft) + 1))
        history += [*draft.tokens[:right], int(rng.integers(N_VOCAB))]
        text = [*history[: -right - 1], *draft.tokens]
        assert list(backend.tokens) == text[: backend.length], "no rejected row is left"
        assert backend.length >= len(text) - 1


def test_a_model_that_is_drafted_for_takes_fewer_passes():
    backend = Recording(looping(), N_VOCAB)
    quick, _, cascade_of = made(None, looping(), inner=FixedPolicy(("draft",), 4), backend=backend)
    quick.begin(PROMPT)
    draft = quick.propose(PROMPT, Plan(("draft",), 10))
    assert len(draft) == 10
    assert backend.passes == [len(PROMPT), *[5, 5]] or sum(backend.passes[1:]) <= 11
    assert len(backend.passes) <= 4
    assert cascade_of.verified["draft"][0] == cascade_of.verified["draft"][1] >= 7


def test_tokens_that_the_cache_lacks_go_first_in_the_next_pass():
    backend = Recording(looping(), N_VOCAB)
    quick, _, _ = made(None, looping(), inner=FixedPolicy(("draft",), 3), backend=backend)
    first = quick.propose(PROMPT, Plan(("draft",), 4)).tokens
    backend.passes.clear()
    quick.propose((*PROMPT, *first, 7), Plan(("draft",), 4))
    assert backend.passes == [2 + 3], "the last drafted token, the target's own, and three of the block"


# Distributions

DRAWS = 3_000
P = ((0.6, 0.3, 0.1), (0.1, 0.1, 0.8), (0.3, 0.4, 0.3))
MID = ((0.3, 0.2, 0.5), (0.4, 0.3, 0.3), (0.1, 0.7, 0.2))
TINY = ((0.1, 0.6, 0.3), (0.2, 0.6, 0.2), (0.5, 0.2, 0.3))


def markov(rows):
    return from_table({(i,): row for i, row in enumerate(rows)}, rows[0])


class Picky(FixedPolicy):
    """Stops a draft after a token that the model was not sure of: what it drew beyond stays unused."""

    def plan(self, limit, tree=False):
        plan = super().plan(limit, tree)
        return replace(plan, choose=lambda known, _: "stop" if known and known[-1][0] < 0.6 else "draft")


def transitions(texts, rows):
    """The p-value of each row: what followed each token."""
    pairs = Counter(pair for text in texts for pair in itertools.pairwise(text))
    for a, row in enumerate(rows):
        seen = np.array([pairs[a, b] for b in range(3)], float)
        yield stats.chisquare(seen, np.array(row) * seen.sum()).pvalue


def neighbours(texts, rows):
    """Whether what follows depends on more than the last token: its p-value for each."""
    triples = Counter(triple for text in texts for triple in zip(text, text[1:], text[2:], strict=False))
    for b, row in enumerate(rows):
        seen = np.array([[triples[a, b, c] for c in range(3)] for a in range(3)], float)
        expected = seen.sum(axis=1, keepdims=True) * np.array(row)
        yield stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), 6)


def learning():
    """An inner policy that follows what it has seen, also of tokens that stayed unused."""
    curve = {n: 1.0 + 0.02 * (n - 1) for n in range(1, 17)}
    return Controller(("suffix", "draft"), CostModel(curve, {"draft": 0.01}), draft_max=15)


INNER = {
    "tiny": lambda: FixedPolicy(("draft",), 3),
    "copying": lambda: FixedPolicy(("suffix",), 3),
    "both": lambda: FixedPolicy(("suffix", "draft"), 2),
    "learning": learning,
}


@pytest.mark.parametrize(
    ("outer", "inner"),
    [("all", "tiny"), ("all", "both"), ("picky", "tiny"), ("picky", "copying"), ("picky", "learning")],
)
def test_under_rejection_the_text_is_distributed_as_the_targets(outer, inner):
    clock = SimulatedClock()

    def backend(rows, seconds):
        return ScriptedBackend(markov(rows), 3, clock=clock, seconds=lambda n: seconds)

    policy = (FixedPolicy if outer == "all" else Picky)(("draft",), 5, row_counts=(1, 2, 4, 6))
    mid, tiny, suffix = backend(MID, 0.3), backend(TINY, 0.01), SuffixProposer()
    small = ModelProposer(tiny, 3, lambda _: None, SuffixAhead(suffix))
    quick = Cascade(mid, 3, {"suffix": SuffixAhead(suffix), "draft": small}, lambda _: None, clock)
    quick.use(INNER[inner]())
    draft = ModelProposer(mid, 3, lambda _: None, suffix, quick)
    s = session(backend(P, 1.0), draft, policy=policy, clock=clock)
    texts, verified = [], 0
    for seed in range(DRAWS // 100):
        texts.append([0, *answer(s, [0], 100, replace(OPEN, seed=seed), verify="rejection").ids])
        verified += sum(n for _, n in quick.verified.values())
    assert min(transitions(texts, P)) > 0.01
    assert min(neighbours(texts, P)) > 0.001
    assert verified > DRAWS / 5, "the draft model is drafted for"


@pytest.mark.parametrize("depth", [1, 3])
def test_what_the_middle_draws_is_its_own_distribution(depth):
    """Whatever drafts for it: q is what its tokens are drawn from."""
    mid, tiny = (ScriptedBackend(markov(rows), 3) for rows in (MID, TINY))
    small = ModelProposer(tiny, 3, lambda _: None)
    quick = Cascade(mid, 3, {"draft": small}, lambda _: None)
    quick.use(FixedPolicy(("draft",), depth))
    draft = ModelProposer(mid, 3, lambda _: None, None, quick)
    texts = []
    for seed in range(DRAWS // 100):
        draft.configure(replace(OPEN, seed=seed), "rejection")
        tokens = [0]
        while len(tokens) < 100:
            found = draft.propose(tokens, Plan(("draft",), 5))
            for q, before in zip(found.q, [tokens[-1], *found.tokens], strict=False):
                assert q.probs == pytest.approx(MID[before])
            tokens += found.tokens
        texts.append(tokens)
    assert min(transitions(texts, MID)) > 0.01
    assert min(neighbours(texts, MID)) > 0.001


def test_under_rejection_a_seed_repeats_itself():
    def run(seed):
        s = session(ScriptedBackend(wandering(), N_VOCAB), made(looping(salt=9), looping(salt=8))[0], 4)
        return answer(s, PROMPT, 60, replace(HOT, seed=seed), verify="rejection").ids

    assert run(1) == run(1)
    assert run(1) != run(2)


# Failures


def test_a_small_model_that_fails_is_left_out_and_told():
    notices, logits = [], looping()
    tiny = ScriptedBackend(looping(salt=7), N_VOCAB, faults=Faults(fail_at=9))
    quick, _, inner = made(looping(salt=9), tiny, inner=FixedPolicy(("draft",), 3), notify=notices.append)
    got = answer(session(ScriptedBackend(logits, N_VOCAB), quick, 5))
    assert got.ids == plain(logits).ids
    assert len(notices) == 1
    assert "for the draft model, the draft proposer failed" in notices[0]
    assert inner.verified["draft"][1] > 0
    assert got.verified > 100


@pytest.mark.parametrize("tiny", [8, None])
def test_a_draft_model_that_cannot_drop_rows_goes_on_alone(tiny):
    notices, logits = [], looping()
    quick, _, _ = made(
        looping(salt=9),
        None if tiny is None else looping(salt=tiny),
        notify=notices.append,
        faults=Faults(refuse_rollback=True),
    )
    for _ in range(2):
        got = answer(session(ScriptedBackend(logits, N_VOCAB), quick, 5), PROMPT, 60, HOT)
        assert got.ids == plain(logits, sampling=HOT).ids
        assert got.verified > 100
    assert len(notices) == 1
    assert "nothing drafts for the draft model any more" in notices[0]


@pytest.mark.parametrize("faults", [Faults(window=24), Faults(max_rows=2), Faults(max_rows=1)])
def test_limits_of_the_draft_models_cache_are_kept(faults):
    logits = looping()
    quick, _, _ = made(looping(salt=9), looping(salt=9), faults=faults)
    got = answer(session(ScriptedBackend(logits, N_VOCAB), quick, 5))
    assert got.ids == plain(logits).ids
    assert got.verified > 100


# Time


@pytest.mark.parametrize("curve", ["flat", "linear", "steep"])
@pytest.mark.parametrize("tiny", ["right", "wrong"])
def test_what_drafts_for_the_draft_model_may_lose_little_of_its_time(tiny, curve):
    """The inner ledger: a draft model with a hopeless helper takes 3% more at most; with a good one less."""
    mid = looping(salt=9)

    def seconds(inner):
        clock = SimulatedClock()
        backend = ScriptedBackend(mid, N_VOCAB, clock=clock, seconds=lambda n: 0.1 * CURVES[curve](n))
        logits = mid if tiny == "right" else lambda context: -mid(context)
        small = ScriptedBackend(logits, N_VOCAB, clock=clock, seconds=lambda n: 0.01)
        passes = {n: 0.1 * CURVES[curve](n) for n in (1, 2, 4, 8, 16)}
        policy = Controller(("draft",), CostModel(passes, {"draft": 0.01}), draft_max=15)
        quick, _, _ = made(mid, small, inner=policy if inner else None, clock=clock, backend=backend)
        if not inner:
            quick = ModelProposer(backend, N_VOCAB, lambda _: None)
        target = ScriptedBackend(mid, N_VOCAB, clock=clock, seconds=CURVES["flat"])
        answer(session(target, quick, 12, clock=clock), PROMPT, 600, HOT)
        return clock.now

    ratio = seconds(True) / seconds(False)
    print(f"\n{tiny} on {curve}: {ratio:.3f} of the time")
    assert ratio < (0.97 if tiny == "right" and curve != "steep" else 1.03)


def test_the_pass_costs_that_are_learnt_are_those_without_late_tokens():
    clock = SimulatedClock()
    backend = ScriptedBackend(looping(), N_VOCAB, clock=clock, seconds=lambda n: 0.1 * n)
    cost = CostModel({n: 0.1 * n for n in (1, 2, 4, 8)}, {"draft": 0.001})
    inner = Controller(("draft",), cost, draft_max=15)
    small = ScriptedBackend(looping(salt=5), N_VOCAB)
    quick, _, _ = made(None, small, inner=inner, clock=clock, backend=backend)
    target = ScriptedBackend(looping(), N_VOCAB)
    answer(session(target, quick, 3, clock=clock), PROMPT, 300)
    assert cost.factor == pytest.approx(1.0)


@pytest.mark.parametrize("curve", CURVES)
def test_the_whole_cascade_keeps_the_floor(curve):
    """Hopeless models all the way down: the outer ledger counts what the inner one lost, too."""
    logits = looping()

    def wrong(context):
        return -logits(context)

    def seconds(n):
        """Catching up with the text, as with a prompt, is not verification."""
        return 0.2 * (CURVES[curve](n) if n <= 16 else 1.0)

    target, clock = timed(logits, CURVES[curve])
    passes = {n: seconds(n) for n in (1, 2, 4, 8)}
    inner = Controller(("suffix", "draft"), CostModel(passes, {"draft": 0.02}), draft_max=15)
    quick, _, _ = made(wrong, wrong, inner=inner, clock=clock, seconds=seconds)
    policy = controller(("draft",), CURVES[curve], draft=0.2)
    events = answer(session(target, quick, policy=policy, clock=clock), PROMPT, 150, GREEDY).outcomes
    spent = sum(o.t_propose + o.t_verify for o in events[1:])
    assert 149 / spent >= 0.97


def test_the_controller_over_a_cascade_gives_plain_ids():
    logits = wandering()
    target, clock = timed(logits, CURVES["flat"])
    policy = controller(("draft",), CURVES["flat"], draft_max=16, row_counts=(1, 2, 3, 6))
    quick = cascade(wandering(salt=3), logits)
    got = answer(session(target, quick, policy=policy, clock=clock), PROMPT, 200, HOT)
    assert got.ids == plain(logits, n=200, sampling=HOT).ids
    assert got.verified > 0
