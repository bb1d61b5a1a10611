import pytest
from engine_kit import N_VOCAB, PROMPT, looping, model_proposer, wandering
from session_kit import Recording

from edgespec.backends.scripted import Faults, ScriptedBackend
from edgespec.proposers import ModelProposer
from edgespec.sampling import Sampler, confidence
from edgespec.types import Plan, SamplingSettings

HOT = SamplingSettings(temperature=1.2, seed=6)


def greedy_chain(logits, history, n):
    out = list(history)
    for _ in range(n):
        out.append(int(logits(tuple(out)).argmax()))
    return tuple(out[len(history) :])


def stop_after(n):
    return lambda drafted, copied: "draft" if len(drafted) < n else "stop"


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_draft_is_what_the_small_model_would_say(n):
    logits = looping()
    draft = model_proposer(logits).propose(PROMPT, Plan(("draft",), n))
    assert draft.tokens == greedy_chain(logits, PROMPT, n)
    assert draft.is_chain
    assert draft.q is None
    rows = [logits((*PROMPT, *draft.tokens[:i])) for i in range(n)]
    assert draft.evidence == tuple((confidence(row), 0.0) for row in rows)
    assert draft.sources == ("draft",) * n


def test_a_sampled_draft_under_coupling_uses_the_targets_noise():
    logits = wandering()
    p = model_proposer(logits)
    p.configure(HOT, "coupled")
    draft = p.propose(PROMPT, Plan(("draft",), 5))
    sampler, path = Sampler(HOT), list[int]()
    for _ in range(5):
        path.append(sampler.choose(logits((*PROMPT, *path)), PROMPT, path))
    assert list(draft.tokens) == path
    assert draft.q is None


def test_a_sampled_draft_under_rejection_reports_where_it_was_drawn_from():
    logits = wandering()
    p = model_proposer(logits)
    p.configure(HOT, "rejection")
    draft = p.propose(PROMPT, Plan(("draft",), 5))
    for i, q in enumerate(draft.q):
        expected = Sampler(HOT).distribution(logits((*PROMPT, *draft.tokens[:i])), PROMPT, draft.tokens[:i])
        assert q.ids.tolist() == expected.ids.tolist()
        assert q.probs.tolist() == expected.probs.tolist()
        assert draft.tokens[i] in q.ids


def test_only_what_is_new_is_evaluated():
    logits = looping()
    backend = Recording(logits, N_VOCAB)
    p = ModelProposer(backend, N_VOCAB, lambda _: None)
    first = p.propose(PROMPT, Plan(("draft",), 4)).tokens
    assert backend.passes == [len(PROMPT), 1, 1, 1]
    backend.passes.clear()
    accepted = (*PROMPT, *first, 7)
    p.propose(accepted, Plan(("draft",), 1))
    assert backend.passes == [2], "the last drafted token and the target's own"
    backend.passes.clear()
    rejected = (*PROMPT, first[0], 9)
    second = p.propose(rejected, Plan(("draft",), 3)).tokens
    assert backend.passes == [1, 1, 1]
    assert second == greedy_chain(logits, rejected, 3)


@pytest.mark.parametrize("refuse", [False, True])
def test_an_edited_history_is_like_a_new_one(refuse):
    logits = looping()
    p = model_proposer(logits, faults=Faults(refuse_rollback=refuse))
    p.propose(PROMPT, Plan(("draft",), 6))
    edited = (*PROMPT[:5], 9, 8)
    p.begin(edited)
    assert p.propose(edited, Plan(("draft",), 6)).tokens == greedy_chain(logits, edited, 6)


def test_the_plan_may_stop_the_draft_between_tokens():
    asked = []

    def choose(drafted, copied):
        asked.append((tuple(drafted), tuple(copied)))
        return "draft" if len(drafted) < 3 else "stop"

    draft = model_proposer(looping()).propose(PROMPT, Plan(("draft",), 8, choose=choose))
    assert len(draft) == 3
    assert asked == [(draft.evidence[:i], ()) for i in range(4)]


def test_not_worth_a_token_means_no_pass():
    backend = Recording(looping(), N_VOCAB)
    p = ModelProposer(backend, N_VOCAB, lambda _: None)
    assert p.propose(PROMPT, Plan(("draft",), 8, choose=lambda drafted, copied: "stop")).tokens == ()
    assert backend.passes == []


@pytest.mark.parametrize("stop", range(1, 9))
def test_no_sampled_token_is_dropped_for_what_came_after_it(stop):
    """Rejection sampling is biased if a token's fate hangs on later tokens: a draft ends where all stand."""
    p = model_proposer(wandering())
    p.configure(HOT, "rejection")
    plan = Plan(("draft",), 8, (1, 2, 5, 9), stop_after(stop))
    draft = p.propose(PROMPT, plan)
    assert plan.fit(len(draft)) == len(draft) >= stop


@pytest.mark.parametrize("room", [0, 1, 2, 5])
def test_a_draft_never_leaves_its_own_context(room):
    notices = []
    p = model_proposer(looping(), n_ctx=len(PROMPT) + room, notify=notices.append)
    for _ in range(3):
        assert len(p.propose(PROMPT, Plan(("draft",), 8))) == room
    assert len(notices) == (0 if room else 1)
    p.begin(PROMPT)
    p.propose(PROMPT, Plan(("draft",), 8))
    assert len(notices) == (0 if room else 2), "a new answer says it anew"


def test_a_history_with_unknown_ids_and_penalties_still_drafts():
    """The target's vocabulary may be padded further than the draft's."""
    p = ModelProposer(ScriptedBackend(looping(), N_VOCAB), N_VOCAB, lambda _: None)
    p.configure(SamplingSettings(temperature=0.0, repeat_penalty=1.5), "coupled")
    assert len(p.propose((*PROMPT, N_VOCAB + 3), Plan(("draft",), 4))) == 4
