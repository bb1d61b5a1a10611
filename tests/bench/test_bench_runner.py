"""The order of measurements, on a model in a table."""

import contextlib
from dataclasses import replace

import pytest
from bench_kit import scripted_model

from edgespec.bench.answers import Answer, First, Taken
from edgespec.bench.local import LocalContender
from edgespec.bench.machine import EnergyMeter
from edgespec.bench.prompts import BenchPrompt
from edgespec.bench.record import record
from edgespec.bench.rows import rows
from edgespec.bench.runner import Plan, measure
from edgespec.errors import Cancelled, PromptTooLongError
from edgespec.types import SamplingSettings

CHAT = BenchPrompt("chat/1", "chat", ("hello hello hello", "again again"))
CODE = BenchPrompt("code/1", "code", ("def f(): pass\ndef f(): pass",))
N = 40


class Noted:
    """A contender that notes how it is asked."""

    def __init__(self, name, log, fault=None):
        self.name, self.log, self.fault = name, log, fault

    def first(self, messages, sampling):
        if self.fault is not None:
            raise self.fault
        self.log.append((self.name, "first", tuple(m.content for m in messages)))
        return 1.0

    def answer(self, messages, n, sampling):
        self.log.append((self.name, sampling.seed, tuple(m.content for m in messages)))
        return Taken(f"{self.name} says {sampling.seed}", None, n, ((0.0, 1), (1.0, n - 1)))

    def cancel(self):
        pass


def contenders(model, *specs):
    meter = EnergyMeter()
    return [LocalContender("plain", model, model.speculation("off"), meter)] + [
        LocalContender(spec, model, model.speculation(spec), meter) for spec in specs
    ]


def test_contenders_take_turns_and_are_asked_the_same():
    log = []
    made = [Noted(name, log) for name in ("plain", "a", "b")]
    plan = Plan(8, 2)
    out = list(measure(made, [CHAT], plan))
    assert len(out) == plan.steps([CHAT], 3) == 18
    first, second = log[:9], log[9:]
    assert [entry[:2] for entry in first] == [
        ("plain", "first"), ("a", "first"), ("b", "first"),
        ("plain", 0), ("a", 0), ("b", 0),
        ("a", 1), ("b", 1), ("plain", 1),
    ]  # fmt: skip
    assert {entry[2] for entry in second} == {(CHAT.turns[0], "plain says 0", CHAT.turns[1])}


def test_a_prompt_that_does_not_fit_is_left_out():
    log, notices = [], []
    made = [Noted("plain", log, PromptTooLongError("too long"))]
    assert list(measure(made, [CHAT], Plan(), notices.append)) == []
    assert notices == ["chat/1 is left out: too long"]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_every_configuration_says_what_plain_says(temperature):
    with scripted_model(draft_salt=1) as model:
        plan = Plan(N, 2, SamplingSettings(temperature=temperature))
        out = list(measure(contenders(model, "auto", "suffix", "draft"), [CHAT, CODE], plan))
    answers = [row for row in out if isinstance(row, Answer)]
    firsts = [row for row in out if isinstance(row, First)]
    table = rows(answers, firsts)
    assert [row.differ for row in table] == [0] * 12
    assert all(row.tokens_per_second for row in table)
    plain, drafted = table[-4], table[-1]
    assert (plain.mean_acceptance_length, plain.acceptance_rate) == (1.0, None)
    assert drafted.acceptance_rate == 1.0
    assert drafted.mean_acceptance_length > 3


def test_plain_asks_no_proposer():
    with scripted_model(draft_salt=1) as model:
        plain = contenders(model)[0]
        taken = plain.answer(messages(model), N, SamplingSettings(temperature=0.0))
        assert (taken.draft_n, taken.rounds, taken.n) == (0, N, N)
        assert model._drafts[0].backend.calls == 0


def messages(model, text="hello"):
    from edgespec import Message

    return [Message("user", text)]


def test_every_answer_begins_with_the_same_caches():
    with scripted_model(draft_salt=1) as model:
        _, drafted = contenders(model, "draft")
        greedy = SamplingSettings(temperature=0.0)
        counts = []
        for _ in range(3):
            before = model._drafts[0].backend.calls
            drafted.first(messages(model), greedy)
            assert model.stats.cached_tokens == 0
            drafted.answer(messages(model), N, greedy)
            assert model.stats.cached_tokens == model.stats.prompt_tokens - 1
            counts.append(model._drafts[0].backend.calls - before)
        assert counts[0] == counts[1] == counts[2] > 0


def test_the_model_speculates_as_before_afterwards(model):
    before = model.status
    with contextlib.suppress(ValueError), model.using(model.speculation("off")):
        assert not model.status.on
        raise ValueError
    assert model.status == before


def test_a_cancelled_answer_is_no_answer(model):
    contender = contenders(model, "suffix")[1]
    original = model.generate

    def cancelled(*arguments):
        for event in original(*arguments):
            model.cancel()
            yield event

    model.generate = cancelled
    with pytest.raises(Cancelled):
        contender.answer(messages(model), N, SamplingSettings(temperature=0.0))


def test_an_answer_survives_json(model):
    contender = contenders(model, "suffix")[1]
    out = list(measure([contender], [CODE], Plan(8, 1)))
    for row in out:
        if isinstance(row, Answer):
            again = Answer.from_dict(row.as_dict())
            assert replace(again.taken, arrivals=()) == replace(row.taken, arrivals=())
            assert again.place == row.place


@pytest.mark.parametrize("draft_salt", [None, 1, 99])
def test_traces_have_the_form_that_replay_reads(draft_salt):
    with scripted_model(draft_salt=draft_salt) as model:
        traces = list(record(model, [CHAT, CODE], N))
        assert [(t["id"], t["category"]) for t in traces] == [
            ("chat/1/1", "chat"),
            ("chat/1/2", "chat"),
            ("code/1", "code"),
        ]
        for trace in traces:
            assert list(trace) == ["id", "category", "prompt", "output", "best", "draft"]
            assert len(trace["output"]) == len(trace["best"]) == N
            match, p, top = (trace["draft"][part] for part in ("match", "p", "top"))
            if draft_salt is None:
                assert match == p == top == []
                continue
            assert len(match) == len(p) == len(top) == N
            assert all(0 <= x <= 1 for x in p)
            assert match == expected(model, trace)
        assert draft_salt != 1 or all(all(t["draft"]["match"]) for t in traces)


def expected(model, trace):
    """The draft model's first choice after every prefix, by the definition."""
    logits = model._drafts[0].backend._logits
    ids, prompt = trace["output"], trace["prompt"]
    return [int(logits((*prompt, *ids[:i])).argmax()) == ids[i] for i in range(len(ids))]
