"""Small models, proposers and shortcuts for tests of the core."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edgespec.backends.scripted import Faults, Logits, ScriptedBackend, SimulatedClock, hashed
from edgespec.control import Calibration, Controller, CostModel, FixedPolicy, Policy
from edgespec.engine import Request, Session
from edgespec.engine.cascade import Cascade
from edgespec.proposers import ModelProposer, NgramProposer, Proposer, SuffixProposer
from edgespec.proposers.lookahead import LookaheadProposer
from edgespec.proposers.memory import MemoryProposer
from edgespec.proposers.recycling import RecyclingProposer
from edgespec.proposers.suffix import SuffixAhead
from edgespec.text.stream import TokenStream
from edgespec.text.table import TableVocabulary
from edgespec.types import Clock, Draft, Evidence, Plan, SamplingSettings, Source, StepEvent, Tokens, Verdict

N_VOCAB = 12
VOCABULARY = TableVocabulary([bytes([97 + i]) for i in range(26)])
"""Token i is the letter number i."""

GREEDY = SamplingSettings(temperature=0.0)
PROMPT = (0, 1, 2, 3, 0, 1, 2, 4, 0, 1, 2)
ENDLESS = frozenset[int]()
UNSURE = (0.9, 0.0)
"""Evidence of a draft model that copying says nothing of."""


def looping(n_vocab: int = N_VOCAB, salt: int = 1) -> Logits:
    """Greedy answers run into loops, which copying proposers can guess."""
    return hashed(n_vocab, order=2, sharpness=3.0, salt=salt)


def wandering(n_vocab: int = N_VOCAB, salt: int = 1) -> Logits:
    """Flat enough that sampling rarely repeats itself."""
    return hashed(n_vocab, order=2, sharpness=1.5, salt=salt)


def remembering(*texts: Sequence[int]) -> MemoryProposer:
    """A memory that has these answers."""
    memory = MemoryProposer()
    for number, text in enumerate(texts):
        memory.remember(number, np.array(text, np.int32))
    return memory


class TreeProposer:
    """Two branches from the root, each `depth` deep: one of random ids, one that a model finds best."""

    name: Source = "draft"

    def __init__(self, logits: Logits, n_vocab: int, depth: int = 3) -> None:
        self._logits, self._n_vocab, self._depth = logits, n_vocab, depth

    def begin(self, history: Tokens) -> None:
        pass

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        depth = min(self._depth, plan.max_draft // 2)
        rng = np.random.default_rng([7, *history[-2:]])
        wrong = [int(rng.integers(self._n_vocab)) for _ in range(depth)]
        right = list[int]()
        for _ in range(depth):
            right.append(int(self._logits((*history, *right)).argmax()))
        tokens, parents = list[int](), list[int]()
        for i in range(depth):
            tokens += [wrong[i], right[i]]
            parents += [2 * i - 2, 2 * i - 1] if i else [-1, -1]
        n = len(tokens)
        return Draft(tuple(tokens), tuple(parents), (UNSURE,) * n, (self.name,) * n)

    def observe(self, verdict: Verdict) -> None:
        pass


class Guesses:
    """Proposes what a function of the history says, for nothing."""

    def __init__(
        self,
        guess: Callable[[Tokens], Sequence[int]],
        name: Source = "draft",
        evidence: Evidence = UNSURE,
    ) -> None:
        self._guess, self.name, self._evidence = guess, name, evidence

    def begin(self, history: Tokens) -> None:
        pass

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        tokens = tuple(self._guess(history))[: plan.max_draft]
        n = len(tokens)
        return Draft(tokens, tuple(range(-1, n - 1)), (self._evidence,) * n, (self.name,) * n)

    def observe(self, verdict: Verdict) -> None:
        pass


Seconds = Callable[[int], float]
"""What a pass over so many rows takes."""

Q8 = {1: 1.0, 2: 1.6, 4: 1.9, 5: 2.9, 8: 2.9, 16: 4.8, 64: 15.0}
CURVES: dict[str, Seconds] = {
    "flat": lambda n: 1.0 + 0.01 * (n - 1),
    "linear": lambda n: 1.0 + 0.3 * (n - 1),
    "stairs": lambda n: 1.0 + 0.8 * ((n - 1) // 4) + 0.01 * (n - 1),
    "steep": lambda n: 1.0 + 0.9 * (n - 1),
    "q8": lambda n: float(np.interp(n, list(Q8), list(Q8.values()))),
}


def controller(
    sources: Sequence[Source],
    seconds: Seconds = CURVES["linear"],
    *,
    draft: float = 0.2,
    calibration: Calibration | None = None,
    **how,
) -> Controller:
    """A controller that knows these costs to the last digit."""
    cost = CostModel({n: seconds(n) for n in range(1, 66)}, {"draft": draft})
    return Controller(sources, cost, calibration, **how)


def timed(logits: Logits, seconds: Seconds, n_vocab: int = N_VOCAB) -> tuple[ScriptedBackend, SimulatedClock]:
    """A target that takes simulated time."""
    clock = SimulatedClock()
    return ScriptedBackend(logits, n_vocab, clock=clock, seconds=seconds), clock


def model_proposer(
    logits: Logits,
    n_vocab: int = N_VOCAB,
    *,
    n_ctx: int = 4096,
    faults: Faults | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> ModelProposer:
    return ModelProposer(ScriptedBackend(logits, n_vocab, n_ctx=n_ctx, faults=faults), n_vocab, notify)


def cascade(
    mid: Logits,
    tiny: Logits,
    n_vocab: int = N_VOCAB,
    *,
    depth: int = 3,
    policy: Policy | None = None,
    **backend,
) -> ModelProposer:
    """A draft model for which copying and a smaller model draft, `depth` tokens a pass."""
    suffix = SuffixProposer()
    inner = {"suffix": SuffixAhead(suffix), "draft": model_proposer(tiny, n_vocab)}
    backend = ScriptedBackend(mid, n_vocab, **backend)
    quick = Cascade(backend, n_vocab, inner, lambda _: None)
    quick.use(policy or FixedPolicy(tuple(inner), depth))
    return ModelProposer(backend, n_vocab, lambda _: None, suffix, quick)


PROPOSERS = (
    "ngram",
    "suffix",
    "memory",
    "recycling",
    "lookahead",
    "jacobi",
    "same model",
    "other model",
    "cascade",
    "tree",
    "random",
)


def proposer(kind: str, logits: Logits, n_vocab: int = N_VOCAB) -> Proposer:
    """One of `PROPOSERS` for a target with these logits."""
    rng = np.random.default_rng(3)
    made: dict[str, Callable[[], Proposer]] = {
        "ngram": NgramProposer,
        "suffix": SuffixProposer,
        "memory": lambda: remembering(plain(logits, n=100, n_vocab=n_vocab).ids),
        "recycling": RecyclingProposer,
        "lookahead": LookaheadProposer,
        "jacobi": lambda: LookaheadProposer("jacobi"),
        "same model": lambda: model_proposer(logits, n_vocab),
        "other model": lambda: model_proposer(looping(n_vocab, salt=99), n_vocab),
        "cascade": lambda: cascade(looping(n_vocab, salt=99), looping(n_vocab, salt=98), n_vocab),
        "tree": lambda: TreeProposer(logits, n_vocab),
        "random": lambda: Guesses(lambda _: rng.integers(n_vocab, size=8).tolist()),
    }
    return made[kind]()


def session(
    backend: ScriptedBackend,
    made: Proposer | None = None,
    depth: int = 5,
    *,
    policy: Policy | None = None,
    clock: Clock = time.perf_counter,
    eog: frozenset[int] = ENDLESS,
    notify: Callable[[str], None] = lambda _: None,
) -> Session:
    proposers = {} if made is None else {made.name: made}
    policy = policy or FixedPolicy(tuple(proposers), depth)
    return Session(backend, eog.__contains__, policy, proposers, clock=clock, notify=notify)


@dataclass(frozen=True)
class Answer:
    events: tuple[StepEvent, ...]

    @property
    def ids(self) -> list[int]:
        return [piece.token for event in self.events for piece in event.pieces]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events)

    @property
    def finish(self) -> str | None:
        return self.events[-1].finish

    @property
    def outcomes(self) -> list:
        return [event.outcome for event in self.events if event.outcome is not None]

    @property
    def accepted(self) -> int:
        return sum(outcome.accepted for outcome in self.outcomes)

    @property
    def verified(self) -> int:
        return sum(len(outcome.draft) for outcome in self.outcomes)


def answer(
    s: Session,
    prompt: Sequence[int] = PROMPT,
    n: int | None = 60,
    sampling: SamplingSettings = GREEDY,
    *,
    stops: Sequence[str] = (),
    verify: str = "coupled",
    vocabulary: TableVocabulary = VOCABULARY,
) -> Answer:
    request = Request(sampling, verify, n)
    return Answer(tuple(s.generate(prompt, request, TokenStream(vocabulary, stops=stops))))


def plain(logits: Logits, prompt: Sequence[int] = PROMPT, n: int | None = 60, **how) -> Answer:
    """What the target says without speculation, in a fresh session."""
    n_ctx, eog = how.pop("n_ctx", 4096), how.pop("eog", ENDLESS)
    n_vocab = how.pop("n_vocab", N_VOCAB)
    return answer(session(ScriptedBackend(logits, n_vocab, n_ctx=n_ctx), eog=eog), prompt, n, **how)
