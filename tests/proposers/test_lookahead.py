"""Lookahead and Jacobi: how guesses move on, and what the n-grams are made of."""

import numpy as np
import pytest
from engine_kit import GREEDY, N_VOCAB, PROMPT, answer, looping, plain, session, wandering

from edgespec.backends.scripted import ScriptedBackend
from edgespec.control import FixedPolicy
from edgespec.engine import Session
from edgespec.proposers import SuffixProposer
from edgespec.proposers.lookahead import LookaheadProposer
from edgespec.types import NO_DRAFT, Plan, SamplingSettings, Verdict, Window

HOT = SamplingSettings(temperature=1.2, top_k=0, top_p=1.0, min_p=0.0, seed=11)
WIDE, CHAIN = Plan(("lookahead",), 16, tree=True), Plan(("jacobi",), 16)


class Saying:
    """A target that says a function of the drafted path."""

    def __init__(self, says):
        self._says = says
        self.paths = []

    def passes(self, made, history, window, n):
        """So many passes in which nothing is accepted. Returns the history."""
        for _ in range(n):
            draft = made.window(history, window)
            self.paths = [draft.path(i) for i in range(len(draft))]
            said = self._says([])
            made.refine(draft, Verdict((), said), lambda i: self._says(self.paths[i]))
            history = [*history, said]
        return history


def test_without_a_window_nothing_is_guessed():
    made = LookaheadProposer()
    made.begin([1, 2, 3])
    assert made.propose([1, 2, 3], WIDE) == NO_DRAFT


def test_a_window_is_w_chains_on_one():
    made = LookaheadProposer()
    made.begin([1, 2, 3])
    Saying(lambda path: 50 + len(path)).passes(made, [1, 2, 3], Window(4, 4), 2)
    draft = made.window([1, 2, 3], Window(4, 4))
    assert len(draft) == 4 * 3
    assert draft.parents[:4] == (-1, 0, 1, 2)
    for j in range(4):
        assert sum(len(draft.path(i)) == j + 3 and draft.path(i)[: j + 1] == draft.path(j) for i in range(12))


def test_jacobi_takes_the_targets_answers_as_its_next_guesses():
    made = LookaheadProposer("jacobi")
    made.begin([1, 2])
    Saying(lambda path: 10 + len(path)).passes(made, [1, 2], Window(3), 1)
    guesses = made.propose([1, 2, 10], CHAIN)
    assert guesses.tokens == (11, 12, 13), "behind one, two and three guesses it said so"
    assert guesses.is_chain
    assert set(guesses.sources) == {"jacobi"}


def test_jacobi_reaches_a_fixed_point_in_as_many_passes_as_tokens():
    """A text that depends on places alone is guessed wholly after one pass."""
    text = list(range(20, 60))
    made, at = LookaheadProposer("jacobi"), 0
    made.begin([1])
    draft = made.window([1], Window(8))
    made.refine(draft, Verdict((), text[0]), lambda i: text[at + i + 1])
    assert made.propose([1, text[0]], CHAIN).tokens == tuple(text[1:9])


def test_accepted_guesses_move_the_window_on():
    made = LookaheadProposer("jacobi")
    made.begin([1])
    made.refine(made.window([1], Window(4)), Verdict((), 7), lambda i: 20 + i)
    draft = made.window([1, 7], Window(4))
    assert draft.tokens == (20, 21, 22, 23)
    made.refine(draft, Verdict((0, 1), 30), lambda i: 40 + i)
    assert made.propose([1, 7, 20, 21, 30], CHAIN).tokens[:2] == (42, 43)


def test_an_n_gram_is_a_guess_and_what_was_said_after_it():
    made = LookaheadProposer()
    made.begin([1, 2])
    target = Saying(lambda path: (path[-1] * 3 + 1) % 97 if path else 5)
    target.passes(made, [1, 2], Window(3, 4), 3)
    first = target.paths[0][0]
    said = [first]
    for _ in range(3):
        said.append((said[-1] * 3 + 1) % 97)
    draft = made.propose([9, first], WIDE)
    assert [draft.tokens[i] for i in range(3)] == said[1:]
    assert draft.parents[:3] == (-1, 0, 1)
    assert made.propose([9, 96], WIDE).tokens[:3] != tuple(said[1:])


def test_of_one_first_token_the_latest_n_grams_are_kept_and_come_first():
    made = LookaheadProposer()
    for start in range(10):
        made.begin([1, 2])
        Saying(lambda path, start=start: 200 + start if path else 5).passes(made, [7, 7], Window(1, 3), 2)
    draft = made.propose([7], WIDE)
    roots = [token for token, parent in zip(draft.tokens, draft.parents, strict=True) if parent < 0]
    assert roots[:6] == [209, 208, 207, 206, 205, 204]
    assert 203 not in roots


def test_rows_that_the_pass_did_not_have_teach_nothing():
    made = LookaheadProposer()
    made.begin([1, 2])
    draft = made.window([1, 2], Window(4, 3)).first(2)
    asked = []
    made.refine(draft, Verdict((), 9), lambda i: asked.append(i) or 5)
    assert asked == [0, 1]


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "hot"])
def test_with_the_noise_of_their_places_guesses_come_true_at_any_temperature(sampling):
    """A model of one earlier token: Jacobi's guesses behind a right one are right."""
    logits = looping() if sampling is GREEDY else wandering()
    made = LookaheadProposer("jacobi")
    policy = FixedPolicy(("jacobi",), 6)
    got = answer(session(ScriptedBackend(logits, N_VOCAB), made, policy=policy), PROMPT, 150, sampling)
    assert got.ids == plain(logits, n=150, sampling=sampling).ids
    assert got.accepted > 15


@pytest.mark.parametrize("verify", ["coupled", "rejection"])
def test_lookahead_pays_in_branches_and_gives_plain_ids(verify):
    logits = looping()
    policy = FixedPolicy(("lookahead",), 24, trees=True)
    s = session(ScriptedBackend(logits, N_VOCAB), LookaheadProposer(), policy=policy)
    got = answer(s, PROMPT, 150, GREEDY, verify=verify)
    assert got.ids == plain(logits, n=150).ids
    assert any(not outcome.draft.is_chain for outcome in got.outcomes)
    assert got.accepted > 30


def test_rejection_with_guesses_follows_the_targets_distribution():
    """The guesses depend on rows alone, so that acceptance draws stay independent of them."""
    logits, n = wandering(salt=5), 2500
    hot = [SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=s) for s in range(n)]
    counts = np.zeros((2, N_VOCAB))
    for row, speculates in enumerate((False, True)):
        for sampling in hot:
            made = LookaheadProposer("jacobi") if speculates else None
            s = session(ScriptedBackend(logits, N_VOCAB), made, 3)
            ids = answer(s, PROMPT, 4, sampling, verify="rejection" if speculates else "coupled").ids
            counts[row, ids[3]] += 1
    expected = counts.sum(axis=0) / 2
    seen = expected > 0
    chi2 = (((counts - expected) ** 2)[:, seen] / expected[seen]).sum()
    assert chi2 < seen.sum() - 1 + 4 * np.sqrt(2 * (seen.sum() - 1))


def test_beside_another_chain_no_branch_is_made_where_branches_are_not_allowed():
    logits = looping()
    made = {"suffix": SuffixProposer(), "jacobi": LookaheadProposer("jacobi")}
    policy = FixedPolicy(tuple(made), 6)
    s = Session(ScriptedBackend(logits, N_VOCAB), lambda _: False, policy, made)
    got = answer(s, PROMPT, 100, GREEDY)
    assert got.ids == plain(logits, n=100).ids
    assert all(outcome.draft.is_chain for outcome in got.outcomes)
    assert {source for outcome in got.outcomes for source in outcome.draft.sources} == {"suffix", "jacobi"}
