"""What passes cost on this device, from the passes that calibration makes anyway."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

from edgespec.backends.base import Backend, Capabilities
from edgespec.types import Clock, FloatArray, Tokens

_DRAFT_PASSES = 4
_TREE_ROWS = 8


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


def draft_row(
    backend: Backend, tokens: Tokens, single: float, clock: Clock = time.perf_counter
) -> float | None:
    """What each further row adds to a pass of a draft model, as a share of a `single` token's seconds.

    None where it cannot take branches.
    """
    able, n = backend.capabilities, _TREE_ROWS
    if not able.tree or able.max_rows < n or backend.length + n > backend.n_ctx or len(tokens) < n:
        return None
    seconds = []
    for _ in range(_DRAFT_PASSES):
        started = clock()
        backend.forward(tokens[:n])
        backend.commit(())
        seconds.append(clock() - started)
    return max(0.0, min(seconds) / single - 1.0) / (n - 1)
