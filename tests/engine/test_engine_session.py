"""One conversation's cache: what is left after every way of leaving an answer."""

import threading

import pytest
from engine_kit import (
    N_VOCAB,
    PROMPT,
    PROPOSERS,
    answer,
    looping,
    model_proposer,
    plain,
    proposer,
    session,
)
from session_kit import SECOND, assert_intact, assert_next_is_right, collect, pair, start

from edgespec.backends.scripted import Faults, ScriptedBackend
from edgespec.engine import Session
from edgespec.engine.session import PREFILL_CHUNK
from edgespec.errors import BackendError


@pytest.mark.parametrize("kind", PROPOSERS)
@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_after_the_limit(kind, n):
    s, target, logits = pair(kind)
    got = answer(s, PROMPT, n)
    whole = (*PROMPT, *got.ids)
    assert_intact(s, target, whole)
    assert len(s.tokens) == len(whole) - 1
    assert_next_is_right(s, logits, (*whole, *SECOND))


@pytest.mark.parametrize("kind", PROPOSERS)
def test_after_the_end_token(kind):
    logits = looping()
    said = plain(logits).ids
    end = next(i for i in range(12, 60) if said[i] not in said[:i]) if len(set(said)) > 9 else 9
    eog = frozenset({said[end]})
    target = ScriptedBackend(logits, N_VOCAB)
    s = session(target, proposer(kind, logits), 6, eog=eog)
    got = answer(s)
    assert got.finish == "stop"
    assert got.ids == said[: said.index(said[end])]
    assert_intact(s, target, (*PROMPT, *got.ids))
    follow = (*PROMPT, *got.ids, *SECOND)
    assert answer(s, follow, 20).ids == plain(logits, follow, 20, eog=eog).ids


@pytest.mark.parametrize("kind", PROPOSERS)
@pytest.mark.parametrize("at", [0, 3, 8, 21])
def test_after_a_stop_string_that_spans_rounds(kind, at):
    logits = looping()
    text = plain(logits).text
    stop = text[at : at + 6]
    before = text[: text.index(stop)]
    s, target, _ = pair(kind)
    got = answer(s, stops=[stop])
    assert (got.text, got.finish) == (before, "stop")
    assert len(got.ids) == len(before)
    assert_intact(s, target, (*PROMPT, *got.ids))
    assert_next_is_right(s, logits, (*PROMPT, *got.ids, *SECOND))


def test_a_stop_string_that_never_completes_is_part_of_the_text():
    logits = looping()
    text = plain(logits, n=20).text
    s, _target, _ = pair()
    got = answer(s, n=20, stops=[text[-3:] + "zzz"])
    assert got.text == text
    assert sum(event.sampled for event in got.events) == 20


@pytest.mark.parametrize("kind", PROPOSERS)
@pytest.mark.parametrize("after", [1, 4, 9])
def test_after_the_reader_closed_the_iterator(kind, after):
    s, target, logits = pair(kind)
    events = start(s)
    ids = [piece.token for _ in range(after) for piece in next(events).pieces]
    events.close()
    assert_intact(s, target, (*PROMPT, *ids))
    assert_next_is_right(s, logits, (*PROMPT, *ids, *SECOND))


def test_after_the_reader_raised():
    s, target, logits = pair()
    events, ids = start(s), []
    for _ in range(5):
        ids += [piece.token for piece in next(events).pieces]
    with pytest.raises(ZeroDivisionError):
        events.throw(ZeroDivisionError())
    assert_intact(s, target, (*PROMPT, *ids))
    assert_next_is_right(s, logits, (*PROMPT, *ids, *SECOND))


def test_an_iterator_that_was_never_read_costs_nothing():
    s, target, logits = pair()
    start(s)
    assert target.calls == 0
    assert_next_is_right(s, logits, PROMPT)


@pytest.mark.parametrize("kind", ["suffix", "same model", "tree"])
@pytest.mark.parametrize("at", [0, 1, 2, 3, 6, 10])
@pytest.mark.parametrize("long", [False, True])
def test_after_the_backend_failed_at_any_call(kind, at, long):
    logits = looping()
    prompt = tuple(i % 9 for i in range(2 * PREFILL_CHUNK + 5)) if long else PROMPT
    target = ScriptedBackend(logits, N_VOCAB, faults=Faults(fail_at=at))
    s = session(target, proposer(kind, logits), 3)
    ids = []
    with pytest.raises(BackendError, match="scripted fault"):
        collect(start(s, prompt), ids)
    expected = plain(logits, prompt, 60).ids
    assert ids == expected[: len(ids)]
    assert_intact(s, target, (*prompt, *ids))
    assert_next_is_right(s, logits, (*prompt, *ids, *SECOND))


@pytest.mark.parametrize("good_rows", [0, 5, 13])
def test_after_the_model_computed_nan(good_rows):
    inner, rows = looping(), []

    def logits(context):
        rows.append(1)
        return inner(context) * (float("nan") if len(rows) == good_rows + 1 else 1)

    target = ScriptedBackend(logits, N_VOCAB)
    s = session(target, proposer("ngram", inner), 4)
    ids = []
    with pytest.raises(BackendError, match="NaN"):
        collect(start(s), ids)
    assert_intact(s, target, (*PROMPT, *ids))
    assert_next_is_right(s, inner, (*PROMPT, *ids, *SECOND))


@pytest.mark.parametrize("kind", PROPOSERS)
def test_after_a_cancel_from_another_thread(kind):
    s, target, logits = pair(kind)
    reached, go_on, seen = threading.Event(), threading.Event(), []

    def read():
        for event in start(s, n=None):
            seen.append(event)
            if len(seen) == 6:
                reached.set()
                go_on.wait(10)

    reader = threading.Thread(target=read)
    reader.start()
    assert reached.wait(10)
    s.cancel()
    go_on.set()
    reader.join(10)
    assert not reader.is_alive()
    assert seen[-1].finish == "cancelled"
    assert len(seen) == 7, "the round after the cancel does not happen"
    ids = [piece.token for event in seen for piece in event.pieces]
    assert ids == plain(logits).ids[: len(ids)]
    assert_intact(s, target, (*PROMPT, *ids))
    assert_next_is_right(s, logits, (*PROMPT, *ids, *SECOND))


def test_a_cancel_releases_text_that_was_held_back_for_a_stop_string():
    logits = looping()
    text = plain(logits).text
    s, target, _ = pair()
    out = []
    for event in start(s, stops=[text[:30] + "zzz"]):
        out.append(event)
        if len(out) == 4:
            s.cancel()
    shown = "".join(event.text for event in out)
    assert out[-1].finish == "cancelled"
    assert shown == text[: len(shown)]
    assert shown
    assert_intact(s, target, (*PROMPT, *plain(logits).ids[: len(shown)]))


def test_a_cancel_inside_a_pass_of_the_draft_model_ends_the_answer():
    logits = looping()
    draft = model_proposer(logits)
    target = ScriptedBackend(logits, N_VOCAB)
    policy = session(target, draft, 4).policy
    s = Session(target, lambda _: False, policy, {"draft": draft}, aborts=(draft._backend.abort,))
    events = start(s)
    ids = [piece.token for _ in range(3) for piece in next(events).pieces]
    draft._backend.abort(True)
    rest = list(events)
    assert rest[-1].finish == "cancelled"
    assert_intact(s, target, (*PROMPT, *ids))
    assert_next_is_right(s, logits, (*PROMPT, *ids, *SECOND))


@pytest.mark.parametrize("chunks", [1, 2])
def test_after_a_cancel_during_the_prompt(chunks):
    s, target, logits = pair()
    prompt = [i % 9 for i in range(3 * PREFILL_CHUNK)]

    def stop(done, total):
        if done == chunks * PREFILL_CHUNK:
            s.cancel()

    s.progress = stop
    got = answer(s, prompt)
    assert (got.ids, got.finish) == ([], "cancelled")
    assert len(s.tokens) == chunks * PREFILL_CHUNK
    assert_intact(s, target, prompt)
    s.progress = lambda done, total: None
    assert_next_is_right(s, logits, prompt)


def test_a_cancel_between_two_answers_does_not_reach_the_next():
    s, _, logits = pair()
    answer(s, PROMPT, 5)
    s.cancel()
    assert_next_is_right(s, logits, PROMPT)


def test_a_cancel_before_the_first_event_ends_the_answer_at_once():
    s, target, logits = pair()
    events = start(s)
    s.cancel()
    assert [event.finish for event in events] == ["cancelled"]
    assert target.calls == 0
    assert_next_is_right(s, logits, PROMPT)


@pytest.mark.parametrize("refuses", ["window", "always"])
def test_leaving_early_when_the_cache_cannot_be_cut(refuses):
    logits = looping()
    text = plain(logits).text
    faults = Faults(window=20) if refuses == "window" else Faults(refuse_rollback=True)
    target = ScriptedBackend(logits, N_VOCAB, faults=faults)
    s = session(target, proposer("suffix", logits), 4)
    got = answer(s, stops=[text[30:36]])
    assert got.finish == "stop"
    assert_intact(s, target, (*PROMPT, *got.ids))
    assert_next_is_right(s, logits, (*PROMPT, *got.ids, *SECOND))
