"""The ids never depend on who guesses, how deep, or how luckily."""

import math

import pytest
from engine_kit import (
    CURVES,
    GREEDY,
    N_VOCAB,
    PROMPT,
    PROPOSERS,
    VOCABULARY,
    TreeProposer,
    answer,
    controller,
    looping,
    model_proposer,
    plain,
    proposer,
    remembering,
    session,
    timed,
    wandering,
)

from edgespec.backends.scripted import Faults, ScriptedBackend, SimulatedClock
from edgespec.control import FixedPolicy
from edgespec.engine import Request, Session
from edgespec.errors import PromptTooLongError
from edgespec.proposers import ModelProposer, NgramProposer, SuffixProposer
from edgespec.proposers.recycling import RecyclingProposer
from edgespec.text.stream import TokenStream
from edgespec.types import SamplingSettings

DEPTHS = (1, 2, 3, 5, 8, 16)
HOT = SamplingSettings(temperature=1.2, top_k=0, top_p=1.0, min_p=0.0, seed=11)
SHAPED = SamplingSettings(
    temperature=1.2,
    top_k=8,
    top_p=0.9,
    min_p=0.02,
    repeat_penalty=1.3,
    frequency_penalty=0.2,
    presence_penalty=0.4,
    penalty_last_n=6,
    logit_bias={3: -math.inf, 5: 1.5},
    seed=4,
)
SHAPED_GREEDY = SamplingSettings(
    temperature=0.0, repeat_penalty=1.5, presence_penalty=1.0, frequency_penalty=0.5, penalty_last_n=-1
)


def with_proposer(kind, logits, depth, sampling, n=60, **backend):
    target = ScriptedBackend(logits, N_VOCAB, **backend)
    s = session(target, proposer(kind, logits), depth, clock=SimulatedClock())
    return answer(s, PROMPT, n, sampling)


@pytest.mark.parametrize("kind", PROPOSERS)
@pytest.mark.parametrize(
    ("make", "sampling"),
    [(looping, GREEDY), (looping, SHAPED_GREEDY), (wandering, HOT), (wandering, SHAPED)],
    ids=["greedy", "greedy with penalties", "hot", "hot with everything"],
)
def test_every_proposer_at_every_depth_gives_plain_ids(kind, make, sampling):
    logits = make()
    expected = plain(logits, sampling=sampling).ids
    assert len(expected) == 60
    for depth in DEPTHS:
        assert with_proposer(kind, logits, depth, sampling).ids == expected


@pytest.mark.parametrize("kind", ["ngram", "suffix", "same model", "other model"])
@pytest.mark.parametrize(
    ("make", "sampling"), [(looping, SHAPED_GREEDY), (wandering, HOT), (wandering, SHAPED)]
)
def test_drafts_that_branch_give_plain_ids(kind, make, sampling):
    logits, branched = make(), 0
    expected = plain(logits, sampling=sampling).ids
    for depth in DEPTHS:
        made = proposer(kind, logits)
        policy = FixedPolicy((made.name,), depth, trees=True)
        got = answer(session(ScriptedBackend(logits, N_VOCAB), made, policy=policy), PROMPT, 60, sampling)
        assert got.ids == expected
        branched += sum(not outcome.draft.is_chain for outcome in got.outcomes)
    assert (branched > 0) == (kind != "ngram")


@pytest.mark.parametrize("kind", ["suffix", "other model"])
def test_branches_under_rejection_are_repeatable_and_models_do_not_branch(kind):
    def run():
        logits = wandering()
        made = proposer(kind, logits)
        policy = FixedPolicy((made.name,), 6, trees=True)
        s = session(ScriptedBackend(logits, N_VOCAB), made, policy=policy)
        return answer(s, PROMPT, 80, HOT, verify="rejection")

    got = run()
    assert got.ids == run().ids
    assert any(not outcome.draft.is_chain for outcome in got.outcomes) == (kind == "suffix")


@pytest.mark.parametrize("kind", ["ngram", "suffix", "memory", "recycling", "same model", "tree"])
def test_speculation_really_happens_in_these_tests(kind):
    got = with_proposer(kind, looping(), 5, GREEDY)
    assert got.accepted > 10


def test_drafts_are_accepted_under_penalties_because_verification_sees_the_drafted_path():
    logits = wandering()
    same = with_proposer("same model", logits, 6, SHAPED)
    assert same.accepted == same.verified > 30


def test_another_seed_gives_another_text():
    logits = wandering()
    texts = {tuple(plain(logits, sampling=SamplingSettings(temperature=1.2, seed=s)).ids) for s in range(5)}
    assert len(texts) == 5


def test_temperature_zero_ignores_the_seed():
    logits = wandering()
    texts = {tuple(plain(logits, sampling=SamplingSettings(temperature=0.0, seed=s)).ids) for s in range(5)}
    assert len(texts) == 1


@pytest.mark.parametrize("kind", PROPOSERS)
def test_the_controller_gives_plain_ids(kind):
    logits = wandering()
    made = proposer(kind, logits)
    target, clock = timed(logits, CURVES["flat"])
    policy = controller((made.name,), CURVES["flat"], draft_max=16, row_counts=(1, 2, 3, 6))
    got = answer(session(target, made, policy=policy, clock=clock), PROMPT, 200, HOT)
    assert got.ids == plain(logits, n=200, sampling=HOT).ids
    assert got.verified > 0


def test_all_proposers_together_give_plain_ids():
    logits = looping(salt=3)
    proposers = {
        "suffix": SuffixProposer(),
        "memory": remembering(plain(looping(salt=5), n=100).ids, plain(logits, n=60).ids),
        "ngram": NgramProposer(),
        "recycling": RecyclingProposer(),
        "draft": model_proposer(looping(salt=9)),
    }
    for sampling in (GREEDY, HOT):
        for policy in (
            FixedPolicy(tuple(proposers), 6),
            controller(tuple(proposers), CURVES["flat"]),
            controller(tuple(proposers), CURVES["flat"], trees=True),
        ):
            target, clock = timed(logits, CURVES["flat"])
            s = Session(target, lambda _: False, policy, proposers, clock=clock)
            assert answer(s, PROMPT, 150, sampling).ids == plain(logits, n=150, sampling=sampling).ids


def test_rejection_with_the_target_as_its_own_draft_accepts_everything():
    logits = wandering()
    s = session(ScriptedBackend(logits, N_VOCAB), proposer("same model", logits), 4)
    got = answer(s, PROMPT, 60, HOT, verify="rejection")
    assert got.accepted == got.verified > 0


def test_rejection_at_temperature_zero_is_plain():
    logits = looping()
    for kind in PROPOSERS:
        s = session(ScriptedBackend(logits, N_VOCAB), proposer(kind, logits), 4)
        assert answer(s, verify="rejection").ids == plain(logits).ids


def test_rejection_is_repeatable_with_a_seed():
    def run(seed):
        logits = wandering()
        s = session(ScriptedBackend(logits, N_VOCAB), proposer("other model", logits), 4)
        return answer(s, PROMPT, 60, SamplingSettings(temperature=1.2, seed=seed), verify="rejection").ids

    assert run(1) == run(1)
    assert run(1) != run(2)


# Caches that cannot drop rows


@pytest.mark.parametrize("kind", PROPOSERS)
@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "hot"])
def test_a_sliding_window_that_fills_up_changes_nothing(kind, sampling):
    logits = looping()
    prompt = tuple(i % 5 for i in range(28))
    target = ScriptedBackend(logits, N_VOCAB, faults=Faults(window=32))
    notices = []
    s = session(target, proposer(kind, logits), 8, notify=notices.append)
    got = answer(s, prompt, 500, sampling)
    assert got.ids == plain(logits, prompt, 500, sampling=sampling).ids
    assert s.tokens == target.tokens
    assert notices == [], "nothing was refused, since rollback was asked for every round"


@pytest.mark.parametrize("kind", PROPOSERS)
def test_a_refused_rollback_switches_speculation_off_with_one_notice(kind):
    logits = looping()
    target = ScriptedBackend(logits, N_VOCAB, faults=Faults(refuse_rollback=True))
    notices = []
    s = session(target, proposer(kind, logits), 5, notify=notices.append, clock=SimulatedClock())
    got = answer(s, PROMPT, 120, HOT)
    assert got.ids == plain(logits, n=120, sampling=HOT).ids
    assert s.tokens == target.tokens == (*PROMPT, *got.ids)[: len(s.tokens)]
    refused = [o for o in got.outcomes if len(o.draft) > o.accepted]
    assert len(notices) == len(refused) == (0 if kind == "same model" else 1)
    assert all("speculation is off" in notice for notice in notices)


def test_a_cache_that_cannot_be_cut_for_an_edited_turn_is_filled_anew():
    logits = looping()
    s = session(ScriptedBackend(logits, N_VOCAB, faults=Faults(refuse_rollback=True)))
    answer(s, (0, 1, 2, 3, 4), 10)
    edited = (0, 1, 2, 7, 8)
    got = answer(s, edited, 10)
    assert got.ids == plain(logits, edited, 10).ids
    assert got.outcomes[0].context == 0, "nothing could be reused"


def test_without_rollback_nothing_is_drafted():
    logits = looping()

    class Never(ScriptedBackend):
        asked = 0

        @property
        def capabilities(self):
            Never.asked += 1
            return super().capabilities.__class__("none", False, False, 1)

    got = answer(session(Never(logits, N_VOCAB), proposer("ngram", logits), 5))
    assert got.ids == plain(logits).ids
    assert got.verified == 0
    assert Never.asked >= len(got.outcomes) - 1


def test_the_number_of_rows_is_asked_every_round():
    logits, rounds = looping(), []

    class Shrinking(ScriptedBackend):
        @property
        def capabilities(self):
            most = 2 + len(rounds) % 5
            return super().capabilities.__class__("exact", True, False, most)

        def forward(self, tokens, parents=None, *, rows="all"):
            if rows == "all":
                assert len(tokens) <= self.capabilities.max_rows
                rounds.append(len(tokens))
            return super().forward(tokens, parents, rows=rows)

    got = answer(session(Shrinking(logits, N_VOCAB), proposer("same model", logits), 16))
    assert got.ids == plain(logits).ids
    assert rounds[:4] == [2, 3, 4, 5]


def test_a_tree_for_a_backend_without_trees_is_not_verified():
    logits = looping()
    target = ScriptedBackend(logits, N_VOCAB, faults=Faults(tree=False))

    class ChainsOnly(ScriptedBackend):
        def forward(self, tokens, parents=None, *, rows="all"):
            assert parents is None
            return super().forward(tokens, parents, rows=rows)

    target = ChainsOnly(logits, N_VOCAB, faults=Faults(tree=False))
    got = answer(session(target, TreeProposer(logits, N_VOCAB), 6))
    assert got.ids == plain(logits).ids


# Limits


@pytest.mark.parametrize("kind", PROPOSERS)
@pytest.mark.parametrize(("n_prompt", "room"), [(512, 1), (511, 2), (505, 8), (480, 33)])
def test_a_full_context_ends_every_answer_at_the_same_token(kind, n_prompt, room):
    logits = looping()
    prompt = [i % 7 for i in range(n_prompt)]
    expected = plain(logits, prompt, 50, n_ctx=512)
    target = ScriptedBackend(logits, N_VOCAB, n_ctx=512)
    s = session(target, proposer(kind, logits), 16)
    got = answer(s, prompt, 50)
    assert got.ids == expected.ids
    assert len(got.ids) == min(room, 50)
    assert got.finish == expected.finish == "length"
    assert target.length <= 512


@pytest.mark.parametrize("kind", PROPOSERS)
def test_a_prompt_beyond_the_context_is_refused_with_both_counts(kind):
    logits = looping()
    target = ScriptedBackend(logits, N_VOCAB, n_ctx=512)
    s = session(target, proposer(kind, logits), 16)
    with pytest.raises(PromptTooLongError, match=r"600.*512"):
        s.generate([1] * 600, Request(), TokenStream(VOCABULARY))
    assert target.calls == 0
    assert answer(s, PROMPT, 5).ids == plain(logits, n=5).ids


def test_without_a_limit_the_answer_fills_the_context():
    logits = looping()
    s = session(ScriptedBackend(logits, N_VOCAB, n_ctx=100), proposer("same model", logits), 16)
    got = answer(s, PROMPT, None)
    assert len(got.ids) == 100 - len(PROMPT) + 1
    assert got.finish == "length"


def test_a_small_draft_context_pauses_the_draft_and_says_so_once():
    logits, notices = looping(), []
    draft = ModelProposer(ScriptedBackend(logits, N_VOCAB, n_ctx=128), N_VOCAB, notices.append)
    s = session(ScriptedBackend(logits, N_VOCAB, n_ctx=2048), draft, 4)
    got = answer(s, PROMPT, 400)
    assert got.ids == plain(logits, n=400).ids
    assert len(notices) == 1
    assert "128" in notices[0]
    assert got.accepted > 50
    again = answer(s, (3, 2, 1), 50)
    assert again.ids == plain(logits, (3, 2, 1), 50).ids
    assert again.accepted > 20, "the next request uses the draft again"


def test_ids_beyond_the_smaller_vocabulary_are_never_drafted():
    def padding(context):
        row = wandering(N_VOCAB)(context)
        row[10:] = 50.0  # the draft model would always say one of these
        return row

    draft = ModelProposer(ScriptedBackend(padding, N_VOCAB), 10, lambda _: None)
    for sampling, verify in ((GREEDY, "coupled"), (HOT, "coupled"), (HOT, "rejection")):
        s = session(ScriptedBackend(wandering(), N_VOCAB), draft, 4)
        got = answer(s, PROMPT, 60, sampling, verify=verify)
        drafted = [token for outcome in got.outcomes for token in outcome.draft.tokens]
        assert drafted
        assert max(drafted) < 10
