"""On simulated time: a run with the controller against plain decoding and against the best fixed depth."""

import pytest
from engine_kit import CURVES, GREEDY, N_VOCAB, PROMPT, Guesses, answer, controller, plain

from edgespec.backends.scripted import ScriptedBackend, SimulatedClock, hashed
from edgespec.control import FixedPolicy
from edgespec.engine import Session
from edgespec.proposers import ModelProposer, SuffixProposer

FLOOR = 0.97
LENGTHS = (32, 64, 150, 400)
LOGITS = hashed(N_VOCAB, order=3, sharpness=6.0, salt=4)
"""Greedy answers of this model wander for long before they repeat."""

SURE = {"suffix": (40.0, 1.0, 5.0), "ngram": (4.0, 1.0, 1.0), "draft": (1.0, 1.0)}
"""The evidence of a proposer that has every reason to be right."""


def wrong(history):
    return [(int(LOGITS(tuple(history)).argmax()) + 1) % N_VOCAB] * 64


def mistaken(context):
    """A model that is sure, and never says what the target says."""
    row = LOGITS(context)
    row[int(row.argmax())] = -20.0
    row[int(row.argmax())] = 30.0
    return row


class Answering:
    """Sessions on simulated time; `each`: seconds of a drafted token."""

    def __init__(self, curve, each=0.2):
        self.seconds, self.each = CURVES[curve], each
        self.clock = SimulatedClock()

    def backend(self, logits, seconds):
        return ScriptedBackend(logits, N_VOCAB, clock=self.clock, seconds=seconds)

    def model(self, logits, guide=None):
        return ModelProposer(self.backend(logits, lambda n: self.each), N_VOCAB, lambda _: None, guide)

    def controller(self, sources):
        return controller(sources, self.seconds, draft=self.each)

    def run(self, policy, proposers, n, prompt=PROMPT):
        """(seconds after the first token, the answer)."""
        session = Session(
            self.backend(LOGITS, self.seconds), lambda _: False, policy, proposers, clock=self.clock
        )
        events = session.generate(prompt, *request(n))
        first = next(events)
        began = self.clock.now
        rest = list(events)
        return self.clock.now - began, [first, *rest]


def request(n):
    from engine_kit import VOCABULARY

    from edgespec.engine import Request
    from edgespec.text.stream import TokenStream

    return Request(GREEDY, max_tokens=n), TokenStream(VOCABULARY)


def rate(seconds, n):
    """Over plain, from the first token on: every plain token takes a second."""
    return (n - 1) / seconds


def proposers(kind, a):
    """A proposer that is always wrong, by the source it calls itself."""
    if kind == "mistaken model":
        return {"draft": a.model(mistaken)}
    return {kind: Guesses(wrong, kind, SURE[kind])}


WRONG = ("suffix", "ngram", "draft", "mistaken model")


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("n", LENGTHS)
def test_a_draft_that_is_always_wrong_costs_three_percent_at_most(curve, kind, n):
    a = Answering(curve)
    made = proposers(kind, a)
    seconds, _ = a.run(a.controller(tuple(made)), made, n)
    assert rate(seconds, n) >= FLOOR


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("kind", WRONG)
def test_a_draft_that_is_always_wrong_is_off_within_64_tokens_and_status_says_why(curve, kind):
    a = Answering(curve)
    made = proposers(kind, a)
    policy = a.controller(tuple(made))
    _, events = a.run(policy, made, 400)
    tokens, late = 0, 0
    for event in events:
        if tokens >= 64:
            late += len(event.outcome.draft) > 0
        tokens += event.sampled
    assert late <= 4, "only probes, 1% of the rounds at most"
    assert not policy.status.on
    assert "wrong from their first token" in policy.status.reason or "likely" in policy.status.reason


@pytest.mark.parametrize("curve", CURVES)
def test_answers_in_a_row_with_a_draft_that_is_always_wrong_stay_above_the_floor_each(curve):
    a = Answering(curve)
    made = {"suffix": Guesses(wrong, "suffix", SURE["suffix"]), "draft": a.model(mistaken)}
    policy = a.controller(("suffix", "draft"))
    for turn in range(4):
        seconds, _ = a.run(policy, made, 64, (*PROMPT, turn))
        assert rate(seconds, 64) >= FLOOR
