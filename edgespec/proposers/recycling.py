"""Token recycling (Luo et al. 2024): what the target last found likely after a token may follow it again."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from edgespec.types import NO_DRAFT, Draft, Evidence, Ids, Plan, Source, Tokens, Verdict

_WEIGHTS = (0.55, 0.36, 0.17, 0.11, 0.05, 0.04, 0.03, 0.02, 0.02, 0.01)
"""By place, as in the prior of the survival table."""
_STEADY = 2
_MOST = 16
_NOBODY = -1


class RecyclingProposer:
    """The k best successors of every token, as any row told them last; 4 bytes each.

    A token's evidence is its place: 0 for a best successor that was it before and before that, 1 and 2
    for one that was it once more or has just become it, then the others in their order.
    """

    name: Source = "recycling"
    n_best = 8

    def __init__(self) -> None:
        self._successors = np.zeros((0, self.n_best), np.int32)
        self._steady = np.zeros(0, np.int8)

    def begin(self, history: Tokens) -> None:
        pass

    def learn(self, token: int, best: Ids) -> None:
        if token >= len(self._steady):
            more = 2 * token + 1 - len(self._steady)
            self._successors = np.pad(self._successors, ((0, more), (0, 0)))
            self._steady = np.pad(self._steady, (0, more), constant_values=-1)
        known, n = self._steady[token], min(len(best), self.n_best)
        same = known >= 0 and self._successors[token, 0] == best[0]
        self._steady[token] = min(known + 1, _STEADY) if same else 0
        self._successors[token, :n] = best[:n]
        self._successors[token, n:] = _NOBODY

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        """The likeliest nodes of the tree of successors, or its likeliest chain."""
        most, wide = min(plan.max_draft, _MOST), plan.tree
        tokens: list[int] = []
        parents: list[int] = []
        evidence: list[Evidence] = []
        heap: list[tuple[float, int, int, int, int]] = []

        def add(parent: int, weight: float, token: int) -> None:
            for rank, (successor, place) in enumerate(self._after(token)[: None if wide else 1]):
                share = -weight * _WEIGHTS[place]
                heappush(heap, (share, len(tokens) * self.n_best + rank, parent, successor, place))

        add(-1, 1.0, history[-1])
        while heap and len(tokens) < most:
            weight, _, parent, token, place = heappop(heap)
            tokens.append(token)
            parents.append(parent)
            evidence.append((float(place),))
            add(len(tokens) - 1, -weight, token)
        if not tokens:
            return NO_DRAFT
        return Draft(tuple(tokens), tuple(parents), tuple(evidence), (self.name,) * len(tokens))

    def _after(self, token: int) -> Sequence[tuple[int, int]]:
        """(successor, its place), the best first."""
        if token >= len(self._steady) or self._steady[token] < 0:
            return ()
        best, *others = self._successors[token].tolist()
        steady = int(self._steady[token])
        places = range(_STEADY + 1, _STEADY + 1 + len(others))
        known = [(other, place) for other, place in zip(others, places, strict=True) if other != _NOBODY]
        return [(best, _STEADY - steady), *known]

    def observe(self, verdict: Verdict) -> None:
        pass
