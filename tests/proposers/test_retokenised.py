"""A draft that is asked for text: it may guess anything, and never changes what the target says."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from engine_kit import GREEDY, answer, looping, plain, session, wandering
from hypothesis import given, settings
from hypothesis import strategies as st
from session_kit import Recording

from edgespec.backends.scripted import Faults, ScriptedBackend, from_table
from edgespec.proposers import SuffixProposer
from edgespec.proposers.cutting import Cutter, Reader, Retokenisation, complete
from edgespec.proposers.retokenised import RetokenisedProposer
from edgespec.proposers.translated import SAMPLE, Translation
from edgespec.text.table import TableVocabulary
from edgespec.types import Plan, SamplingSettings

TARGET = TableVocabulary.of_bytes(["cat", " the", "keep", "er", " keep", "s s"], eog=["<end>"])
BYTES = TableVocabulary.of_bytes(eog=["<stop>"])
WORDS = TableVocabulary.of_bytes(["keeper", " keeper", "at", "th", " c", "é", "né"], eog=["<halt>", "<stop>"])
END = TARGET.n_vocab - 1
HOT = SamplingSettings(temperature=0.8, seed=3)
WIDE = SamplingSettings(temperature=0.8, top_k=0, top_p=1.0, min_p=0.0, seed=3)

pieces = st.one_of(st.binary(min_size=1, max_size=4), st.text(min_size=1, max_size=3).map(str.encode))
histories = st.lists(st.integers(0, TARGET.n_vocab - 1), min_size=1, max_size=30)


@st.composite
def vocabularies(draw):
    """All bytes and some words, which may be parts of characters."""
    words = draw(st.lists(pieces, max_size=12, unique=True))
    table = [*(bytes([i]) for i in range(256)), *words, b"<a>", b"<b>"]
    n, bos = len(table), draw(st.booleans())
    return TableVocabulary(
        table, control=[n - 2, n - 1], eog=[n - 1], eos=n - 1, bos=n - 2 if bos else None, add_bos=bos
    )


def pair(target=TARGET, draft=BYTES) -> Retokenisation:
    return Retokenisation(target, draft, Translation(target, draft))


def drafting(logits, target=TARGET, draft=BYTES, *, notify=lambda _: None, guide=None, **how):
    backend = ScriptedBackend(logits, draft.n_vocab, **how)
    return RetokenisedProposer(backend, pair(target, draft), notify, guide), backend


def saying(text, draft):
    """A draft model that knows how this text goes on, in whatever tokens it was told what it begins with."""

    def logits(context):
        said = b"".join(map(draft.piece, context))
        assert text.startswith(said)
        row = np.zeros(draft.n_vocab, np.float32)
        row[_next(draft, text, len(said))] = 20.0
        return row

    return logits


def _next(draft, text, at):
    tokens, ends = Cutter(draft)(text)
    if at == len(text):
        return draft.eos
    return tokens[ends.index(at) + 1 if at else 0] if not at or at in ends else Cutter(draft)(text[at:])[0][0]


def ids(text, vocabulary=TARGET):
    return vocabulary.tokenize(text, special=False)


def spelled(tokens):
    return [TARGET.piece(token).decode() or "END" for token in tokens]


@settings(max_examples=40)
@given(st.data())
def test_any_text_in_any_two_vocabularies_is_gone_on_with(data):
    """What is drafted is what the draft would say, and nothing raises."""
    target, draft = data.draw(vocabularies()), data.draw(vocabularies())
    history = data.draw(st.lists(st.integers(0, target.n_vocab - 1), min_size=1, max_size=25))
    made, backend = drafting(looping(draft.n_vocab, salt=data.draw(st.integers(0, 9))), target, draft)
    read = Reader(pair(target, draft))
    for _ in range(data.draw(st.integers(1, 4))):
        most = data.draw(st.integers(1, 6))
        proposed = made.propose(history, Plan(("draft",), most))
        assert len(proposed) <= most
        assert all(0 < evidence[0] <= 1 for evidence in proposed.evidence)
        new = b"".join(map(target.piece, proposed.tokens))
        said = b"".join(map(draft.piece, backend.tokens))
        heard = b"".join(map(draft.piece, read(history)))
        assert (heard + new).startswith(said[: len(heard) + len(new)])
        history = [*history, *proposed.tokens[: data.draw(st.integers(0, 6))]]
        history.append(data.draw(st.integers(0, target.n_vocab - 1)))


@settings(max_examples=40)
@given(st.data())
def test_the_draft_reads_all_that_was_said(data):
    """However a history grows and changes, its text comes through, none of it twice."""
    target, draft = data.draw(vocabularies()), data.draw(vocabularies())
    read, history = Reader(pair(target, draft)), list[int]()
    for _ in range(data.draw(st.integers(1, 5))):
        del history[data.draw(st.integers(0, 40)) :]
        history += data.draw(st.lists(st.integers(0, target.n_vocab - 1), min_size=1, max_size=12))
        tokens = read(history)
        assert b"".join(map(draft.piece, tokens)) == b"".join(map(target.piece, history))


@given(st.binary(max_size=12) | st.text(max_size=6).map(str.encode))
def test_bytes_that_are_no_text_are_cut(data):
    tokens, ends = Cutter(TARGET)(data)
    assert b"".join(map(TARGET.piece, tokens)) == data
    assert ends == [len(b"".join(map(TARGET.piece, tokens[: i + 1]))) for i in range(len(tokens))]
    whole = complete(data)
    assert len(data) - whole < 4
    if data[whole:]:
        assert data[whole:].decode(errors="ignore") == ""


@pytest.mark.parametrize("draft", [BYTES, WORDS], ids=["bytes", "words"])
@pytest.mark.parametrize("verify", ["coupled", "rejection"])
@pytest.mark.parametrize("sampling", [GREEDY, HOT, WIDE], ids=["greedy", "hot", "wide"])
def test_the_text_is_the_target_s(draft, verify, sampling):
    n, prompt = TARGET.n_vocab, ids("the cats sat by the keeper")
    for logits in (looping(n), wandering(n)):
        target = ScriptedBackend(logits, n)
        made, _ = drafting(looping(draft.n_vocab, salt=4), TARGET, draft, guide=SuffixProposer())
        got = answer(session(target, made, 4), prompt, 60, sampling, verify=verify, vocabulary=TARGET)
        expected = plain(logits, prompt, 60, sampling=sampling, n_vocab=n, vocabulary=TARGET)
        assert got.verified > 30
        if verify == "coupled" or sampling is GREEDY:
            assert got.ids == expected.ids


@pytest.mark.parametrize("draft", [BYTES, WORDS], ids=["bytes", "words"])
def test_a_draft_that_knows_the_text_is_always_right(draft):
    """The target's tokens come out of any draft's, and its last word is what the target calls the end."""
    text = "the cats sat by the keeper, né the catkeeper's keeper"
    tokens = [*ids(text), END]
    made, _ = drafting(saying(text.encode(), draft), TARGET, draft)
    at = 1
    while at < len(tokens):
        proposed = list(made.propose(tokens[:at], Plan(("draft",), 4)).tokens)
        assert proposed
        assert proposed == tokens[at : at + len(proposed)]
        at += len(proposed)


def test_a_longer_token_of_the_draft_s_is_drafted_where_the_history_ends_inside_it():
    text = b"a keeper keeper"
    made, _ = drafting(saying(text, WORDS), TARGET, WORDS)
    assert spelled(made.propose(ids("a keep"), Plan(("draft",), 3)).tokens) == ["er", " keep", "er"]
    made, _ = drafting(saying(b"a keep out", WORDS), TARGET, WORDS)
    assert spelled(made.propose(ids("a keep"), Plan(("draft",), 2)).tokens) == [" ", "o"]


def test_what_more_text_may_change_is_held_back():
    """Byte by byte the draft never knows whether a word is over, only the target's vocabulary tells."""
    made, backend = drafting(saying(b"a cat keeper", BYTES), TARGET, BYTES)
    assert spelled(made.propose(ids("a "), Plan(("draft",), 1)).tokens) == ["cat"]
    assert backend.length == len("a ca"), "nothing is longer, so nothing more was drawn"
    proposed = made.propose(ids("a cat"), Plan(("draft",), 2, choose=stop_after(1)))
    assert spelled(proposed.tokens) == [" keep"]
    made, backend = drafting(saying(b"a s cat", BYTES), TARGET, BYTES)
    assert spelled(made.propose(ids("a "), Plan(("draft",), 1)).tokens) == ["s"]
    assert backend.length == len("a s "), "c tells that it is not one with what follows"


def stop_after(n):
    return lambda drafted, copied: "draft" if len(drafted) < n else "stop"


def test_the_evidence_is_the_chance_of_all_that_makes_a_token():
    logits = from_table(
        {
            (ord(a),): [chance if i == ord(b) else (1 - chance) / 256 for i in range(257)]
            for a, b, chance in [("x", "c", 0.9), ("c", "a", 0.8), ("a", "t", 0.5), ("t", "!", 0.7)]
        },
        [1 / 257] * 257,
    )
    made, _ = drafting(logits)
    proposed = made.propose([ord("x")], Plan(("draft",), 1))
    assert spelled(proposed.tokens) == ["cat"]
    assert proposed.evidence == ((pytest.approx(0.9 * 0.8 * 0.5), 0.0),)
    assert proposed.sources == ("draft",)
    assert proposed.q is None


def test_copying_goes_on_where_it_knows_the_way_and_its_word_is_evidence():
    text = "the keeper sat. the keeper sat. the keep"
    made, _ = drafting(saying(text.encode() + b"er out", WORDS), TARGET, WORDS, guide=SuffixProposer())
    plan = Plan(("draft",), 5, choose=lambda drafted, copied: "copy" if drafted else "draft")
    proposed = made.propose(ids(text), plan)
    assert proposed.sources == ("draft", *["suffix"] * 4)
    assert spelled(proposed.tokens) == ["er", " ", "s", "a", "t"]
    assert proposed.evidence[0][1] == 1.0
    assert made.propose(ids(text), Plan(("draft",), 3)).evidence[2][1] == -1.0, "o, not s"


def test_only_what_is_new_is_evaluated():
    text = "the cats sat by the keeper and kept the cat"
    backend = Recording(saying(text.encode(), BYTES), BYTES.n_vocab)
    made = RetokenisedProposer(backend, pair(), lambda _: None)
    tokens = ids(text)
    made.begin(tokens[:9])
    backend.passes.clear()
    made.propose(tokens[:9], Plan(("draft",), 2))
    assert backend.passes[0] <= 1
    drawn = len(backend.passes)
    made.propose(tokens[:11], Plan(("draft",), 2))
    assert backend.passes[drawn] <= 8
    assert sum(backend.passes) < 40


@pytest.mark.parametrize("refuse", [False, True])
def test_an_edited_history_is_like_a_new_one(refuse):
    logits = looping(WORDS.n_vocab)
    made, _ = drafting(logits, TARGET, WORDS, faults=Faults(refuse_rollback=refuse))
    made.propose(ids("the keeper sat by"), Plan(("draft",), 6))
    edited = ids("the keeping cat")
    made.begin(edited)
    fresh, _ = drafting(logits, TARGET, WORDS)
    assert made.propose(edited, Plan(("draft",), 6)) == fresh.propose(edited, Plan(("draft",), 6))


def test_a_full_context_pauses_the_draft_and_changes_nothing():
    logits, notices, prompt = looping(TARGET.n_vocab), [], ids("the cats")
    made, _ = drafting(looping(BYTES.n_vocab), n_ctx=48, notify=notices.append)
    got = answer(session(ScriptedBackend(logits, TARGET.n_vocab), made, 4), prompt, 90, vocabulary=TARGET)
    assert got.ids == plain(logits, prompt, 90, n_vocab=TARGET.n_vocab, vocabulary=TARGET).ids
    assert len(notices) == 1
    assert sum(len(outcome.draft) for outcome in got.outcomes) > 5


def test_the_noise_is_the_target_s():
    """A draft whose tokens are the target's by other ids draws what the target will."""
    letters = [bytes([97 + i]) for i in range(9)]
    one, other = TableVocabulary(letters), TableVocabulary(letters[::-1])
    logits = wandering(9)

    def mirrored(context):
        return logits(tuple(8 - token for token in context))[::-1]

    made, _ = drafting(mirrored, one, other)
    got = answer(session(ScriptedBackend(logits, 9), made, 5), range(5), 60, WIDE, vocabulary=one)
    assert got.accepted == got.verified > 30


def test_rejection_emits_the_target_s_distribution():
    p, n = np.array([0.1, 0.3, 0.2, 0.4]), 3000
    target, draft = TableVocabulary([b"a", b"b", b"ab", b"ba"]), TableVocabulary([b"b", b"a"])
    made, _ = drafting(from_table({(0,): [0.2, 0.8]}, [0.7, 0.3]), target, draft)
    s, seen = session(ScriptedBackend(from_table({}, p), 4), made, 2), Counter()
    for seed in range(n):
        sampling = SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed)
        seen[tuple(answer(s, (0,), 2, sampling, verify="rejection", vocabulary=target).ids)] += 1
    expected = {(i, j): p[i] * p[j] * n for i in range(4) for j in range(4)}
    chi = sum((seen[both] - e) ** 2 / e for both, e in expected.items())
    assert chi < 15 + 5 * math.sqrt(2 * 15)


def test_control_tokens_are_read_and_end_a_draft_by_their_part():
    target = TableVocabulary.of_bytes(["keep"], control=["<|user|>"], eog=["<end>"])
    draft = TableVocabulary.of_bytes(control=["<|odd|>", "<|user|>"], eog=["<stop>", "<halt>"])
    both = pair(target, draft)
    user, end = target.n_vocab - 2, target.n_vocab - 1
    assert Reader(both)([user, *ids("keep", target), end]) == [257, *b"keep", draft.eos]
    assert [both.ending(token) for token in (256, 257, 258, 259)] == [end, user, end, end]


def test_what_a_draft_costs_and_loses_is_measured():
    alike = pair(TARGET, WORDS).spelling()
    assert alike.pays
    assert alike.back == 1.0
    assert 0.8 < alike.drawn < 1.2
    words = TableVocabulary.of_bytes([f" {word}" for word in SAMPLE.split()])
    slow = pair(words, BYTES).spelling()
    assert not slow.pays
    assert slow.drawn > 3
    deaf = TableVocabulary([bytes([i]) for i in range(256)])
    deaf.tokenize = lambda text, special: list(text.lower().encode())
    lossy = pair(TARGET, deaf).spelling()
    assert lossy.back < 1.0
    assert str(lossy).startswith("one of the target's takes ")
