"""Which row counts equal single-row decoding bit for bit, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from edgespec.backends.base import Backend
from edgespec.backends.rows import exact_rows
from edgespec.calibration.cost import SECONDS, Stopwatch, fill
from edgespec.calibration.store import Measurements
from edgespec.types import Numerics, Tokens

COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)
TIMED = (2, 3, 4, 6, 8, 12, 16, 24, 32)
_ENOUGH_ROWS = 4


@dataclass(frozen=True, slots=True)
class RowCounts:
    """`exact`: measured counts whose rows equal single rows. `allowed`: None allows every count."""

    mode: Numerics
    reason: str
    exact: tuple[int, ...]

    @property
    def allowed(self) -> tuple[int, ...] | None:
        return self.exact if self.mode == "exact" else None


@dataclass(frozen=True, slots=True)
class Measured:
    """`exact`: row counts whose rows equal single rows. `seconds`: of a pass, by row count, 1 included."""

    exact: tuple[int, ...]
    seconds: dict[int, float]


def measured(
    backend: Backend, tokens: Tokens, stored: Measurements, notify: Callable[[str], None]
) -> Measured:
    """Measured once and stored. `tokens`: any text, at least 32 tokens."""
    known = _known(stored)
    if known is not None:
        return known
    notify("measuring this model on this device, once")
    counts = [n for n in COUNTS if n <= backend.capabilities.max_rows]
    watch = Stopwatch(backend)
    exact = sorted(exact_rows(watch, tokens, counts) | {1})
    seconds = fill(watch, tokens, TIMED)
    stored.put("exact_rows", exact)
    if not stored.put(SECONDS, {str(n): s for n, s in seconds.items()}):
        notify(f"the measurement cannot be kept in {stored.path.parent}: it is made at every start")
    return Measured(tuple(exact), seconds)


def _known(stored: Measurements) -> Measured | None:
    try:
        exact = tuple(sorted(int(n) for n in stored.get("exact_rows")))
        seconds = {int(n): float(s) for n, s in stored.get(SECONDS).items()}
    except (TypeError, ValueError, AttributeError, OverflowError):
        return None
    sound = 1 in exact and 1 in seconds and all(0.0 < s < math.inf for s in seconds.values())
    return Measured(exact, seconds) if sound else None


def choose_numerics(asked: Literal["auto", "exact", "near"], exact: Sequence[int]) -> RowCounts:
    """`auto` is exact where the exact counts reach at least 4 rows, near otherwise."""
    counts = tuple(exact)
    most = max(counts, default=1)
    if asked != "auto":
        return RowCounts(asked, "asked for", counts)
    if most >= _ENOUGH_ROWS:
        return RowCounts("exact", f"passes of up to {most} rows equal single rows bit for bit", counts)
    return RowCounts("near", f"only passes of up to {most} rows equal single rows here", counts)
