"""Draft-model proposer (Leviathan et al. 2023; Chen et al. 2023) with its own cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from edgespec.backends.base import Backend
from edgespec.errors import RollbackError
from edgespec.sampling import Sampler, confidence, draw
from edgespec.sampling.noise import DRAFT
from edgespec.types import (
    NO_DRAFT,
    Distribution,
    Draft,
    FloatArray,
    Plan,
    SamplingSettings,
    Source,
    Tokens,
    Verdict,
    chain,
)


class ModelProposer:
    """A small model with the target's vocabulary.

    `n_shared`: ids from here on exist in one of the two only and are never drafted. In coupled mode it
    picks its tokens with the same noise as the target; in rejection mode it samples and reports q.
    """

    name: Source = "draft"

    def __init__(self, backend: Backend, n_shared: int, notify: Callable[[str], None]) -> None:
        self._backend = backend
        self._n_shared = min(n_shared, backend.n_vocab)
        self._notify = notify
        self._cached: list[int] = []
        self._full = False
        self.configure(SamplingSettings(temperature=0.0), "coupled")

    def configure(self, sampling: SamplingSettings, mode: Literal["coupled", "rejection"]) -> None:
        self._sampler = Sampler(sampling)
        self._samples = mode == "rejection" and sampling.temperature > 0

    def begin(self, history: Tokens) -> None:
        self._full = False
        if not history:
            self._backend.truncate(0)
            self._cached.clear()

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        room = self._backend.n_ctx - len(history)
        if room < 1 or plan.max_draft < 1 or not plan.worth(0, 1.0):
            self._say_full(room)
            return NO_DRAFT
        row = self._catch_up(history)
        path: list[int] = []
        qs: list[Distribution] = []
        survival: list[float] = []
        reach = 1.0
        while True:
            token, q = self._pick(row, history, path)
            reach *= confidence(row)
            path.append(token)
            survival.append(reach)
            if q is not None:
                qs.append(q)
            drafted = len(path)
            if drafted >= min(plan.max_draft, room) or not self._goes_on(drafted, reach, plan):
                break
            row = self._forward([token])
        return chain(path, self.name, survival, qs if self._samples else None)

    def _goes_on(self, drafted: int, reach: float, plan: Plan) -> bool:
        """To drop a sampled token for what came after it would bias the text: stop only where all stand."""
        if self._samples and plan.fit(drafted) != drafted:
            return True
        return plan.worth(drafted, reach)

    def _pick(self, row: FloatArray, history: Tokens, path: list[int]) -> tuple[int, Distribution | None]:
        if not self._samples:
            return self._sampler.choose(row, history, path), None
        q = self._sampler.distribution(row, history, path)
        seed = self._sampler.settings.seed
        return draw(q, seed, len(history) + len(path), DRAFT), q

    def _catch_up(self, history: Tokens) -> FloatArray:
        """Bring the cache to exactly `history`; the row after it, over the shared ids."""
        same = 0
        for cached, token in zip(self._cached, history, strict=False):
            if cached != token:
                break
            same += 1
        same = min(same, len(history) - 1)
        if same < len(self._cached):
            try:
                self._backend.truncate(same)
            except RollbackError:
                same = 0
                self._backend.truncate(0)
            del self._cached[same:]
        return self._forward(history[same:])

    def _forward(self, tokens: Tokens) -> FloatArray:
        row: FloatArray = self._backend.forward(tokens, rows="last")[0]
        self._backend.commit(range(len(tokens)))
        self._cached += tokens
        shared: FloatArray = row[: self._n_shared]
        return shared

    def _say_full(self, room: int) -> None:
        if room < 1 and not self._full:
            self._full = True
            self._notify(f"the draft model's context of {self._backend.n_ctx} tokens is full: it pauses")

    def observe(self, verdict: Verdict) -> None:
        pass
