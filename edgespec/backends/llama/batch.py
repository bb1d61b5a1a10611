"""The native batch: arrays allocated once, written through numpy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgespec.backends.tree import Tree


class Batch:
    """A `llama_batch` for at most `capacity` tokens; rows belong to sequence 0 unless a tree says more."""

    def __init__(self, native: Any, capacity: int) -> None:
        """`native`: an empty `llama_batch` of the library."""
        self._token = np.zeros(capacity, np.int32)
        self._pos = np.zeros(capacity, np.int32)
        self._n_seq_id = np.ones(capacity, np.int32)
        self._output = np.zeros(capacity, np.int8)
        self._sequence_zero = np.zeros(1, np.int32)
        self._seq_id = np.full(capacity, self._sequence_zero.ctypes.data, np.uintp)
        self._branches = self._sequence_zero
        self._flat = True
        self._counting = np.arange(capacity, dtype=np.int32)
        self.native = native
        self.native.token = self._pointer(self._token, ctypes.c_int32)
        self.native.pos = self._pointer(self._pos, ctypes.c_int32)
        self.native.n_seq_id = self._pointer(self._n_seq_id, ctypes.c_int32)
        self.native.logits = self._pointer(self._output, ctypes.c_int8)
        self.native.seq_id = self._pointer(self._seq_id, ctypes.POINTER(ctypes.c_int32))

    @staticmethod
    def _pointer(array: NDArray[Any], kind: Any) -> Any:
        return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))

    def one(self, token: int, position: int) -> Any:
        """One token with logits; the fast path of plain decoding."""
        if not self._flat:
            self._flatten()
        self._token[0] = token
        self._pos[0] = position
        self._output[0] = 1
        self.native.n_tokens = 1
        return self.native

    def chain(self, tokens: NDArray[np.int32], position: int, outputs: slice) -> Any:
        """Consecutive tokens; `outputs` selects the rows that give logits."""
        if not self._flat:
            self._flatten()
        n = len(tokens)
        self._token[:n] = tokens
        np.add(self._counting[:n], position, out=self._pos[:n])
        self._output[:n] = 0
        self._output[:n][outputs] = 1
        self.native.n_tokens = n
        return self.native

    def tree(self, tokens: NDArray[np.int32], position: int, tree: Tree) -> Any:
        """A tree, every row with logits; each row belongs to the sequences of the leaves below it."""
        n = len(tokens)
        self._flat = False
        self._branches = np.concatenate([np.asarray(ids, np.int32) for ids in tree.sequences])
        counts = np.fromiter((len(ids) for ids in tree.sequences), np.int32, n)
        offsets = (np.cumsum(counts) - counts).astype(np.uintp) * np.uintp(4)
        self._token[:n] = tokens
        self._pos[:n] = np.asarray(tree.depths, np.int32) + position
        self._output[:n] = 1
        self._n_seq_id[:n] = counts
        self._seq_id[:n] = np.uintp(self._branches.ctypes.data) + offsets
        self.native.n_tokens = n
        return self.native

    def _flatten(self) -> None:
        self._n_seq_id[:] = 1
        self._seq_id[:] = self._sequence_zero.ctypes.data
        self._flat = True
