"""Evaluating a prompt ahead of its answer."""

import threading

import pytest
from engine_kit import N_VOCAB, PROMPT, PROPOSERS, answer, looping, plain, proposer, session
from session_kit import Recording, assert_intact, assert_next_is_right, start

from edgespec.backends.scripted import Faults, ScriptedBackend
from edgespec.engine.session import PREFILL_CHUNK
from edgespec.errors import BackendError, PromptTooLongError, UsageError

LONG = tuple(i % 7 for i in range(3 * PREFILL_CHUNK + 5))


@pytest.mark.parametrize("kind", PROPOSERS)
def test_the_answer_to_a_warm_prompt_evaluates_only_the_rest(kind):
    logits = looping()
    target = Recording(logits, N_VOCAB)
    s = session(target, proposer(kind, logits), 4)
    progress = []
    s.progress = lambda done, total: progress.append((done, total))
    assert s.warm(LONG) == len(LONG)
    assert progress[-1] == (len(LONG), len(LONG))
    assert len(progress) == 4
    assert_intact(s, target, LONG)
    target.passes.clear()
    got = answer(s, (*LONG, 8, 9), 20)
    assert target.passes[0] == 2
    assert got.ids == plain(logits, (*LONG, 8, 9), 20).ids


def test_warming_what_is_cached_does_nothing():
    logits = looping()
    target = Recording(logits, N_VOCAB)
    s = session(target)
    got = answer(s, PROMPT, 20)
    target.passes.clear()
    whole = (*PROMPT, *got.ids)
    assert s.warm(PROMPT) == len(s.tokens) > len(PROMPT)
    assert target.passes == []
    assert_intact(s, target, whole)


def test_cancelling_keeps_the_chunks_that_are_done():
    logits = looping()
    target = Recording(logits, N_VOCAB)
    s = session(target)

    def stop_after_one(done, total):
        s.cancel()

    s.progress = stop_after_one
    assert s.warm(LONG) == PREFILL_CHUNK
    assert_intact(s, target, LONG)
    s.progress = lambda done, total: None
    assert_next_is_right(s, logits, PROMPT)
    assert s.warm(LONG) == len(LONG)


def test_a_failed_pass_leaves_the_cache_sound():
    logits = looping()
    target = ScriptedBackend(logits, N_VOCAB, faults=Faults(fail_at=1))
    s = session(target)
    with pytest.raises(BackendError):
        s.warm(LONG)
    assert_intact(s, target, LONG)
    assert len(s.tokens) == PREFILL_CHUNK
    assert_next_is_right(s, logits, PROMPT)


def test_only_one_thing_at_a_time():
    logits = looping()
    s = session(ScriptedBackend(logits, N_VOCAB))
    with pytest.raises(PromptTooLongError):
        s.warm((1,) * (s._backend.n_ctx + 1))
    events = start(s)
    next(events)
    with pytest.raises(UsageError, match="still answering"):
        s.warm(PROMPT)
    events.close()
    refused = []

    def ask(done, total):
        try:
            start(s)
        except UsageError as error:
            refused.append(error)

    s.progress = ask
    thread = threading.Thread(target=s.warm, args=(LONG,))
    thread.start()
    thread.join()
    assert refused
