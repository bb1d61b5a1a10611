"""What passes cost on this device, from the passes that calibration makes anyway."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

from edgespec.backends.base import Backend, Capabilities
from edgespec.types import Clock, FloatArray, Tokens

DRAFT_COUNTS = (2, 4, 8)
_DRAFT_PASSES, _FEW_PASSES = 4, 2


class Stopwatch:
    """A backend that notes the fastest pass of each row count on its way through to another."""

    def __init__(self, backend: Backend, clock: Clock = time.perf_counter) -> None:
        self._backend, self._clock = backend, clock
        self.n_vocab, self.n_ctx = backend.n_vocab, backend.n_ctx
        self.seconds: dict[int, float] = {}

    @property
    def capabilities(self) -> Capabilities:
        return self._backend.capabilities

    @property
    def length(self) -> int:
        return self._backend.length

    def forward(
        self,
        tokens: Tokens,
        parents: Sequence[int] | None = None,
        *,
        rows: Literal["all", "last", "none"] = "all",
    ) -> FloatArray:
        started = self._clock()
        logits = self._backend.forward(tokens, parents, rows=rows)
        seconds, n = self._clock() - started, len(tokens)
        if rows == "all":
            self.seconds[n] = min(seconds, self.seconds.get(n, seconds))
        return logits

    def commit(self, keep: Sequence[int]) -> None:
        self._backend.commit(keep)

    def truncate(self, length: int) -> None:
        self._backend.truncate(length)

    def abort(self, on: bool) -> None:
        self._backend.abort(on)

    def close(self) -> None:
        self._backend.close()


def draft_seconds(backend: Backend, tokens: Tokens, clock: Clock = time.perf_counter) -> float:
    """Seconds that a draft model takes for one token: the fastest of a few."""
    start = backend.length
    seconds = []
    for token in tokens[:_DRAFT_PASSES]:
        started = clock()
        backend.forward([token], rows="last")
        backend.commit([0])
        seconds.append(clock() - started)
    backend.truncate(start)
    return min(seconds)


def draft_passes(
    backend: Backend, tokens: Tokens, single: float, clock: Clock = time.perf_counter
) -> dict[int, float]:
    """Seconds of a draft model's passes of several rows, by their count: the fastest of two.

    `single`: of one row. Others are left out where rows cannot be dropped again, or do not fit.
    """
    able, room = backend.capabilities, min(backend.n_ctx - backend.length, len(tokens))
    seconds = {1: single}
    if able.rollback != "exact":
        return seconds
    for n in (n for n in DRAFT_COUNTS if n <= min(able.max_rows, room)):
        taken = []
        for _ in range(_FEW_PASSES):
            started = clock()
            backend.forward(tokens[:n])
            backend.commit(())
            taken.append(clock() - started)
        seconds[n] = min(taken)
    return seconds
