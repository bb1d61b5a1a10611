"""Never slower by construction: what speculation has saved, and what it may therefore risk."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edgespec.control.cost import MOST_ROWS

FLOOR = 0.97
_SHARE = 1.0 / 0.972 - 1.0
_LIKELY_TOKENS = 11
_SHORTFALL = 0.0015
_LEAST_TOKENS = 40
_COUNTS = np.arange(MOST_ROWS + 1.0)


class Ledger:
    """All in units of one plain token's time.

    `saved` is emitted tokens minus time spent, over the answer so far. A round may take what is saved
    plus a share of just under 3% of what plain would have taken, for at least 11 tokens, since shorter
    answers are rare. It may go beyond only by a hair's breadth in expectation: the expected shortfall
    stays under 0.15% of the tokens so far, and the worst case above the floor for 41 tokens or more.
    """

    def __init__(self) -> None:
        self.saved = 0.0
        self.emitted = 0

    def add(self, emitted: int, cost: float) -> None:
        self.emitted += emitted
        self.saved += emitted - cost

    @property
    def budget(self) -> float:
        """Tokens' worth of time that may be lost now without falling under the floor."""
        return self.saved + _SHARE * max(self.emitted + 1, _LIKELY_TOKENS)

    @property
    def _last(self) -> float:
        """What the worst case may take beyond the budget."""
        return (1.0 / FLOOR - 1.0) * max(self.emitted + 1, _LEAST_TOKENS) + self.saved - self.budget

    def bears(self, cost: float) -> bool:
        """May a round that costs so much be tried at all, whatever it promises?"""
        return cost - 1.0 - self.budget <= max(self._last, 0.0)

    def allows(self, cost: NDArray[np.float64], bets: Bets) -> NDArray[np.bool_]:
        """Which drafts of n = 1, 2, ... tokens may be tried. `cost`: of the whole round, `[n]`."""
        emitted = self.emitted + 1
        worst, last = cost - 1.0 - self.budget, self._last
        above: NDArray[np.bool_] = worst <= max(last, 0.0)
        if last <= 0.0 or worst.min() > last:
            return above
        hope = bets.shortfall(worst) <= _SHORTFALL * max(emitted, _LIKELY_TOKENS)
        return above & (hope | (worst <= 0.0))


class Bets:
    """The outcomes of drafts of n = 1, 2, ... tokens from the chance of each token, `[n]`."""

    def __init__(self, chances: NDArray[np.float64]) -> None:
        self.survival = chances.cumprod()
        self._accepted = np.zeros(len(chances) + 1)
        self.survival.cumsum(out=self._accepted[1:])
        self.emitted: NDArray[np.float64] = self._accepted[1:] + 1.0
        """Expected emitted tokens, `[n]`."""

    def shortfall(self, needed: NDArray[np.float64]) -> NDArray[np.float64]:
        """E[max(0, needed - accepted)] for a draft of n tokens that needs so many accepted, `[n]`."""
        # It is needed - E[min(needed, accepted)], which is linear between whole numbers.
        n = len(needed)
        expected = np.interp(np.minimum(needed, _COUNTS[1 : n + 1]), _COUNTS[: n + 1], self._accepted)
        short: NDArray[np.float64] = np.maximum(needed, 0.0) - expected
        return short


class Branches(Bets):
    """The same of trees, which grow by one node at a time.

    `survival`: of each node, `[n]`, falling. `depth`: 1 for the children of the pending token, `[n]`.
    """

    def __init__(self, survival: NDArray[np.float64], depth: NDArray[np.int64]) -> None:
        self.survival = survival
        self.emitted = 1.0 + survival.cumsum()
        self._depth = depth

    def shortfall(self, needed: NDArray[np.float64]) -> NDArray[np.float64]:
        # P(accepted >= d) is the sum over the nodes at depth d.
        n = len(needed)
        reach = np.zeros((n, int(self._depth.max(initial=1))))
        reach[np.arange(n), self._depth - 1] = self.survival
        steps = np.clip(needed[:, None] - np.arange(reach.shape[1]), 0.0, 1.0)
        short: NDArray[np.float64] = np.maximum(needed, 0.0) - (reach.cumsum(axis=0) * steps).sum(axis=1)
        return short


def price_of_risk(cost: NDArray[np.float64], chance: float = 0.9) -> float:
    """Gain per expected loss of the best bet on this cost curve with a steady chance.

    What a scarce budget could earn elsewhere, and so what a bet must pay for using it. `cost`: V(n+1) /
    V(1) for n = 1, 2, ...
    """
    bets = Bets(np.full(len(cost), chance))
    gain = bets.emitted - cost
    loss = np.maximum(bets.shortfall(cost - 1.0), 1e-3)
    return max(0.0, float((gain / loss).max()))


def urgency(budget: float) -> float:
    """How much of the price applies: all of it on an empty budget, none on a full one."""
    return math.exp(-max(budget, 0.0) / 0.6)
