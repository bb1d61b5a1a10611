"""On simulated time: a run with the controller against plain decoding and against the best fixed depth."""

import pytest
from engine_kit import CURVES, GREEDY, N_VOCAB, PROMPT, VOCABULARY, Guesses, controller

from edgespec.backends.scripted import ScriptedBackend, SimulatedClock, from_script, hashed
from edgespec.control import Controller, CostModel, FixedPolicy
from edgespec.engine import Request, Session
from edgespec.proposers import ModelProposer, SuffixProposer
from edgespec.proposers.lookahead import LookaheadProposer
from edgespec.text.stream import TokenStream

FLOOR = 0.97
LENGTHS = (41, 64, 150, 400)
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

    logits = staticmethod(LOGITS)

    def __init__(self, curve, each=0.2):
        self.seconds, self.each = CURVES[curve], each
        self.clock = SimulatedClock()

    def backend(self, logits, seconds):
        return ScriptedBackend(logits, N_VOCAB, clock=self.clock, seconds=seconds)

    def model(self, logits, guide=None):
        return ModelProposer(self.backend(logits, lambda n: self.each), N_VOCAB, lambda _: None, guide)

    def controller(self, sources, **how):
        return controller(sources, self.seconds, draft=self.each, **how)

    def run(self, policy, proposers, n, prompt=PROMPT):
        """(seconds after the first token, the answer)."""
        session = Session(
            self.backend(self.logits, self.seconds), lambda _: False, policy, proposers, clock=self.clock
        )
        request, stream = Request(GREEDY, max_tokens=n), TokenStream(VOCABULARY)
        events = session.generate(prompt, request, stream)
        first = next(events)
        began = self.clock.now
        rest = list(events)
        return self.clock.now - began, [first, *rest]


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
@pytest.mark.parametrize("kind", ["lookahead", "jacobi"])
@pytest.mark.parametrize("n", LENGTHS)
def test_refining_guesses_that_seldom_come_true_costs_three_percent_at_most(curve, kind, n):
    a = Answering(curve)
    policy = a.controller((kind,), trees=True)
    for turn in range(3):
        seconds, _ = a.run(policy, {kind: LookaheadProposer(kind)}, n, (*PROMPT, turn))
        assert rate(seconds, n) >= FLOOR


@pytest.mark.parametrize("late", [0.2, 1.0])
@pytest.mark.parametrize("curve", CURVES)
def test_a_model_that_reads_what_it_missed_costs_three_percent_at_most(curve, late):
    """Copying that is seldom right lets it fall behind; each token that it reads then takes this share."""
    a = Answering(curve, 0.3)
    row = a.each * late
    backend = a.backend(mistaken, lambda n: a.each + row * (n - 1))
    cost = CostModel({n: a.seconds(n) for n in range(1, 66)}, {"draft": a.each}, None, late)
    policy = Controller(("suffix", "draft"), cost)
    made = {"suffix": SuffixProposer(), "draft": ModelProposer(backend, N_VOCAB, lambda _: None)}
    for turn in range(3):
        seconds, _ = a.run(policy, made, 400, (*PROMPT, turn))
        assert rate(seconds, 400) >= FLOOR


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
    reasons = ("wrong from their first token", "likely", "too much to pay")
    assert any(reason in policy.status.reason for reason in reasons)


@pytest.mark.parametrize("curve", CURVES)
def test_answers_in_a_row_with_a_draft_that_is_always_wrong_stay_above_the_floor_each(curve):
    a = Answering(curve)
    made = {"suffix": Guesses(wrong, "suffix", SURE["suffix"]), "draft": a.model(mistaken)}
    policy = a.controller(("suffix", "draft"))
    for turn in range(4):
        seconds, _ = a.run(policy, made, 64, (*PROMPT, turn))
        assert rate(seconds, 64) >= FLOOR


SCRIPT = [(7 * i + i * i // 5) % N_VOCAB for i in range(2500)]
DEPTHS = (1, 2, 3, 4, 6, 7, 8, 11, 12, 15, 16, 19, 23, 24, 31, 32, 40, 47, 48, 56, 60, 63, 64)


class Scripted(Answering):
    """A target that says what is written down, and a draft model that has read it too."""

    logits = staticmethod(from_script(SCRIPT, len(PROMPT), N_VOCAB))

    def best_fixed(self, made, n):
        """Seconds of the best fixed depth; plain decoding is depth 0."""
        return min(n - 1.0, *(self.run(FixedPolicy(tuple(made), depth), made, n)[0] for depth in DEPTHS))


def copying(history):
    return SCRIPT[len(history) - len(PROMPT) :]


@pytest.mark.parametrize(
    ("curve", "n"), [("flat", 400), ("linear", 400), ("stairs", 400), ("steep", 400), ("q8", 800)]
)
def test_copying_that_is_always_right_is_near_the_best_fixed_depth(curve, n):
    a = Scripted(curve)
    made = {"suffix": Guesses(copying, "suffix", SURE["suffix"])}
    seconds, events = a.run(a.controller(("suffix",)), made, n)
    assert [piece.token for event in events for piece in event.pieces] == SCRIPT[:n]
    assert seconds <= a.best_fixed(made, n) / 0.98


@pytest.mark.parametrize(
    ("curve", "each", "n"),
    [
        ("flat", 0.05, 800),
        ("flat", 0.2, 400),
        ("flat", 0.4, 1500),
        ("linear", 0.05, 400),
        ("linear", 0.2, 400),
        ("linear", 0.4, 1500),
        ("stairs", 0.05, 400),
        ("stairs", 0.2, 400),
        ("stairs", 0.4, 1500),
        ("steep", 0.2, 400),
        ("q8", 0.05, 2400),
    ],
)
def test_a_draft_model_that_is_always_right_is_near_the_best_fixed_depth(curve, each, n):
    """Where a first try risks more than the ledger has, a longer answer makes up for the wait."""
    a = Scripted(curve, each)
    made = {"draft": a.model(a.logits)}
    seconds, _ = a.run(a.controller(("draft",)), made, n)
    assert seconds <= a.best_fixed(made, n) / 0.98


@pytest.mark.parametrize("each", [0.05, 0.2])
def test_a_model_that_was_right_in_an_answer_before_is_near_the_best_fixed_depth_at_once(each):
    a = Scripted("q8", each)
    made = {"draft": a.model(a.logits)}
    policy = a.controller(("draft",))
    for _ in range(2):
        a.run(policy, made, 400)
    seconds, _ = a.run(policy, made, 400)
    assert seconds <= a.best_fixed(made, 400) / 0.95
