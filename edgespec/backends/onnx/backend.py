"""Forward passes, commit and rollback over one ONNX Runtime session."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgespec.backends.base import Capabilities
from edgespec.backends.onnx.cache import Cache
from edgespec.backends.onnx.edit import BIAS, FIRST_ROW, POSITIONS, SPARE, Edits
from edgespec.backends.onnx.signature import Signature
from edgespec.backends.tree import Tree, branches
from edgespec.errors import BackendError, Cancelled
from edgespec.types import FloatArray, Tokens

PREFILL_ROWS = 128
"""Rows of a pass over a prompt: more cost memory and answer an interruption later."""

_HIDDEN = -1e9


class OnnxBackend:
    """A `Backend` on ONNX Runtime. Calls come from one thread, `abort` from any."""

    def __init__(
        self,
        runtime: Any,
        session: Any,
        found: Signature,
        edits: Edits,
        cache: Cache,
        *,
        n_ctx: int,
        max_rows: int,
    ) -> None:
        self._runtime, self._session = runtime, session
        self._found, self._edits, self._cache = found, edits, cache
        self.n_vocab, self.n_ctx = found.n_vocab, n_ctx
        self._capabilities = Capabilities("exact", tree=edits.tree, hidden=False, max_rows=max_rows)
        self._binding = session.io_binding()
        self._options = runtime.RunOptions()
        self._ones = np.ones((1, n_ctx), np.int64)
        self._counting = np.arange(n_ctx, dtype=np.int64)[None]
        rows = max(PREFILL_ROWS, max_rows) + 1
        self._unbiased = np.zeros(rows * (n_ctx + SPARE) if edits.tree else 0, found.cached)
        width = max_rows if edits.sliced else rows
        self._logits = np.zeros((width, found.n_vocab), found.computed)
        self._nothing: FloatArray = np.zeros((0, found.n_vocab), np.float32)
        self._length = self._rows = 0
        self._tree: Tree | None = None
        self._aborting = False

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

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
        ids = self._checked(tokens)
        tree = branches(parents, n, rows, can=self._capabilities.tree)
        if rows == "all":
            if n > self._capabilities.max_rows:
                raise BackendError(
                    f"{n} rows are more than the {self._capabilities.max_rows} of this session"
                )
            logits = self._pass(ids, 0, n, tree)
        else:
            for start in range(0, n, PREFILL_ROWS):
                chunk = ids[:, start : start + PREFILL_ROWS]
                logits = self._pass(chunk, start, 1, None)
        self._rows, self._tree = n, tree
        return self._nothing if rows == "none" else logits

    def commit(self, keep: Sequence[int]) -> None:
        """Keep a path of the last forward's rows; see `Backend.commit`."""
        n, k = self._rows, len(keep)
        if self._tree is not None:
            if not self._tree.is_path(keep):
                raise BackendError(f"rows {list(keep)} are not a path from the root of the draft")
            self._cache.keep(self._length, keep)
        elif k > n or (k and (keep[0] != 0 or keep[-1] != k - 1)):
            raise BackendError(f"rows {list(keep)} are not a path through a chain of {n}")
        self._length += k
        self._rows, self._tree = 0, None

    def truncate(self, length: int) -> None:
        """Cut the cache, and any rows that were not committed, to `length` tokens."""
        if self._session is None:
            raise BackendError("the model is closed")
        if not 0 <= length <= self._length:
            raise BackendError(f"cannot cut a cache of {self._length} tokens to {length}")
        self._length, self._rows, self._tree = length, 0, None

    def abort(self, on: bool) -> None:
        """From any thread: make this pass and later ones raise Cancelled, until off."""
        self._aborting = on
        with contextlib.suppress(AttributeError):  # closed meanwhile
            self._options.terminate = on

    def close(self) -> None:
        """Free the session and the cache; may be called again."""
        self._session = self._binding = self._cache = self._options = None  # type: ignore[assignment]
        self._logits = self._logits[:0]

    def _checked(self, tokens: Tokens) -> NDArray[np.int64]:
        n = len(tokens)
        if self._session is None:
            raise BackendError("the model is closed")
        if self._rows:
            raise BackendError("commit the last pass before the next one")
        if n == 0:
            raise BackendError("a forward pass needs at least one token")
        if self._length + n > self.n_ctx:
            raise BackendError(f"context full: {self._length} + {n} tokens do not fit into {self.n_ctx}")
        if self._aborting:
            raise Cancelled("the forward pass was interrupted")
        ids = np.fromiter(tokens, np.int64, n)
        if int(ids.min()) < 0 or int(ids.max()) >= self.n_vocab:
            raise BackendError(f"a token is outside the vocabulary of {self.n_vocab}")
        return ids[None]

    def _pass(self, ids: NDArray[np.int64], start: int, wanted: int, tree: Tree | None) -> FloatArray:
        """Compute ids `[1, n]` behind `length + start`; logits of the last `wanted` rows."""
        if self._aborting:
            raise Cancelled("the forward pass was interrupted")
        n = ids.shape[1]
        past = self._length + start
        self._cache.bind(self._binding, past)
        self._bind_inputs(ids, past, n - wanted, tree)
        given = wanted if self._edits.sliced else n
        logits = self._logits[:given]
        self._binding.bind_ortvalue_output(self._found.logits, self._value(logits[None]))
        try:
            self._session.run_with_iobinding(self._binding, self._options)
        except Exception as error:
            if self._aborting:
                raise Cancelled("the forward pass was interrupted") from None
            raise BackendError(f"ONNX Runtime could not decode: {str(error).splitlines()[0]}") from error
        self._cache.collect(self._binding)
        return logits[given - wanted :].astype(np.float32, copy=False)

    def _bind_inputs(self, ids: NDArray[np.int64], past: int, first: int, tree: Tree | None) -> None:
        found, edits = self._found, self._edits
        n = ids.shape[1]
        total = past + n
        self._bind(found.ids, ids)
        if found.mask:
            self._bind(found.mask, self._ones[:, :total])
        if found.positions or edits.tree:
            positions = self._counting[:, past:total]
            if tree is not None:
                positions = past + np.array([tree.depths], np.int64)
            self._bind(found.positions or POSITIONS, positions)
        if edits.tree:
            self._bind(BIAS, self._bias(n, total, tree))
        if edits.sliced:
            self._bind(FIRST_ROW, np.array([first], np.int64))

    def _bias(self, n: int, total: int, tree: Tree | None) -> NDArray[Any]:
        """`[1, 1, n + 1, total + SPARE]`, with the row and the slots of padding."""
        shape = (1, 1, n + 1, total + SPARE)
        if tree is None:
            return self._unbiased[: (n + 1) * (total + SPARE)].reshape(shape)
        bias = np.zeros(shape, self._found.cached)
        bias[0, 0, :n, total - n : total][~tree.ancestry()] = _HIDDEN
        return bias

    def _bind(self, name: str, array: NDArray[Any]) -> None:
        self._binding.bind_ortvalue_input(name, self._value(array))

    def _value(self, array: NDArray[Any]) -> Any:
        return self._runtime.OrtValue.ortvalue_from_numpy(array)
