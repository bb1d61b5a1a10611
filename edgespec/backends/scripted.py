"""A backend whose logits come from a function or a table: the test double, with faults on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from edgespec.backends.base import Capabilities
from edgespec.backends.tree import Tree
from edgespec.errors import BackendError, Cancelled, RollbackError
from edgespec.types import FloatArray, Tokens

Logits = Callable[[tuple[int, ...]], FloatArray]
"""All tokens up to and including the row's own -> logits `[n_vocab]`."""


class SimulatedClock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass(frozen=True, slots=True)
class Faults:
    """`refuse_rollback`: dropping rows fails although it was promised. `window`: once the cache holds
    more tokens, nothing can be dropped. `fail_at`: this forward call, counted from 0, raises.
    """

    refuse_rollback: bool = False
    window: int | None = None
    fail_at: int | None = None
    tree: bool = True
    max_rows: int = 65


class ScriptedBackend:
    """Logits from a function of the whole context; `seconds[n]` is what a pass of n rows takes."""

    def __init__(
        self,
        logits: Logits,
        n_vocab: int,
        *,
        n_ctx: int = 4096,
        faults: Faults | None = None,
        clock: SimulatedClock | None = None,
        seconds: Callable[[int], float] | None = None,
    ) -> None:
        self.n_vocab = n_vocab
        self.n_ctx = n_ctx
        self.calls = 0
        self._logits = logits
        self._faults = faults or Faults()
        self._clock = clock
        self._seconds = seconds
        self._cache: list[int] = []
        self._pending: tuple[tuple[int, ...], tuple[int, ...]] | None = None
        self._abort = threading.Event()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        window, faults = self._faults.window, self._faults
        if window is not None and len(self._cache) >= window:
            return Capabilities("none", False, False, 1)
        rows = faults.max_rows if window is None else min(faults.max_rows, window - len(self._cache))
        return Capabilities("exact", faults.tree, False, rows)

    @property
    def length(self) -> int:
        return len(self._cache)

    @property
    def tokens(self) -> tuple[int, ...]:
        """What the cache holds."""
        return tuple(self._cache)

    def forward(
        self,
        tokens: Tokens,
        parents: Sequence[int] | None = None,
        *,
        rows: Literal["all", "last", "none"] = "all",
    ) -> FloatArray:
        call, self.calls = self.calls, self.calls + 1
        n = len(tokens)
        parents = tuple(range(-1, n - 1)) if parents is None else tuple(parents)
        self._check(tokens, parents, rows)
        if self._abort.is_set():
            raise Cancelled("stopped")
        if call == self._faults.fail_at:
            raise BackendError(f"scripted fault at call {call}")
        if self._clock is not None and self._seconds is not None:
            self._clock.advance(self._seconds(n))
        self._pending = (tuple(tokens), parents)
        wanted = {"all": range(n), "last": range(n - 1, n), "none": range(0)}[rows]
        out = np.empty((len(wanted), self.n_vocab), np.float32)
        for k, i in enumerate(wanted):
            out[k] = self._logits((*self._cache, *self._path(i)))
        return out

    def _check(self, tokens: Tokens, parents: tuple[int, ...], rows: str) -> None:
        n = len(tokens)
        if self._closed:
            raise BackendError("the model is closed")
        if self._pending is not None:
            raise BackendError("forward before the last one was committed")
        if n == 0 or len(self._cache) + n > self.n_ctx:
            raise BackendError(f"{n} tokens after {len(self._cache)} do not fit {self.n_ctx}")
        if not all(0 <= token < self.n_vocab for token in tokens):
            raise BackendError(f"a token is outside the vocabulary of {self.n_vocab}")
        if rows == "all" and n > self._faults.max_rows:
            raise BackendError(f"{n} rows, at most {self._faults.max_rows}")
        if len(parents) != n:
            raise BackendError(f"{len(parents)} parents do not describe {n} tokens")
        if not Tree(parents).is_chain and (rows != "all" or not self._faults.tree):
            raise BackendError("no branches here")

    def _path(self, i: int) -> list[int]:
        assert self._pending is not None
        tokens, parents = self._pending
        path: list[int] = []
        while i >= 0:
            path.append(tokens[i])
            i = parents[i]
        return path[::-1]

    def commit(self, keep: Sequence[int]) -> None:
        if self._pending is None:
            raise BackendError("nothing to commit")
        tokens, parents = self._pending
        if not Tree(parents).is_path(keep):
            raise BackendError(f"rows {list(keep)} are not a path from the root of the draft")
        self._pending = None
        filled = len(self._cache) + len(tokens)
        if len(keep) < len(tokens) and self._stuck(filled):
            self._cache += [tokens[i] for i in range(len(tokens))]
            raise RollbackError(f"the cache cannot drop {len(tokens) - len(keep)} rows")
        self._cache += [tokens[i] for i in keep]

    def truncate(self, length: int) -> None:
        if not 0 <= length <= len(self._cache):
            raise BackendError(f"cannot cut {len(self._cache)} tokens to {length}")
        filled = len(self._cache) + (len(self._pending[0]) if self._pending else 0)
        if 0 < length < filled and self._stuck(filled):
            raise RollbackError(f"the cache cannot be cut to {length}")
        self._pending = None
        del self._cache[length:]

    def _stuck(self, filled: int) -> bool:
        window = self._faults.window
        return self._faults.refuse_rollback or (window is not None and filled > window)

    def abort(self, on: bool) -> None:
        if on:
            self._abort.set()
        else:
            self._abort.clear()

    def close(self) -> None:
        self._closed = True
        self._cache.clear()


def from_table(table: Mapping[tuple[int, ...], Sequence[float]], default: Sequence[float]) -> Logits:
    """Probabilities by the longest listed ending of the context -> logits."""
    longest = max((len(key) for key in table), default=0)

    def logits(context: tuple[int, ...]) -> FloatArray:
        for n in range(min(longest, len(context)), 0, -1):
            if context[-n:] in table:
                return _log(table[context[-n:]])
        return _log(table.get((), default))

    return logits


def from_script(tokens: Tokens, prompt: int, n_vocab: int) -> Logits:
    """A model that answers a prompt of `prompt` tokens with exactly these tokens, then repeats the last."""

    def logits(context: tuple[int, ...]) -> FloatArray:
        row = np.zeros(n_vocab, np.float32)
        row[tokens[min(len(context) - prompt, len(tokens) - 1)]] = 20.0
        return row

    return logits


def hashed(n_vocab: int, *, order: int = 3, sharpness: float = 4.0, salt: int = 0) -> Logits:
    """A repeatable random model: logits depend on the last `order` tokens."""

    def logits(context: tuple[int, ...]) -> FloatArray:
        rng = np.random.default_rng([salt, *context[-order:]])
        return (rng.standard_normal(n_vocab) * sharpness).astype(np.float32)

    return logits


def _log(probs: Sequence[float]) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(probs, np.float32))
