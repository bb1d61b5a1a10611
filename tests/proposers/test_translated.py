"""A draft with another vocabulary is one of the target's, and never changes what the target says."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from engine_kit import GREEDY, answer, looping, plain, session, wandering
from hypothesis import given
from hypothesis import strategies as st

from edgespec.backends.scripted import Faults, ScriptedBackend, from_table
from edgespec.errors import BackendError
from edgespec.proposers import ModelProposer
from edgespec.proposers.translated import TranslatedBackend, Translation
from edgespec.sampling import Sampler
from edgespec.text.table import TableVocabulary
from edgespec.types import Plan, SamplingSettings

TARGET = TableVocabulary([b"a", b"b", b"c", b"d", b"ab", b"cd", b"abc", b"dd", b"<end>"], control=[8], eos=8)
DRAFT = TableVocabulary([b"c", b"bc", b"ab", b"d", b"a", b"b", b"da", b"<stop>"], control=[7], eos=7)
A, B, C, D, AB, CD, ABC, DD, END = range(9)
SPOKEN = {A, B, C, D, AB, END}
"""The target's ids that the draft has a token for."""
PROMPT = (A, B, C, D, A, B, CD, A, B, C, ABC, DD, A, B)

HOT = SamplingSettings(temperature=0.8, seed=3)
WIDE = SamplingSettings(temperature=0.8, top_k=0, top_p=1.0, min_p=0.0, seed=3)
PENALTIES = SamplingSettings(
    temperature=0.8, repeat_penalty=1.3, presence_penalty=0.4, logit_bias={A: -math.inf, CD: 3.0}, seed=8
)

tokens = st.lists(st.integers(0, 7), min_size=1, max_size=12)


def backend(logits=None, draft=DRAFT, target=TARGET, **how):
    inner = ScriptedBackend(logits or looping(draft.n_vocab, salt=5), draft.n_vocab, **how)
    return TranslatedBackend(inner, Translation(target, draft)), inner


def drafting(*how, notify=lambda _: None, **more) -> ModelProposer:
    return ModelProposer(backend(*how, **more)[0], TARGET.n_vocab, notify)


def mirrored(logits, n):
    """The same model with its ids backwards."""
    return lambda context: logits(tuple(n - 1 - token for token in context))[::-1]


@pytest.mark.parametrize("depth", [1, 3, 8])
@pytest.mark.parametrize("sampling", [GREEDY, HOT, WIDE, PENALTIES], ids=["greedy", "hot", "wide", "all"])
def test_ids_are_plain_ids(depth, sampling):
    for logits in (looping(9), wandering(9)):
        expected = plain(logits, PROMPT, 80, sampling=sampling, n_vocab=9, vocabulary=TARGET)
        target = ScriptedBackend(logits, TARGET.n_vocab)
        got = answer(session(target, drafting(), depth), PROMPT, 80, sampling, vocabulary=TARGET)
        assert got.ids == expected.ids
        drafted = {token for outcome in got.outcomes for token in outcome.draft.tokens}
        assert len(drafted) > 1
        assert drafted <= SPOKEN


@pytest.mark.parametrize("verify", ["coupled", "rejection"])
@pytest.mark.parametrize("sampling", [GREEDY, HOT, WIDE, PENALTIES], ids=["greedy", "hot", "wide", "all"])
def test_the_target_itself_in_other_ids_is_always_right(verify, sampling):
    letters = [bytes([97 + i]) for i in range(9)]
    one, other = TableVocabulary(letters), TableVocabulary(letters[::-1])
    logits = wandering(9)
    made = ModelProposer(backend(mirrored(logits, 9), other, one)[0], 9, lambda _: None)
    s = session(ScriptedBackend(logits, 9), made, 5)
    got = answer(s, PROMPT, 60, sampling, verify=verify, vocabulary=one)
    assert got.accepted == got.verified > 30


def test_rejection_reports_the_masked_and_renormalised_distribution():
    logits = wandering(8)
    made = drafting(logits)
    made.configure(WIDE, "rejection")
    draft = made.propose(PROMPT, Plan(("draft",), 5))
    read, ids = Translation(TARGET, DRAFT).read, dict(Translation(TARGET, DRAFT).spoken)
    for i, q in enumerate(draft.q):
        said = (*PROMPT, *draft.tokens[:i])
        row = logits(tuple(token for ours in said for token in read(ours)))
        masked = np.full(9, -np.inf, np.float32)
        for theirs, ours in ids.items():
            masked[ours] = row[theirs]
        expected = Sampler(WIDE).distribution(masked, said)
        assert q.probs[np.isin(q.ids, list(SPOKEN))].sum() == pytest.approx(1.0)
        assert dict(zip(q.ids.tolist(), q.probs.tolist(), strict=True)) == pytest.approx(
            dict(zip(expected.ids.tolist(), expected.probs.tolist(), strict=True))
        )
        assert draft.tokens[i] in SPOKEN


def test_rejection_emits_the_target_s_distribution():
    p, n = np.array([0.1, 0.3, 0.05, 0.1, 0.15, 0.2, 0.05, 0.05, 0.0]), 4000
    logits, seen = from_table({}, p), Counter()
    # The draft's favourite cannot be said, its second is unlikely.
    made = drafting(from_table({}, [0.2, 0.4, 0.1, 0.05, 0.15, 0.1, 0.0, 0.0]))
    s = session(ScriptedBackend(logits, 9), made, 2)
    for seed in range(n):
        sampling = SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed)
        seen[tuple(answer(s, (A,), 2, sampling, verify="rejection", vocabulary=TARGET).ids)] += 1
    expected = {(i, j): p[i] * p[j] * n for i in range(8) for j in range(8)}
    assert set(seen) <= set(expected)
    chi = sum((seen[pair] - e) ** 2 / e for pair, e in expected.items())
    assert chi < 63 + 5 * math.sqrt(2 * 63)


@given(tokens)
def test_the_draft_reads_the_same_text(said):
    translation = Translation(TARGET, DRAFT)
    read = [token for ours in said for token in translation.read(ours)]
    assert b"".join(map(DRAFT.piece, read)) == b"".join(map(TARGET.piece, said))
    for ours in SPOKEN & set(said):
        assert len(translation.read(ours)) == 1


@given(st.lists(st.tuples(tokens, st.integers(0, 12), st.integers(0, 30)), min_size=1, max_size=6))
def test_what_is_dropped_leaves_nothing(steps):
    """After any passes, commits and cuts, rows are those of a fresh cache over the same tokens."""
    both, inner = backend()
    read, held = Translation(TARGET, DRAFT).read, list[int]()
    for more, keep, cut in steps:
        both.forward(more)
        both.commit(range(min(keep, len(more))))
        held += more[:keep]
        del held[cut:]
        both.truncate(len(held))
        assert both.length == len(held)
        assert inner.tokens == tuple(token for ours in held for token in read(ours))
    fresh = backend()[0].forward([*held, A])[-1].copy()
    assert both.forward([A], rows="last")[0].tolist() == fresh.tolist()


@given(tokens, st.data())
def test_the_rows_of_a_tree_are_those_of_its_chains(more, data):
    parents = [data.draw(st.integers(-1, i - 1)) for i in range(len(more))]
    rows = backend()[0].forward(more, parents).copy()
    for i in range(len(more)):
        path, node = list[int](), i
        while node >= 0:
            path.insert(0, more[node])
            node = parents[node]
        assert rows[i].tolist() == backend()[0].forward(path, rows="last")[0].tolist()


def test_a_branch_is_kept_whole():
    both, inner = backend()
    both.forward([A, CD, B, DD], [-1, -1, 1, 2])
    both.commit([1, 2, 3])
    assert both.length == 3
    assert b"".join(map(DRAFT.piece, inner.tokens)) == b"cdbdd"


@pytest.mark.parametrize("most", [4, 5, 6])
def test_where_several_do_not_fit_one_stands_for_them(most):
    both, inner = backend(faults=Faults(max_rows=most))
    assert len(both.forward([A, CD, DD, B])) == 4
    both.commit(range(4))
    assert inner.length == (6 if most == 6 else 4)


def test_a_full_context_pauses_the_draft_and_changes_nothing():
    logits, notices = looping(9), []
    made = drafting(n_ctx=64, notify=notices.append)
    s = session(ScriptedBackend(logits, 9), made, 4)
    got = answer(s, PROMPT, 150, vocabulary=TARGET)
    assert got.ids == plain(logits, PROMPT, 150, n_vocab=9, vocabulary=TARGET).ids
    assert len(notices) == 1
    assert sum(len(outcome.draft) for outcome in got.outcomes) > 10
    long = (DD, CD) * 40
    assert (
        answer(s, long, 20, vocabulary=TARGET).ids
        == plain(logits, long, 20, n_vocab=9, vocabulary=TARGET).ids
    )


def test_a_draft_that_wants_a_first_token_gets_it():
    draft = TableVocabulary([b"a", b"b", b"<s>"], control=[2], bos=2, add_bos=True)
    target = TableVocabulary([b"b", b"a", b"<begin>"], control=[2], bos=2)
    both, inner = backend(draft=draft, target=target, n_ctx=5)
    assert both.n_ctx == 4
    both.forward([0, 1])
    both.commit([0])
    assert inner.tokens == (2, 1)
    both.truncate(0)
    assert inner.tokens == ()
    both.forward([2, 0])
    both.commit([0, 1])
    assert inner.tokens == (2, 1)


def test_control_tokens_go_by_their_spelling_and_parts_of_letters_by_their_bytes():
    target = TableVocabulary.of_bytes(["hello", "né", "ö"], control=["<|user|>", "<|other|>"], eog=["<end>"])
    draft = TableVocabulary.of_bytes(["he", "llo"], control=["<|user|>"], eog=["<stop>"])
    read = Translation(target, draft).read

    def pieces(text):
        (token,) = target.tokenize(text, special=True)
        return [draft.piece(i).decode() or draft.text(i) for i in read(token)]

    assert pieces("hello") == ["he", "llo"]
    assert pieces("<|user|>") == ["<|user|>"]
    assert pieces("<end>") == ["<stop>"]
    assert "".join(pieces("<|other|>")) == "<|other|>"
    split = TableVocabulary([b"x", b"\xc3\xb6\xc3"])
    assert Translation(split, draft).read(1) == (0xC3, 0xB6, 0xC3)


def test_the_overlap_is_measured():
    draft = TableVocabulary.of_bytes()
    overlap = Translation(TableVocabulary.of_bytes(["the"]), draft).overlap()
    assert 0.9 < overlap.alike < 1.0
    assert str(overlap).startswith("256 of its 256 tokens are the target's, ")
    words = TableVocabulary.of_bytes(["keeper", "answered", " is"])
    overlap = Translation(words, words).overlap()
    assert (overlap.shared, overlap.alike) == (259, 1.0)


def test_a_cut_beyond_what_is_there_is_refused():
    with pytest.raises(BackendError, match="cannot cut 0 tokens to 1"):
        backend()[0].truncate(1)
