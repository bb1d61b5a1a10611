"""How many rows refine guesses: the window of lookahead and Jacobi decoding."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.control.survival import BEYOND, Calibration
from edgespec.types import NO_WINDOW, Offer, Source, Window

_LEVELS = 4
_SIZES = (
    Window(2),
    Window(4),
    Window(8),
    Window(2, 4),
    Window(4, 3),
    Window(4, 4),
    Window(8, 4),
    Window(15, 4),
)
"""Those that are compared. What one of them has brought is counted by its place here."""
_BEHIND = (0.0, 0.1, 0.5, 0.75)
"""Tokens that are right behind a first one, by levels - 1."""
_GRAMS = 4
"""Rows in which a usual round verifies n-grams."""
REFINING: tuple[Source, ...] = ("lookahead", "jacobi")


def usual_window(sources: Collection[Source], depth: int, tree: bool) -> Window:
    """Of passes with `depth` more rows: half of them for n-grams in the case of lookahead, all for Jacobi."""
    if "lookahead" in sources and tree:
        return Window(max(1, depth // (2 * _LEVELS - 2)), _LEVELS)
    return Window(depth) if any(name in sources for name in REFINING) else NO_WINDOW


class Windows:
    """Which window brings most for its rows, by what windows have brought beyond all other drafts.

    A window is an investment: what it finds is verified in later rounds. It brings so many tokens a round as
    the guesses that only it had were right; these are counted while it runs.
    """

    def __init__(self, sources: Collection[Source], calibration: Calibration) -> None:
        self._source = next((name for name in REFINING if name in sources), "")
        others = any(name not in REFINING for name in sources)
        self._table = self._source + BEYOND + ("" if others else "alone")
        self._calibration = calibration
        self._at: int | None = None

    def can_pay(
        self, source: Source, relative: NDArray[np.float64], allowed: NDArray[np.bool_], trees: bool
    ) -> bool:
        """Settle on a size; is there one that pays beside plain decoding?

        `relative`: V(n) / V(1) by rows. `allowed`: row counts, `[n - 1]`, which a window must fit.
        """
        if source != self._source:
            return False
        self._at = None
        best = 1.0
        for i, size in enumerate(_SIZES):
            branches = size.levels > 2
            rows = int(allowed[: 1 + size.rows + _GRAMS * branches].nonzero()[0].max(initial=0))
            if branches != (trees and source == "lookahead") or rows < size.rows:
                continue
            rate = (1.0 + self._gain(i)) / relative[rows + 1]
            if rate > best:
                self._at, best = i, rate
        return self._at is not None

    def _gain(self, i: int) -> float:
        first = self._calibration.chance((float(i),), self._table)
        return first * (1.0 + _BEHIND[_SIZES[i].levels - 1])

    @property
    def size(self) -> Window:
        return NO_WINDOW if self._at is None else _SIZES[self._at]

    @property
    def gain(self) -> float:
        """Tokens a round that it is expected to bring."""
        return 0.0 if self._at is None else self._gain(self._at)

    def learn(self, offers: Sequence[Offer]) -> None:
        """A round of it: was a first guess right that nobody else had?"""
        right = {
            o.draft.sources[0] for o in offers if any(hit and o.draft.parents[i] < 0 for i, hit in o.told)
        }
        if self._at is not None:
            self._calibration.learn((float(self._at),), right == {self._source}, self._table)
