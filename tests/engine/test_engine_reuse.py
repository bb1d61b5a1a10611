"""One conversation's cache: what is reused, what is refused, and long use."""

import pytest
from engine_kit import (
    CURVES,
    N_VOCAB,
    PROMPT,
    PROPOSERS,
    Guesses,
    answer,
    controller,
    looping,
    model_proposer,
    plain,
    proposer,
    session,
    timed,
)
from session_kit import SECOND, Recording, assert_intact, assert_next_is_right, pair, start

from edgespec.backends.scripted import Faults, ScriptedBackend
from edgespec.engine.session import PREFILL_CHUNK
from edgespec.errors import UsageError
from edgespec.types import SamplingSettings

# Reuse


@pytest.mark.parametrize("kind", PROPOSERS)
def test_a_second_turn_evaluates_only_what_is_new(kind):
    logits = looping()
    target = Recording(logits, N_VOCAB)
    s = session(target, proposer(kind, logits), 4)
    first = answer(s, PROMPT, 20)
    prompt = (*PROMPT, *first.ids, *SECOND)
    target.passes.clear()
    second = answer(s, prompt, 20)
    assert target.passes[0] == len(SECOND) + 1, "the new turn and the token that was still pending"
    assert second.outcomes[0].context == len(prompt) - target.passes[0]
    assert second.ids == plain(logits, prompt, 20).ids


def test_an_edited_turn_reuses_the_common_prefix():
    logits = looping()
    target = Recording(logits, N_VOCAB)
    s = session(target)
    answer(s, (0, 1, 2, 3, 4, 5), 20)
    target.passes.clear()
    edited = (0, 1, 2, 9, 9)
    got = answer(s, edited, 20)
    assert target.passes[0] == 2
    assert got.outcomes[0].context == 3
    assert got.ids == plain(logits, edited, 20).ids


def test_the_same_prompt_again_evaluates_its_last_token_only():
    logits = looping()
    target = Recording(logits, N_VOCAB)
    s = session(target)
    first = answer(s)
    target.passes.clear()
    assert answer(s).ids == first.ids
    assert target.passes[0] == 1


def test_a_shorter_prompt_is_a_prefix_too():
    s, _target, logits = pair()
    answer(s, PROMPT, 20)
    assert_next_is_right(s, logits, PROMPT[:4])


def test_long_prompts_go_in_chunks_and_tell_their_progress():
    logits = looping()
    target = Recording(logits, N_VOCAB)
    s = session(target)
    told = []
    s.progress = lambda done, total: told.append((done, total))
    prompt = [i % 9 for i in range(2 * PREFILL_CHUNK + 10)]
    assert answer(s, prompt, 5).ids == plain(logits, prompt, 5).ids
    total = len(prompt)
    assert told == [(PREFILL_CHUNK, total), (2 * PREFILL_CHUNK, total), (total, total)]
    assert target.passes[:3] == [PREFILL_CHUNK, PREFILL_CHUNK, 10]


# A draft model that fails


@pytest.mark.parametrize("at", [0, 1, 7])
def test_a_failing_draft_model_is_switched_off_with_one_notice(at):
    logits, notices = looping(), []
    draft = model_proposer(logits, faults=Faults(fail_at=at))
    target = ScriptedBackend(logits, N_VOCAB)
    s = session(target, draft, 4, notify=notices.append)
    got = answer(s)
    assert got.ids == plain(logits).ids
    assert len(notices) == 1
    assert "scripted fault" in notices[0]
    assert got.outcomes[-1].draft.tokens == ()
    assert_next_is_right(s, logits, (*PROMPT, *got.ids, *SECOND))
    assert len(notices) == 1


def test_a_draft_model_whose_cache_cannot_be_cut_starts_over():
    logits = looping()
    draft = model_proposer(looping(salt=9), faults=Faults(refuse_rollback=True))
    notices = []
    s = session(ScriptedBackend(logits, N_VOCAB), draft, 4, notify=notices.append)
    assert answer(s).ids == plain(logits).ids
    assert notices == []


# Requests that are refused or empty


def test_two_answers_at_once_are_refused_and_the_first_goes_on():
    s, _target, logits = pair()
    events = start(s)
    ids = [piece.token for piece in next(events).pieces]
    with pytest.raises(UsageError, match="still answering"):
        start(s, (1, 2, 3))
    ids += [piece.token for event in events for piece in event.pieces]
    assert ids == plain(logits, n=40).ids
    assert_next_is_right(s, logits, (1, 2, 3))


def test_a_refused_second_answer_does_not_undo_the_cancel_of_the_first():
    s, _, _ = pair()
    events = start(s, n=None)
    next(events)
    s.cancel()
    with pytest.raises(UsageError):
        start(s)
    assert next(events).finish == "cancelled"


def test_two_answers_that_start_together_are_refused_at_the_first_event():
    s, _, logits = pair()
    one, two = start(s), start(s, (1, 2, 3))
    next(one)
    with pytest.raises(UsageError, match="still answering"):
        next(two)
    one.close()
    assert_next_is_right(s, logits, PROMPT)


@pytest.mark.parametrize("n", [0, -1])
def test_no_tokens_wanted_is_an_answer_of_none(n):
    s, target, logits = pair()
    answer(s, PROMPT, 10)
    calls = target.calls
    got = answer(s, (1, 2, 3), n)
    assert (got.ids, got.finish) == ([], "length")
    assert target.calls == calls
    assert s.tokens == target.tokens
    assert_next_is_right(s, logits, PROMPT)


def test_an_empty_prompt_is_a_usage_error():
    s, _, logits = pair()
    with pytest.raises(UsageError, match="empty"):
        start(s, ())
    assert_next_is_right(s, logits, PROMPT)


# Long use


def test_many_turns_of_every_kind_in_one_session():
    logits = looping(salt=5)
    target, clock = timed(logits, CURVES["flat"])
    made = proposer("suffix", logits)
    s = session(target, made, policy=controller(("suffix",), CURVES["flat"]), clock=clock)
    history = list(PROMPT)
    for turn in range(24):
        sampling = SamplingSettings(temperature=[0.0, 1.1][turn % 2], seed=turn)
        if turn % 5 == 4:
            history = history[: len(history) // 2]
        if turn % 7 == 6:
            events = start(s, history, sampling=sampling)
            ids = [piece.token for _ in range(4) for piece in next(events).pieces]
            events.close()
        else:
            ids = answer(s, history, 15, sampling).ids
        assert ids == plain(logits, history, 40, sampling=sampling).ids[: len(ids)]
        history += [*ids, turn % N_VOCAB]
        assert_intact(s, target, history)


def test_the_target_is_asked_for_one_row_a_round_when_nothing_is_proposed():
    logits = looping()
    target = Recording(logits, N_VOCAB)
    s = session(target, Guesses(lambda history: []), 4)
    answer(s, PROMPT, 20)
    assert target.passes == [len(PROMPT)] + [1] * 19
