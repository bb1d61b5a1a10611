"""One round of a draft model: whether its next token is worth drawing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgespec.control.cost import MOST_ROWS
from edgespec.control.ledger import Bets, Ledger

_AHEAD = 64
_HOPED = 0.95
_COUNTS = np.arange(1.0, MOST_ROWS + 1)


class Drafting:
    """A draft that grows token by token, while the rest of it is taken to be as typical.

    All in plain tokens' time. `relative`: V(n) / V(1) by rows. `each`: of one drafted token. `rate`: the
    chance of a typical one. `allowed`: row counts, `[n - 1]`. `late`: of reading what the model
    has missed; later rounds gain by it, so that it is only weighed against what may be lost.
    """

    def __init__(
        self,
        relative: NDArray[np.float64],
        each: float,
        rate: float,
        allowed: NDArray[np.bool_],
        ledger: Ledger,
        limit: int,
        late: float,
    ) -> None:
        n = min(limit, _AHEAD)
        self._cost = relative[2 : n + 2] + _COUNTS[:n] * each
        self._allowed = allowed[1 : n + 1]
        self._typical = np.full(n, rate).cumprod().cumsum()
        self._each, self._late, self._rate, self._ledger = each, late, rate, ledger
        self._now = float(relative[1])
        self.known: list[float] = []
        """Chances of the tokens drawn so far, `[j]`."""
        self._sure = self._alive = 1.0
        self.believed = max(1.0, float(((1.0 + self._typical) / self._cost).max(initial=1.0)))
        """The best rate to expect before anything is drawn."""

    def add(self, chance: float) -> None:
        """A token was drawn."""
        self._now = float(self._cost[len(self.known)])
        self.known.append(chance)
        self._alive *= chance
        self._sure += self._alive

    def value(self, pace: float) -> float:
        """Expected tokens less cost, at this pace, of verifying what has been drawn."""
        return self._sure - pace * self._now

    def value_of_drawing(self, pace: float) -> float:
        """The same of the best draft that goes on with the model.

        A draw risks its own cost: it may turn out surer than is typical, or stay unverified.
        """
        j = len(self.known)
        budget = self._ledger.budget
        if (j + 1) * self._each + self._late > budget:
            return -np.inf
        cost, usable = self._cost[j:], self._allowed[j:]
        if cost.max(initial=0.0) + self._late > budget + 1.0:
            hoped = np.full(len(self._cost), max(self._rate, _HOPED))
            hoped[:j] = self.known
            usable = usable & self._ledger.allows(self._cost + self._late, Bets(hoped))[j:]
        value: NDArray[np.float64] = self._sure + self._alive * self._typical[: len(cost)] - pace * cost
        return float(value.max(initial=-np.inf, where=usable))
