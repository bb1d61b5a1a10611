import io
import json

import pytest

from edgespec.metrics import Summary, TraceWriter
from edgespec.types import NO_DRAFT, Outcome, Piece, Plan, Status, StepEvent, chain


def event(drafted, accepted, emitted, source="suffix", finish=None, seconds=0.5, plan=None):
    draft = chain([1] * drafted, source, [(4.0, 1.0, 1.0)] * drafted) if drafted else NO_DRAFT
    sources = [source] * accepted + ["target"] * (emitted - accepted)
    pieces = tuple(Piece(1, "x", s, i) for i, s in enumerate(sources))
    times = (0.1 * seconds, 0.7 * seconds, 0.2 * seconds)
    return StepEvent(pieces, emitted, Outcome(draft, accepted, emitted, 9, *times, plan=plan), finish)


def test_an_answer_is_added_up():
    s = Summary(prompt_tokens=9)
    for e in (
        event(0, 0, 1),
        event(4, 4, 5),
        event(4, 1, 2),
        event(0, 0, 1),
        event(4, 2, 2, finish="length"),
    ):
        s.add(e)
    assert (s.tokens, s.rounds, s.draft_n, s.draft_n_accepted) == (11, 5, 12, 7)
    assert s.tokens == s.draft_n_accepted + s.rounds - 1, "the last round was cut before the target's own"
    assert s.acceptance_rate == pytest.approx(7 / 12)
    assert s.mean_acceptance_length == pytest.approx(11 / 5)
    assert s.t_first == pytest.approx(0.5)
    assert s.t_decode == pytest.approx(2.0)
    assert s.tokens_per_second == pytest.approx(10 / 2.0), "the first token is the prompt's"
    assert s.shares == pytest.approx({"suffix": 7 / 11, "target": 4 / 11})
    assert s.finish == "length"


def test_plain_decoding_has_a_mean_acceptance_length_of_one():
    s = Summary()
    for _ in range(5):
        s.add(event(0, 0, 1))
    assert s.mean_acceptance_length == 1.0
    assert s.acceptance_rate is None
    assert s.shares == {"target": 1.0}


def test_nothing_yet_has_no_ratio_and_no_error():
    s = Summary()
    assert s.tokens_per_second == 0.0
    assert s.acceptance_rate is None
    assert s.mean_acceptance_length == 0.0
    assert s.shares == {}
    assert s.finish is None
    s.add(StepEvent((), 0, finish="cancelled"))
    assert (s.rounds, s.tokens, s.finish) == (0, 0, "cancelled")
    json.dumps(s.as_dict())


def test_one_token_has_no_rate():
    s = Summary()
    s.add(event(0, 0, 1))
    assert s.tokens_per_second == 0.0
    assert s.t_first == pytest.approx(0.5)


def test_held_back_text_counts_when_it_is_sampled():
    s = Summary()
    s.add(StepEvent((), 3, Outcome(NO_DRAFT, 0, 3, 0, 0.0, 1.0, 0.0)))
    s.add(StepEvent((Piece(1, "abc", "target", 0),), 0, finish="stop"))
    assert s.tokens == 3
    assert s.rounds == 1


def test_a_summary_is_json():
    s = Summary()
    s.add(event(4, 2, 3))
    told = json.loads(json.dumps(s.as_dict()))
    assert told["draft_n"] == 4
    assert told["acceptance_rate"] == 0.5
    assert told["sources"] == {"suffix": 2, "target": 1}


def test_a_trace_has_a_line_a_round():
    out = io.StringIO()
    trace = TraceWriter(out)
    on = Status(True, "suffix", 4, "ok")
    trace.header(model="a", seed=1)
    trace.round(event(4, 2, 3, plan=Plan(("suffix",), 4)), on)
    trace.round(event(0, 0, 1, finish="stop"), on)
    trace.round(event(0, 0, 1), on)
    header, *rounds = map(json.loads, out.getvalue().splitlines())
    assert header == {"type": "header", "model": "a", "seed": 1}
    assert [r["round"] for r in rounds] == [0, 1, 0], "counted anew in every answer"
    assert rounds[0]["drafted"] == [1, 1, 1, 1]
    assert rounds[0]["accepted"] == 2
    assert rounds[0]["plan"] == {"proposers": ["suffix"], "max_draft": 4}
    assert rounds[1]["finish"] == "stop"
