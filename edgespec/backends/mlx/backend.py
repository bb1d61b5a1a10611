"""Forward passes, commit and rollback over a model of mlx-lm. Needs MLX when imported."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from edgespec.backends.base import Capabilities
from edgespec.backends.mlx.branches import allow
from edgespec.backends.mlx.caches import Caches, Pass
from edgespec.backends.tree import Tree, branches
from edgespec.errors import BackendError, Cancelled, RollbackError
from edgespec.types import FloatArray, Tokens

_UNPOLLED = 8
"""Passes of so many rows are too short to be stopped inside."""


def _ignore() -> None:
    pass


class MlxBackend:
    """A `Backend` on MLX. Calls come from one thread at a time, `abort` from any.

    `n_batch`: tokens of a prompt that are evaluated at a time.
    """

    def __init__(
        self,
        model: Any,
        *,
        n_vocab: int,
        n_ctx: int,
        max_rows: int,
        n_batch: int,
        device: Any,
    ) -> None:
        self.n_vocab = n_vocab
        self.n_ctx = n_ctx
        self._model: Any = model
        self._max_rows, self._n_batch = max_rows, n_batch
        self._device = device
        self._pass = Pass()
        self._caches = Caches(model, self._pass)
        self._branching = self._caches.only_plain and allow(model, self._pass)
        self._length = 0
        self._rows = 0
        self._tokens: Tokens = ()
        self._tree: Tree | None = None
        self._lost = False
        self._aborting = False
        self._closing = threading.Lock()
        self._logits = self._nothing = np.zeros((0, n_vocab), np.float32)

    @property
    def capabilities(self) -> Capabilities:
        rollback = self._caches.rollback(self._max_rows)
        tree = self._branching and rollback == "exact"
        return Capabilities(rollback=rollback, tree=tree, hidden=False, max_rows=self._max_rows)

    @property
    def length(self) -> int:
        """Tokens that are committed to the cache."""
        return self._length

    def forward(
        self,
        tokens: Tokens,
        parents: Sequence[int] | None = None,
        *,
        rows: Literal["all", "last", "none"] = "all",
    ) -> FloatArray:
        """See `Backend.forward`. A refused or failed pass leaves the cache at `length`."""
        n = len(tokens)
        self._check(n)
        ids = np.fromiter(tokens, np.int64, n)
        if int(ids.min()) < 0 or int(ids.max()) >= self.n_vocab:
            raise BackendError(f"a token is outside the vocabulary of {self.n_vocab}")
        tree = branches(parents, n, rows, can=self.capabilities.tree)
        if rows == "all" and n > self._max_rows:
            raise BackendError(f"{n} rows of logits are more than the {self._max_rows} of this session")
        self._logits = self._nothing
        # Single rows are never dropped while a model is used as it should be, and copies cost time.
        self._caches.mark(n, save=n > 1)
        with self._undoing():
            if rows == "all":
                self._logits = self._compute(ids, tree)
            else:
                self._prefill(ids[:-1] if rows == "last" else ids, self._poll)
                if rows == "last":
                    self._logits = self._compute(ids[-1:], None)
        self._rows, self._tokens, self._tree = n, tokens, tree
        return self._logits

    def commit(self, keep: Sequence[int]) -> None:
        """Keep a path of the last forward's rows; see `Backend.commit`."""
        n, k, tree = self._rows, len(keep), self._tree
        if tree is not None:
            if not tree.is_path(keep):
                raise BackendError(f"rows {list(keep)} are not a path from the root of the draft")
            with self._on_device():
                self._caches.keep(self._length, list(keep))
        elif k > n or (k and (keep[0] != 0 or keep[-1] != k - 1)):
            raise BackendError(f"rows {list(keep)} are not a path through a chain of {n}")
        elif k < n and self._caches.trims:
            self._caches.cut(n - k)
        elif k < n:
            self._drop_rows(k)
        self._length += k
        self._rows, self._tree = 0, None

    def truncate(self, length: int) -> None:
        """Cut the cache, and any rows that were not committed, to `length` tokens."""
        if self._model is None:
            raise BackendError("the model is closed")
        if not 0 <= length <= self._length:
            raise BackendError(f"cannot cut a cache of {self._length} tokens to {length}")
        if length == 0:
            self._caches.clear()
            self._lost = False
        elif self._lost:
            raise RollbackError("the cache was lost in a failed pass; start again from an empty one")
        else:
            if self._rows:
                self.commit(())
            if length < self._length:
                self._caches.cut(self._length - length)
        self._length = length
        self._rows, self._tree = 0, None

    def abort(self, on: bool) -> None:
        """From any thread: make this pass and later ones raise Cancelled, until off."""
        self._aborting = on

    def close(self) -> None:
        """Free the model and its caches; may be called again."""
        with self._closing:
            if self._model is None:
                return
            self._model = None
            self._logits = self._nothing
            self._caches.close()
            gc.collect()
            mx.clear_cache()

    def _check(self, n: int) -> None:
        if self._model is None:
            raise BackendError("the model is closed")
        if self._rows:
            raise BackendError("commit the last pass before the next one")
        if self._lost:
            raise RollbackError("the cache was lost in a failed pass; start again from an empty one")
        if n == 0:
            raise BackendError("a forward pass needs at least one token")
        if self._length + n > self.n_ctx:
            raise BackendError(f"context full: {self._length} + {n} tokens do not fit into {self.n_ctx}")
        self._poll()

    def _compute(self, ids: NDArray[np.int64], tree: Tree | None) -> FloatArray:
        """Append and give all rows, `[n, n_vocab]`."""
        now = self._pass
        if tree is not None:
            now.seen = mx.array(tree.ancestry())
            now.depths = mx.array(tree.depths, mx.int32)
        now.poll = self._poll if len(ids) > _UNPOLLED else None
        with self._on_device():
            logits = self._model(mx.array(ids[None], mx.int32), cache=self._caches.layers)
            logits = logits[0].astype(mx.float32)
            mx.eval(logits, self._caches.arrays())
        return np.asarray(logits)

    def _prefill(self, ids: NDArray[np.int64], poll: Callable[[], None]) -> None:
        """Append without logits: the head is never computed."""
        self._pass.poll = poll
        with self._on_device():
            for start in range(0, len(ids), self._n_batch):
                chunk = ids[start : start + self._n_batch]
                self._model(mx.array(chunk[None], mx.int32), cache=self._caches.layers)
                mx.eval(self._caches.arrays())
                mx.clear_cache()
                poll()

    def _drop_rows(self, k: int) -> None:
        """Restore what was before the last chain, and compute its first k rows again."""
        self._back()
        if k:
            self._caches.mark(k, save=False)
            with self._undoing():
                self._prefill(np.fromiter(self._tokens[:k], np.int64, k), _ignore)

    @contextmanager
    def _undoing(self) -> Iterator[None]:
        """A pass that does not finish leaves no trace, whatever stopped it."""
        try:
            yield
        except BaseException as error:
            self._clear_pass()
            self._logits = self._nothing
            with suppress(RollbackError):
                self._back()
            if isinstance(error, (RuntimeError, ValueError, MemoryError)):
                raise BackendError(f"MLX could not decode: {str(error).splitlines()[0]}") from error
            raise
        self._clear_pass()

    def _back(self) -> None:
        try:
            self._caches.reset()
        except RollbackError:
            self._lost, self._rows = True, 0
            raise

    def _clear_pass(self) -> None:
        self._pass.seen = self._pass.depths = self._pass.poll = None

    def _poll(self) -> None:
        if self._aborting:
            raise Cancelled("the forward pass was interrupted")

    def _on_device(self) -> Any:
        return mx.stream(self._device)
