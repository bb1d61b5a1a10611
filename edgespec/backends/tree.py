"""The shape of a draft with branches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import BackendError


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

    def ancestry(self) -> NDArray[np.bool_]:
        """`[rows, rows]`: does the row see the other one, that is: is it on its own path from the root?"""
        n = len(self.parents)
        seen = np.eye(n, dtype=np.bool_)
        for row, parent in enumerate(self.parents):
            if parent >= 0:
                seen[row] |= seen[parent]
        return seen


def branches(parents: Sequence[int] | None, n: int, rows: str, *, can: bool) -> Tree | None:
    """The tree of a pass over n tokens as `Backend.forward` takes it; None for a chain.

    `can`: the model decodes branches now. Raises BackendError for what `forward` refuses.
    """
    if parents is None:
        return None
    if len(parents) != n:
        raise BackendError(f"{len(parents)} parents do not describe {n} tokens")
    tree = Tree(parents)
    if tree.is_chain:
        return None
    if not can:
        raise BackendError("this model cannot decode several branches in one pass")
    if rows != "all":
        raise BackendError("a tree gives logits for each of its rows")
    return tree
