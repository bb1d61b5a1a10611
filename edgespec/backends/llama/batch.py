"""The native batch: arrays allocated once, written through numpy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import BackendError


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


class Tree:
    """A draft's shape: depth of each row, the leaves (as sequence ids) below it, its parent."""

    def __init__(self, parents: Sequence[int]) -> None:
        n = len(parents)
        if any(not -1 <= parent < i for i, parent in enumerate(parents)):
            raise BackendError("a tree needs parents before their children")
        self.parents = tuple(parents)
        self.depths: list[int] = []
        for parent in parents:
            self.depths.append(0 if parent < 0 else self.depths[parent] + 1)
        inner = set(parents)
        leaves = [i for i in range(n) if i not in inner]
        self.n_leaves = len(leaves)
        self.sequences: list[list[int]] = [[] for _ in range(n)]
        for sequence, leaf in enumerate(leaves):
            row = leaf
            while row >= 0:
                self.sequences[row].append(sequence)
                row = self.parents[row]

    @property
    def is_chain(self) -> bool:
        return self.n_leaves == 1

    def is_path(self, keep: Sequence[int]) -> bool:
        """Is `keep` a path from the root, without gaps?"""
        above = -1
        for row in keep:
            if not 0 <= row < len(self.parents) or self.parents[row] != above:
                return False
            above = row
        return True
