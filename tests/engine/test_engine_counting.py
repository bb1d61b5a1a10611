"""Where an answer ends inside a block, and what is counted."""

import pytest
from engine_kit import (
    N_VOCAB,
    PROMPT,
    PROPOSERS,
    Guesses,
    answer,
    looping,
    plain,
    proposer,
    session,
)

from edgespec.backends.scripted import Faults, ScriptedBackend, from_script

END = 11


def scripted(script, guess, eog=frozenset({END}), n=20, prompt=(0, 1, 2)):
    target = ScriptedBackend(from_script(script, len(prompt), N_VOCAB), N_VOCAB)
    s = session(target, Guesses(guess), 8, eog=eog)
    return answer(s, prompt, n), s, target


def test_an_end_token_inside_a_block_ends_the_text_before_it():
    got, s, target = scripted([5, 0, 1, END, 2, 3], lambda h: [0, 1, END, 2, 3])
    assert (got.text, got.finish) == ("fab", "stop")
    assert s.tokens == target.tokens == (0, 1, 2, 5, 0, 1)
    assert got.accepted == got.verified == 2, "what came after the end was never looked at"


def test_an_end_token_that_only_the_draft_wants_is_rejected():
    got, _, _ = scripted([5, 0, 1, 2, 3, END], lambda h: [END])
    assert (got.text, got.finish) == ("fabcd", "stop")
    assert got.accepted == 0


def test_a_token_limit_inside_a_block_gives_exactly_that_many():
    for limit in range(1, 10):
        logits = looping()
        target = ScriptedBackend(logits, N_VOCAB)
        s = session(target, proposer("same model", logits), 4)
        got = answer(s, PROMPT, limit)
        assert len(got.ids) == limit
        assert got.finish == "length"
        assert s.tokens == target.tokens == (*PROMPT, *got.ids)[: len(s.tokens)]


def test_an_end_token_right_after_the_prompt_gives_an_empty_answer():
    got, s, target = scripted([END], lambda h: [1])
    assert (got.text, got.finish, got.ids) == ("", "stop", [])
    assert s.tokens == target.tokens == (0, 1, 2)


def test_a_proposer_that_is_silent_every_other_round_leaves_plain_steps():
    logits, asked = looping(), []
    right = proposer("same model", logits)

    def sometimes(history):
        asked.append(len(history))
        return right._backend._logits(tuple(history)).argsort()[::-1][:1].tolist() if len(asked) % 2 else []

    target = ScriptedBackend(logits, N_VOCAB)
    got = answer(session(target, Guesses(sometimes), 4))
    assert got.ids == plain(logits).ids
    drafted = [len(outcome.draft) for outcome in got.outcomes[1:]]
    assert 0 in drafted
    assert 1 in drafted
    assert all(o.emitted == 1 for o in got.outcomes if not len(o.draft))


# Counting


@pytest.mark.parametrize("kind", PROPOSERS)
@pytest.mark.parametrize("limit", [7, 50])
def test_emitted_is_accepted_plus_one_a_round_that_kept_the_targets_own_token(kind, limit):
    logits = looping()
    eog = frozenset({plain(logits, n=60).ids[40]})
    for refuse in (False, True):
        target = ScriptedBackend(logits, N_VOCAB, faults=Faults(refuse_rollback=refuse))
        got = answer(session(target, proposer(kind, logits), 5, eog=eog), PROMPT, limit)
        outcomes = got.outcomes
        trimmed = sum(o.emitted == o.accepted for o in outcomes)
        assert trimmed <= 1
        assert all(o.emitted == o.accepted for o in outcomes[-trimmed:] if trimmed)
        assert len(got.ids) == got.accepted + len(outcomes) - trimmed
        assert all(0 <= o.accepted <= len(o.draft) for o in outcomes)
        assert sum(event.sampled for event in got.events) == len(got.ids)


@pytest.mark.parametrize("limit", range(1, 14))
def test_the_target_as_its_own_draft_is_always_accepted(limit):
    logits = looping(salt=2)
    end = plain(logits, n=14).ids[11]
    for eog in (frozenset(), frozenset({end})):
        s = session(ScriptedBackend(logits, N_VOCAB), proposer("same model", logits), 4, eog=eog)
        got = answer(s, PROMPT, limit)
        assert got.accepted == got.verified


def test_a_random_draft_is_hardly_ever_accepted():
    logits = looping(n_vocab=200)
    s = session(ScriptedBackend(logits, 200), proposer("random", logits, 200), 8)
    got = answer(s, PROMPT, 200, vocabulary=_Silent())
    assert got.verified > 500
    assert got.accepted / got.verified < 0.02


class _Silent:
    n_vocab = 200

    def piece(self, token):
        return b"x"


def test_every_piece_names_its_source():
    logits = looping()
    s = session(ScriptedBackend(logits, N_VOCAB), proposer("suffix", logits), 5)
    got = answer(s)
    guessed = sum(piece.source == "suffix" for event in got.events for piece in event.pieces)
    assert guessed == got.accepted > 0
    positions = [piece.position for event in got.events for piece in event.pieces]
    assert positions == list(range(len(PROMPT), len(PROMPT) + 60))
