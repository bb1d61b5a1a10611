"""Which row counts equal single-row decoding bit for bit, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from edgespec.backends.base import Backend
from edgespec.backends.rows import exact_rows
from edgespec.calibration.store import Measurements
from edgespec.types import Numerics, Tokens

COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)
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


def measured_rows(
    backend: Backend, tokens: Tokens, stored: Measurements, notify: Callable[[str], None]
) -> tuple[int, ...]:
    """The exact row counts, measured once and stored. `tokens`: any text, at least 32 tokens."""
    known = stored.get("exact_rows")
    if isinstance(known, list) and all(isinstance(n, int) for n in known) and 1 in known:
        return tuple(sorted(known))
    notify("measuring this model on this device, once")
    counts = [n for n in COUNTS if n <= backend.capabilities.max_rows]
    exact = sorted(exact_rows(backend, tokens, counts) | {1})
    stored.put("exact_rows", exact)
    return tuple(exact)


def choose_numerics(asked: Literal["auto", "exact", "near"], exact: Sequence[int]) -> RowCounts:
    """`auto` is exact where the exact counts reach at least 4 rows, near otherwise."""
    counts = tuple(exact)
    most = max(counts, default=1)
    if asked != "auto":
        return RowCounts(asked, "asked for", counts)
    if most >= _ENOUGH_ROWS:
        return RowCounts("exact", f"passes of up to {most} rows equal single rows bit for bit", counts)
    return RowCounts("near", f"only passes of up to {most} rows equal single rows here", counts)
