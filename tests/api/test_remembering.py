"""Answers that were given once are guessed the second time, in any conversation and any run."""

import threading

import pytest
from bench_kit import BYTES
from engine_kit import GREEDY

from edgespec.api import remembering
from edgespec.api.loading import Settings, assemble
from edgespec.backends.base import LoadedModel, ModelInfo
from edgespec.backends.scripted import ScriptedBackend, hashed
from edgespec.errors import UsageError
from edgespec.memory import clear, location
from edgespec.types import SamplingSettings

QUESTION = tuple(b"why is the sky blue?")
LONG = 300
ANCHOR = 8
"""Numbers before each kept answer."""
HOT = SamplingSettings(temperature=0.8, seed=5)


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EDGESPEC_DATA", str(tmp_path / "data"))


@pytest.fixture
def start(tmp_path):
    """A model in a table, as it is after loading; its text hardly repeats itself."""
    path = tmp_path / "table.gguf"
    path.write_bytes(b"table")

    def started(notices=None, spec="suffix,memory", **settings):
        info = ModelInfo(str(path), "table", "table", "F32", 0, 0, 4096, "scripted", "none", None, {})
        backend = ScriptedBackend(hashed(256, order=6, sharpness=3.0, salt=1), 256)
        notify = (lambda _: None) if notices is None else notices.append
        asked = Settings(spec=spec, draft_max=16, notify=notify, **({"memory": "kept"} | settings))
        return assemble(LoadedModel(backend, BYTES, info), path, None, asked)

    return started


def ask(model, question=QUESTION, sampling=GREEDY, n=LONG):
    """(ids, mean acceptance length)."""
    model.forget()
    events = list(model.complete(question, sampling, max_tokens=n))
    return [piece.token for event in events for piece in event.pieces], model.stats.mean_acceptance_length


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "sampled"])
def test_the_same_question_in_another_run_is_answered_in_a_third_of_the_rounds(start, sampling):
    with start() as model:
        first, slow = ask(model, sampling=sampling)
    with start() as model:
        wait_for_the_disk(model)
        again, fast = ask(model, sampling=sampling)
    assert again == first
    assert fast >= 3 * slow


def wait_for_the_disk(model):
    done = threading.Event()
    model._remembering._jobs.put(lambda _: done.set())
    assert done.wait(20)


def test_of_a_large_memory_the_latest_is_there_at_once_and_the_rest_soon(start, monkeypatch):
    monkeypatch.setattr(remembering, "_LATEST", 2)
    monkeypatch.setattr(remembering, "_PAUSE", 0.2)
    with start() as model:
        first, slow = ask(model)
        for n in range(3):
            ask(model, tuple(b"another question %d" % n))
    with start() as model:
        wait_for_the_disk(model)
        again, fast = ask(model)
    assert again == first
    assert fast >= 3 * slow


def test_the_end_does_not_wait_for_the_rest_and_loses_no_answer(start, monkeypatch):
    monkeypatch.setattr(remembering, "_LATEST", 1)
    monkeypatch.setattr(remembering, "_PAUSE", 60.0)
    with start() as model:
        ask(model)
    with start() as model:
        other, _ = ask(model, tuple(b"another question"))
        store = model._remembering._store
    assert store.load()[0][1].tolist()[ANCHOR:] == other


def test_the_same_question_in_this_run_is_recalled_without_a_disk(start):
    with start(memory="run") as model:
        first, slow = ask(model)
        again, fast = ask(model)
    assert again == first
    assert fast >= 3 * slow
    assert not location().parent.exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"memory": "off", "spec": "suffix"},
        {"memory": "read"},
        {"memory": "kept", "spec": "off"},
        {"memory": "kept", "spec": "suffix"},
    ],
)
def test_nothing_is_written_where_nothing_is_kept(start, settings):
    with start(**settings) as model:
        ask(model)
    assert not location().parent.exists()


def test_what_is_only_read_helps_and_stays_as_it_was(start):
    with start() as model:
        ask(model)
    before = location().read_bytes()
    with start(memory="read") as model:
        wait_for_the_disk(model)
        assert ask(model)[1] > 5
        ask(model, tuple(b"another question"))
    assert location().read_bytes() == before


def test_an_answer_given_again_is_kept_once_and_moves_up(start):
    with start() as model:
        ids, _ = ask(model)
        ask(model, tuple(b"another question"))
        ask(model)
    with start() as model:
        wait_for_the_disk(model)
        ask(model)
        store = model._remembering._store
    kept = [tokens.tolist()[ANCHOR:] for _, tokens in store.load()]
    assert len(kept) == 2
    assert kept[0] == ids


def test_short_answers_are_not_kept_and_broken_off_ones_are(start):
    with start() as model:
        ask(model, n=15)
        assert not location().exists()
        events = model.complete(QUESTION, GREEDY, max_tokens=LONG)
        got = []
        for event in events:
            got += [piece.token for piece in event.pieces]
            if len(got) > 40:
                break
        events.close()
        store = model._remembering._store
    assert [tokens.tolist()[ANCHOR:] for _, tokens in store.load()] == [got]


def test_a_damaged_memory_is_one_notice_and_no_more(start):
    location().parent.mkdir(parents=True)
    location().write_bytes(b"rubbish" * 1000)
    notices = []
    with start(notices) as model:
        wait_for_the_disk(model)
        ask(model)
    assert len([notice for notice in notices if notice.startswith("the memory")]) == 1
    with start() as model:
        wait_for_the_disk(model)
        assert ask(model)[1] > 5


def test_cleared_while_a_model_is_loaded_it_fills_again(start):
    with start() as model:
        ask(model)
        wait_for_the_disk(model)
        clear()
        other, _ = ask(model, tuple(b"another question"))
        store = model._remembering._store
    assert [tokens.tolist()[ANCHOR:] for _, tokens in store.load()] == [other]


def test_the_memory_cannot_be_asked_for_where_it_is_off(start):
    with pytest.raises(UsageError, match="memory"):
        start(memory="off")
