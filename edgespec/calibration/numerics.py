"""What follows from which row counts equal single-row decoding bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from edgespec.calibration.survey import Measured
from edgespec.control.attainable import attainable_rate
from edgespec.control.cost import CostModel
from edgespec.types import Numerics

_WORTH = 0.10
"""The share of the attainable rate that exactness may cost."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """`exact`: measured counts whose rows equal single rows. `allowed`: None allows every count."""

    mode: Numerics
    reason: str
    exact: tuple[int, ...]

    @property
    def allowed(self) -> tuple[int, ...] | None:
        return self.exact if self.mode == "exact" else None


def price_of_exactness(found: Measured, each: float = 0.0) -> float:
    """The share of the attainable rate that is lost with the exact row counts alone, 0 to 1.

    `each`: what a drafted token costs, in plain tokens.
    """
    relative = CostModel(found.seconds or {1: 1.0}).relative
    return 1.0 - attainable_rate(relative, found.exact, each) / attainable_rate(relative, None, each)


def choose_numerics(
    asked: Literal["auto", "exact", "near"], exact: Sequence[int], price: float | None
) -> RowCounts:
    """`auto` is exact wherever its `price_of_exactness` is under 10%, near otherwise.

    `price` None: not all is measured yet, which is exact with the counts that are known so far.
    """
    counts, most = tuple(exact), max(exact, default=1)
    equal = f"passes of up to {most} rows equal single rows bit for bit"
    if asked != "auto":
        return RowCounts(asked, "asked for", counts)
    if price is None:
        so_far = "this model is not measured on this device yet, plain until then"
        return RowCounts("exact", f"{equal} as far as they are measured" if most > 1 else so_far, counts)
    costs = f"{price:.1%} of the attainable rate"
    if price >= _WORTH:
        limit = f"only passes of up to {most} rows equal" if most > 1 else "no pass of several rows equals"
        return RowCounts("near", f"{limit} single rows bit for bit, exact would cost {costs}", counts)
    if most == 1:
        return RowCounts("exact", f"passes of several rows hardly pay here, {costs} at most", counts)
    return RowCounts("exact", equal + (f", at {costs}" if price >= 0.005 else ""), counts)
