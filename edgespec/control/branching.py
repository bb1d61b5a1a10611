"""Trees of a draft model: what their passes cost, and what a typical one brings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from edgespec.control.ledger import Branches
from edgespec.types import Draft

_WIDTH, _NODES = 3, 24
LEVELS = (1, 2, 3, 4, 5, 6, 8, 10)
"""Depths of typical trees that are compared."""


def depths(parents: Sequence[int]) -> NDArray[np.int64]:
    """1 for the children of the pending token, `[n]`."""
    found = np.zeros(len(parents) + 1, np.int64)
    for i, parent in enumerate(parents):
        found[i] = found[parent] + 1
    return found[:-1]


def work(depth: NDArray[np.int64], row: float) -> NDArray[np.float64]:
    """What drafting the first 1, 2, ... of these nodes takes, in single tokens of the draft model, `[n]`.

    Each level is one pass over all nodes above it, whose every further row adds `row`.
    """
    n = len(depth)
    level = np.arange(1, int(depth.max(initial=0)) + 1)
    above = (depth[:, None] <= level).cumsum(axis=0)
    levels = np.maximum.accumulate(depth)
    passes = np.where(level < levels[:, None], np.maximum(above - 1, 0), 0)
    taken: NDArray[np.float64] = levels + row * passes.sum(axis=1).reshape(n)
    return taken


def drawing(draft: Draft, row: float | None) -> float:
    """What a draft took of a draft model, in single tokens. `row` None: a chain with leaves."""
    drawn = [source == "draft" for source in draft.sources]
    if draft.is_chain:
        return float(sum(drawn))
    depth = depths([parent for parent, own in zip(draft.parents, drawn, strict=True) if own])
    if row is None or not len(depth):
        return float(depth.max(initial=0))
    return float(work(depth, row)[-1])


@lru_cache(maxsize=256)
def typical(
    first: float, beside: float, deepest: int, leaves: bool = False
) -> tuple[Branches, NDArray[np.int64]]:
    """What is won with the likeliest 1, 2, ... nodes, where each is right like any other, and their depths.

    `first`: the chance of a model's own token. `beside`: of its next best where those before are wrong.
    `deepest`: levels that the tree may have. `leaves`: only the model's own tokens go on, as in a chain.
    """
    survival: list[float] = []
    depth: list[int] = []
    heap: list[tuple[float, int, int]] = []

    def add(alive: float, deep: int) -> None:
        chance = first
        for rank in range(_WIDTH):
            heappush(heap, (-alive * chance, deep, rank))
            alive, chance = alive * (1.0 - chance), beside

    add(1.0, 1)
    while heap and len(survival) < _NODES:
        alive, deep, rank = heappop(heap)
        survival.append(-alive)
        depth.append(deep)
        if deep < deepest and not (leaves and rank):
            add(-alive, deep + 1)
    return Branches(np.array(survival), np.array(depth)), np.array(depth)
