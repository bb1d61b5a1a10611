"""What a round costs: V(n) of the target, D of each proposer, overhead. Seconds, on this device."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from edgespec.types import Source

MOST_ROWS = 65
_LEARN = 0.1
_DRIFT = 0.1
_FOLLOW = 0.3
_RECALL = 0.1
_OUTLIER = 2.0
_FRESH = (1.0, 0.7, 0.5)
_FRESH_OUTLIER = 8.0
"""By the first passes of an answer: how far the factor follows them, and how far off they may be."""


class CostModel:
    """V(n) in seconds: linear between measured row counts, times a factor that follows the present.

    The factor takes what all passes have in common, a longer context or a busy machine; the table what
    is special to a row count. Plain rounds tell the factor alone, so it follows them fast. Observations
    further than a factor of 2 from the estimate count as that.
    """

    def __init__(
        self,
        verify: Mapping[int, float],
        draft: Mapping[Source, float] | None = None,
        draft_row: float | None = None,
        draft_late: float = 0.0,
    ) -> None:
        """`verify`: measured seconds by row count, at least for 1. `draft`: seconds a drafted token.

        `draft_row`: what another row adds to a pass of the draft model, as a share of one row; None where it
        cannot branch. `draft_late`: what each token adds that it has not read yet, likewise.
        """
        self.draft_row = draft_row
        self.draft_late = draft_late
        self._measured = {n: s for n, s in verify.items() if 0 < s < math.inf}
        if 1 not in self._measured:
            raise ValueError("the cost of one row must be known")
        self._calibrated = dict(self._measured)
        self.draft: dict[Source, float] = dict(draft or {})
        self.factor = 1.0
        self._passes = 0
        self._relative: NDArray[np.float64] | None = None
        self._row: float | None = None

    @property
    def plain(self) -> float:
        """Seconds for one plain token now."""
        return self._measured[1] * self.factor

    def verify(self, n: int) -> float:
        """Seconds for a pass of n rows now."""
        return float(self.relative[n]) * self.plain

    @property
    def relative(self) -> NDArray[np.float64]:
        """V(n) / V(1) for n = 0 ... 65."""
        if self._relative is None:
            ns = sorted(self._measured)
            ms = [self._measured[n] for n in ns]
            if len(ns) == 1:
                ns, ms = [1, 2], [ms[0], 2 * ms[0]]
            table = np.interp(np.arange(MOST_ROWS + 1), ns, ms)
            if ns[-1] < MOST_ROWS:
                table[ns[-1] :] = ms[-1] * np.arange(ns[-1], MOST_ROWS + 1) / ns[-1]
            self._relative, self._row = table / self._measured[1], None
        return self._relative

    @property
    def row(self) -> float:
        """What a row adds on average to a pass of as many rows as make it cheapest, in plain tokens."""
        if self._row is None:
            more = self.relative[2:] - 1.0
            self._row = max(0.0, float((more / np.arange(1, len(more) + 1)).min()))
        return self._row

    def observe_verify(self, n: int, seconds: float) -> float:
        """Learn from a pass of n rows; returns the seconds that count, outliers cut."""
        if not 0 < seconds < math.inf or n > MOST_ROWS:
            return seconds if 0 < seconds < math.inf else 0.0
        expected = self.verify(n)
        fresh = self._passes < len(_FRESH)
        most = _FRESH_OUTLIER if fresh else _OUTLIER
        counted = min(max(seconds, expected / most), expected * most)
        ratio = counted / expected
        self.factor *= ratio ** (_FRESH[self._passes] if fresh else _FOLLOW if n == 1 else _DRIFT)
        self._passes += 1
        if n > 1 and not fresh and abs(ratio - 1.0) > 1e-9:
            known = float(self.relative[n]) * self._measured[1]
            self._measured[n] = known * ratio**_LEARN
            self._relative = None
        return counted

    def recall(self) -> None:
        """A new answer: the machine may be as busy as it likes by now.

        Moves a little back to what calibration measured, so that a row count that once looked dear in a
        busy moment, and was not tried since, is not given up for good.
        """
        self._passes = 0
        for n, seconds in self._measured.items():
            self._measured[n] = seconds * (self._calibrated.get(n, seconds) / seconds) ** _RECALL
        self._relative = None

    def observe_draft(self, source: Source, tokens: float, seconds: float) -> None:
        """Learn from a proposer that took this long for so many tokens, or for work that takes as long."""
        if tokens < 1 or not 0 <= seconds < math.inf:
            return
        each = seconds / tokens
        known = self.draft.get(source)
        self.draft[source] = each if known is None else known + _LEARN * (min(each, 3 * known + 1e-4) - known)

    def as_json(self) -> dict[str, float]:
        """Seconds of a pass by row count, as measured in a quiet moment: without the present factor."""
        return {str(n): s for n, s in sorted(self._measured.items())}
