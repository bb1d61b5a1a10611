"""Forward passes, commit and rollback over one native context."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgespec.backends.base import Capabilities, Rollback
from edgespec.backends.llama.batch import Batch
from edgespec.backends.llama.library import MAX_SEQUENCES, Library, native_flag_test
from edgespec.backends.tree import Tree, branches
from edgespec.errors import BackendError, Cancelled, RollbackError
from edgespec.types import FloatArray, Tokens

_NO_SLOT, _ABORTED = 1, 2
_PARTIAL_ONLY = 1
_POLLED_CHUNK = 32
_WHOLE_STATE, _MOST_HOLES = 0, 1024


class LlamaBackend:
    """A `Backend` on a library of the family. Calls come from one thread, `abort` from any.

    Owns `model` and `context`, and frees them.
    """

    def __init__(
        self, library: Library, model: Any, context: Any, *, n_ctx: int, max_rows: int, rollback: Rollback
    ) -> None:
        self._library = library
        self._native = native = library.native
        self._model, self._context = model, context
        self._memory = native.llama_get_memory(context)
        self.n_vocab: int = native.llama_vocab_n_tokens(native.llama_model_get_vocab(model))
        self.n_ctx = min(n_ctx, native.llama_n_ctx_seq(context))
        self._n_batch: int = native.llama_n_batch(context)
        self._max_rows = max_rows
        self._rollback: Rollback = rollback
        self._capabilities = self._describe()
        self._batch = Batch(native.llama_batch(), max(self._n_batch, max_rows))
        self._length = 0
        self._rows = 0
        self._holes = 0
        """Places in the cache that rows of trees hold, dropped or not."""
        self._holding = min(max_rows, MAX_SEQUENCES - 1)
        """The sequence of these rows."""
        self._tree: Tree | None = None
        self._tokens: Tokens = ()
        self._saved: NDArray[np.uint8] | None = None
        self._lost = False
        self._get_logits = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
            ("llama_get_logits", library.lib)
        )
        self._logits_at = 0
        self._logits = self._nothing = np.zeros((0, self.n_vocab), np.float32)
        self._closing = threading.Lock()
        self._aborting = False
        self._abort_flag = ctypes.create_string_buffer(2)
        self._abort_test = native_flag_test()
        self._watch_abort(True)

    def _describe(self) -> Capabilities:
        return Capabilities(
            rollback=self._rollback,
            tree=self._rollback == "exact" and self._library.branches,
            hidden=False,
            max_rows=self._max_rows,
        )

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
        self._check(n)
        if n == 1 and rows != "none":
            token = tokens[0]
            if not 0 <= token < self.n_vocab:
                raise BackendError(f"token {token} is outside the vocabulary of {self.n_vocab}")
            self._tree = None
            self._decode_single(self._batch.one(token, self._length))
        else:
            self._forward_many(tokens, parents, rows)
        self._rows = n
        self._tokens = tokens
        if rows == "none":
            return self._nothing
        return self._view(n if rows == "all" else 1)

    def commit(self, keep: Sequence[int]) -> None:
        """Keep a path of the last forward's rows; see `Backend.commit`."""
        n, k = self._rows, len(keep)
        if self._tree is not None:
            self._commit_tree(self._tree, keep)
        elif k > n or (k and (keep[0] != 0 or keep[-1] != k - 1)):
            raise BackendError(f"rows {list(keep)} are not a path through a chain of {n}")
        elif k < n:
            self._drop_rows(k)
        self._length += k
        self._rows = 0

    def truncate(self, length: int) -> None:
        """Cut the cache, and any rows that were not committed, to `length` tokens."""
        if self._context is None:
            raise BackendError("the model is closed")
        if not 0 <= length <= self._length:
            raise BackendError(f"cannot cut a cache of {self._length} tokens to {length}")
        if length == 0:
            self._native.llama_memory_clear(self._memory, False)
            self._lost, self._holes = False, 0
        elif self._lost:
            raise RollbackError("the cache was lost in a failed pass; start again from an empty one")
        elif self._rows and length == self._length:
            self.commit(())
        elif self._rows or length < self._length:
            self._clear_branches()
            if not self._native.llama_memory_seq_rm(self._memory, 0, length, -1):
                if self._rows:
                    self.commit(())
                raise RollbackError(
                    f"this model's cache cannot be cut from {self._length} to {length} tokens"
                )
        self._length = length
        self._rows = 0
        self._tree = None

    def abort(self, on: bool) -> None:
        """From any thread: make this pass and later ones raise Cancelled, until off."""
        self._aborting = on
        self._abort_flag[0] = b"\1" if on else b"\0"

    def close(self) -> None:
        """Free the context and the model; may be called again."""
        with self._closing:
            context, self._context = self._context, None
            if context is None:
                return
            self._logits = self._nothing
            self._native.llama_free(context)
            self._native.llama_model_free(self._model)
            self._model = self._memory = None

    def _check(self, n: int) -> None:
        if self._context is None:
            raise BackendError("the model is closed")
        if self._rows:
            raise BackendError("commit the last pass before the next one")
        if self._lost:
            raise RollbackError("the cache was lost in a failed pass; start again from an empty one")
        if n == 0:
            raise BackendError("a forward pass needs at least one token")
        if self._length + n > self.n_ctx:
            raise BackendError(f"context full: {self._length} + {n} tokens do not fit into {self.n_ctx}")
        if self._aborting:
            raise Cancelled("the forward pass was interrupted")
        if self._holes and (self._holes > _MOST_HOLES or self._length + self._holes + n > self.n_ctx):
            self._close_holes()

    def _forward_many(self, tokens: Tokens, parents: Sequence[int] | None, rows: str) -> None:
        n = len(tokens)
        wide = np.fromiter(tokens, np.int64, n)
        if int(wide.min()) < 0 or int(wide.max()) >= self.n_vocab:
            raise BackendError(f"a token is outside the vocabulary of {self.n_vocab}")
        ids = wide.astype(np.int32)
        tree = self._shape(parents, n, rows)
        self._save()
        self._tree = tree
        if tree is not None:
            for sequence in range(1, tree.n_leaves):
                self._native.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)
            self._decode(self._batch.tree(ids, self._length, tree))
        elif rows == "all":
            if n > self._max_rows:
                raise BackendError(f"{n} rows of logits are more than the {self._max_rows} of this session")
            self._decode(self._batch.chain(ids, self._length, slice(None)))
        else:
            self._prefill(ids, slice(-1, None) if rows == "last" else slice(0))

    def _shape(self, parents: Sequence[int] | None, n: int, rows: str) -> Tree | None:
        """The branches of this pass; None for a chain."""
        tree = branches(parents, n, rows, can=self._capabilities.tree)
        if tree is not None and (n > self._max_rows or tree.n_leaves > self._holding):
            raise BackendError(f"a tree has at most {self._max_rows} rows")
        return tree

    def _prefill(self, ids: NDArray[np.int32], last: slice) -> None:
        step = self._n_batch if self._abort_test else min(self._n_batch, _POLLED_CHUNK)
        for start in range(0, len(ids), step):
            chunk = ids[start : start + step]
            outputs = last if start + step >= len(ids) else slice(0)
            if self._aborting:
                self._undo()
                raise Cancelled("the forward pass was interrupted")
            self._decode(self._batch.chain(chunk, self._length + start, outputs))

    def _decode_single(self, batch: Any) -> None:
        if self._rollback == "exact":
            self._decode(batch)
            return
        # One token is short, and its state could not be restored after an interruption.
        self._saved = None
        self._watch_abort(False)
        try:
            self._decode(batch)
        finally:
            self._watch_abort(True)

    def _decode(self, batch: Any) -> None:
        status = self._native.llama_decode(self._context, batch)
        if status == 0:
            if not self._aborting or self._library.tells_abort:
                return
            status = _ABORTED
        reasons = self._library.errors.last()[-1:]
        self._library.errors.clear()
        self._undo()
        if status == _ABORTED:
            raise Cancelled("the forward pass was interrupted")
        if status == _NO_SLOT:
            raise BackendError(f"no KV slot for {batch.n_tokens} tokens after {self._length}")
        title, reason = self._library.title, " ".join(reasons) or "no reason given"
        raise BackendError(f"{title} could not decode (code {status}): {reason}")

    def _undo(self) -> None:
        """Bring the cache back to `length` after a pass that did not finish."""
        self._clear_branches()
        try:
            self._restore()
        except RollbackError:
            self._lost = True

    def _drop_rows(self, k: int) -> None:
        """Drop all but the first k rows of the last chain."""
        if self._rollback == "exact":
            if not self._native.llama_memory_seq_rm(self._memory, 0, self._length + k, -1):
                self._lost = True
                raise RollbackError(f"{self._library.title} refused to drop rows from its cache")
            return
        tokens = self._tokens
        self._restore()
        if k:
            kept = np.fromiter(tokens[:k], np.int32, k)
            self._rows = 0
            self._prefill(kept, slice(0))

    def _commit_tree(self, tree: Tree, keep: Sequence[int]) -> None:
        if not tree.is_path(keep):
            raise BackendError(f"rows {list(keep)} are not a path from the root of the draft")
        native, memory, end = self._native, self._memory, self._length + len(keep)
        branch = tree.sequences[keep[-1]][0] if keep else 0
        if keep:
            # Attention adds up in the order of places: what is dropped holds its own against later rows.
            for sequence in range(tree.n_leaves):
                native.llama_memory_seq_cp(memory, sequence, self._holding, self._length, -1)
            self._holes += len(tree.parents)
        if branch:
            self._remove(0, self._length)
            native.llama_memory_seq_cp(memory, branch, 0, self._length, end)
        self._clear_branches()
        self._remove(0, end)

    def _close_holes(self) -> None:
        """Move the rows together, in their order, by way of a copy."""
        native, context = self._native, self._context
        size = native.llama_state_seq_get_size_ext(context, 0, _WHOLE_STATE)
        saved = np.empty(size, np.uint8)
        pointer = saved.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        copied = native.llama_state_seq_get_data_ext(context, pointer, size, 0, _WHOLE_STATE)
        native.llama_memory_clear(self._memory, False)
        self._holes = 0
        if (
            copied != size
            or native.llama_state_seq_set_data_ext(context, pointer, size, 0, _WHOLE_STATE) != size
        ):
            self._lost = True
            raise RollbackError("the cache was lost when its rows were moved together")

    def _clear_branches(self) -> None:
        if self._tree is not None:
            for sequence in range(1, self._tree.n_leaves):
                self._remove(sequence, 0)
            self._tree = None

    def _remove(self, sequence: int, start: int) -> None:
        if not self._native.llama_memory_seq_rm(self._memory, sequence, start, -1):
            self._lost = True
            raise RollbackError(f"{self._library.title} refused to drop rows from its cache")

    def _save(self) -> None:
        """Before a pass of several rows, copy the state that cannot be cut afterwards."""
        if self._rollback != "checkpoint":
            return
        self._saved = None
        if self._length == 0:
            return
        native, context = self._native, self._context
        size = native.llama_state_seq_get_size_ext(context, 0, _PARTIAL_ONLY)
        saved = np.empty(size, np.uint8)
        pointer = saved.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        if not size or native.llama_state_seq_get_data_ext(context, pointer, size, 0, _PARTIAL_ONLY) != size:
            self._rollback = "none"
            self._capabilities = self._describe()
            return
        self._saved = saved

    def _restore(self) -> None:
        """Cut the cache to `length`, from the copy where cutting is not enough."""
        native, memory = self._native, self._memory
        if self._length == 0:
            native.llama_memory_clear(memory, False)
            return
        if self._rollback != "exact" and self._saved is not None:
            pointer = self._saved.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
            size = self._saved.size
            if native.llama_state_seq_set_data_ext(self._context, pointer, size, 0, _PARTIAL_ONLY) != size:
                self._lost = True
                raise RollbackError("the copy of this model's state could not be restored")
        if not native.llama_memory_seq_rm(memory, 0, self._length, -1):
            raise RollbackError("this model's cache cannot drop rows")

    def _view(self, n: int) -> FloatArray:
        address = self._get_logits(self._context)
        if address != self._logits_at or n > len(self._logits):
            if not address:
                raise BackendError(f"{self._library.title} gave no logits")
            memory = (ctypes.c_float * (n * self.n_vocab)).from_address(address)
            self._logits = np.ctypeslib.as_array(memory).reshape(n, self.n_vocab)
            self._logits_at = address
        return self._logits[:n]

    def _watch_abort(self, on: bool) -> None:
        if self._abort_test:
            address = self._abort_test if on else 0
            callback = self._native.ggml_abort_callback(address)
            data = ctypes.cast(self._abort_flag, ctypes.c_void_p)
            self._native.llama_set_abort_callback(self._context, callback, data)
