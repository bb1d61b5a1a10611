"""The public API on real weights: turns, and prompts longer than a batch."""

import threading
import time

import pytest

import edgespec
from edgespec.types import SamplingSettings

pytestmark = pytest.mark.model

GREEDY = SamplingSettings(temperature=0.0)
NATIVE = {"n_threads": 1, "n_threads_batch": 1}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Measurements go to a place of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGESPEC_CACHE", str(tmp_path_factory.mktemp("measured")))
        yield


@pytest.fixture(scope="module")
def model(smollm2_path, measured):
    with edgespec.load(smollm2_path, n_ctx=512, **NATIVE) as model:
        yield model


def said(events):
    return "".join(event.text for event in events)


def test_a_second_turn_evaluates_only_what_is_new(model):
    chat = model.chat(sampling=GREEDY)
    chat.max_tokens = 8
    first = said(chat.send("Name three colours."))
    before = model.stats.prompt_tokens + model.stats.tokens
    said(chat.send("And two more?"))
    again = model.stats
    assert again.cached_tokens >= before - 1
    assert 0 < again.prompt_tokens - again.cached_tokens < 25
    assert next(m.content for m in chat.messages if m.role == "assistant") == first


def test_an_answer_does_not_depend_on_what_the_cache_held(model):
    def ask():
        chat = model.chat(sampling=GREEDY)
        chat.max_tokens = 6
        return said(chat.send("What is the capital of France?"))

    first = ask()
    said(model.complete("Something else entirely", GREEDY, max_tokens=3))
    assert ask() == first


def test_stats_add_up(model):
    events = list(model.complete("one two three one two three one two", GREEDY, max_tokens=9))
    stats = model.stats
    assert stats.tokens == sum(event.sampled for event in events) == 9
    trimmed = sum(e.outcome.emitted == e.outcome.accepted for e in events)
    assert stats.tokens == stats.draft_n_accepted + stats.rounds - trimmed
    assert stats.draft_n_accepted <= stats.draft_n
    assert stats.finish == "length"


def test_an_answer_that_is_left_early_leaves_a_partial_turn(model):
    chat = model.chat(sampling=GREEDY)
    events = chat.send("Count from one to ten.")
    text = next(events).text + next(events).text
    events.close()
    assert chat.messages[-1].role == "assistant"
    assert chat.messages[-1].content == text
    assert chat.finish == "cancelled"
    chat.max_tokens = 3
    assert said(chat.send("Go on."))


@pytest.fixture(scope="module")
def long_prompt():
    return [100 + i * i % 4001 for i in range(600)]


@pytest.mark.parametrize("n_batch", [64, 512, 2048])
def test_a_prompt_longer_than_a_batch_with_a_draft_model(
    smollm2_path, measured, long_prompt, n_batch, firsts
):
    with edgespec.load(
        smollm2_path, draft=smollm2_path, spec="draft", n_ctx=704, n_batch=n_batch, **NATIVE
    ) as model:
        events = list(model.complete(long_prompt, GREEDY, max_tokens=4))
        assert model.stats.prompt_tokens == 600
        firsts.append(next(piece.token for event in events for piece in event.pieces))
    assert len(set(firsts)) == 1, "the first token does not depend on the batch"


@pytest.fixture(scope="module")
def firsts():
    return []


def test_a_restored_conversation_warms_up_to_what_its_next_prompt_begins_with(model):
    chat = model.chat("Answer briefly.", GREEDY)
    chat.max_tokens = 6
    said(chat.send("What is the capital of France?"))
    expected = said(chat.send("And of Spain?"))
    model.forget()
    again = model.chat(sampling=GREEDY)
    again.max_tokens = 6
    assert again.warm() == 0
    again.restore(chat.messages[:3])
    cached = again.warm()
    assert said(again.send("And of Spain?")) == expected
    assert model.stats.cached_tokens == cached > 20
    assert model.stats.prompt_tokens - cached < 20
    again.restore(chat.messages[:2])  # its question has no answer yet
    assert again.warm() >= cached // 2
    said(again.regenerate())
    assert model.stats.prompt_tokens - model.stats.cached_tokens == 1


def test_an_old_answer_stays_where_nothing_of_a_new_one_comes(model):
    chat = model.chat(sampling=GREEDY)
    chat.max_tokens = 6
    said(chat.send("What is the capital of France?"))
    before = list(chat.messages)
    events = chat.regenerate()
    chat.cancel()
    assert said(events) == ""
    assert chat.finish == "cancelled"
    assert chat.messages == before


def test_warming_is_cancelled_in_the_middle_of_a_pass(model):
    chat = model.chat(sampling=GREEDY)
    chat.max_tokens = 6
    expected = said(chat.send("count " * 350))
    model.forget()
    again = model.chat(sampling=GREEDY)
    again.max_tokens = 6
    again.restore(chat.messages[:1])
    cached = []
    warming = threading.Thread(target=lambda: cached.append(again.warm()))
    warming.start()
    time.sleep(0.1)
    while warming.is_alive():
        again.cancel()
        time.sleep(0.02)
    assert cached[0] < model.stats.prompt_tokens
    assert said(again.regenerate()) == expected
