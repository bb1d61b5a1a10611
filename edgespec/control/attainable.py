"""What speculation can bring on a cost curve: the controller's rule without its ledger, on typical drafts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from edgespec.control.cost import MOST_ROWS
from edgespec.control.ledger import Bets
from edgespec.control.survival import prior

STEADY = (0.6, 0.8, 0.95)
"""Acceptance of every token alike: a draft model on prose, on mixed text and on code."""
_MATCHES = (2, 4, 8, 16, 24)
_DEPTH = MOST_ROWS - 1


def best_depth(
    relative: NDArray[np.float64],
    chances: Sequence[float],
    row_counts: Collection[int] | None = None,
    each: float = 0.0,
) -> tuple[int, float]:
    """(drafted tokens a round, tokens in the time of a plain one) where rounds like this follow each other.

    `relative`: V(n) / V(1) as `CostModel` has it. `chances`: of each drafted token, given those before.
    `row_counts`: those allowed, None for all. `each`: what drafting a token costs. (0, 1.0) is plain.
    """
    n = min(len(chances), _DEPTH)
    cost = relative[2 : n + 2] + each * np.arange(1, n + 1)
    rate = Bets(np.asarray(chances[:n], float)).emitted / cost
    if row_counts is not None:
        rate[[rows not in row_counts for rows in range(2, n + 2)]] = 0.0
    best = int(rate.argmax())
    return (best + 1, float(rate[best])) if rate[best] > 1.0 else (0, 1.0)


def steady(acceptance: float) -> tuple[float, ...]:
    return (acceptance,) * _DEPTH


@cache
def _profiles() -> tuple[tuple[tuple[float, ...], bool], ...]:
    """(chances, are they a draft model's?): copying from matches of several lengths, and steady drafts."""
    copied = [(tuple(prior((length + i, 1.0, 1.0)) for i in range(_DEPTH)), False) for length in _MATCHES]
    return (*copied, *((steady(a), True) for a in STEADY))


def attainable_rate(
    relative: NDArray[np.float64], row_counts: Collection[int] | None = None, each: float = 0.0
) -> float:
    """Tokens in the time of a plain one, on a text of which every kind of draft makes an equal share.

    Kinds: continuing a match of 2 to 24 tokens (the chances of `survival.prior`), and acceptance of 0.6,
    0.8 and 0.95. Time adds up, so the rates are averaged harmonically.
    """
    rates = [
        best_depth(relative, chances, row_counts, each if drafted else 0.0)[1]
        for chances, drafted in _profiles()
    ]
    return len(rates) / sum(1.0 / rate for rate in rates)
