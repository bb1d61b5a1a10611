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
    """`exact`: measured counts whose rows equal single rows. `allowed`: None allows every count.

    `exact_trees`: rows of trees equal single rows, too.
    """

    mode: Numerics
    reason: str
    exact: tuple[int, ...]
    exact_trees: bool = False

    @property
    def allowed(self) -> tuple[int, ...] | None:
        return self.exact if self.mode == "exact" else None

    @property
    def trees(self) -> bool:
        """May drafts branch, where the backend can verify branches?"""
        return self.exact_trees or self.mode == "near"


def price_of_exactness(found: Measured, each: float = 0.0) -> float:
    """The share of the attainable rate that is lost with the exact row counts alone, 0 to 1.

    `each`: what a drafted token costs, in plain tokens.
    """
    relative = CostModel(found.seconds or {1: 1.0}).relative
    return 1.0 - attainable_rate(relative, found.exact, each) / attainable_rate(relative, None, each)


def choose_numerics(
    asked: Literal["auto", "exact", "near"], exact: Sequence[int], price: float | None, trees: bool = False
) -> RowCounts:
    """`auto` is exact wherever its `price_of_exactness` is under 10%, near otherwise.

    `price` None: not all is measured yet, which is exact with the counts that are known so far. `trees`:
    those are exact, too.
    """
    if asked != "auto":
        return RowCounts(asked, "asked for", tuple(exact), trees)
    mode, reason = _so_far(exact) if price is None else _judged(exact, price, trees)
    return RowCounts(mode, reason, tuple(exact), trees)


def _so_far(exact: Sequence[int]) -> tuple[Numerics, str]:
    if max(exact, default=1) == 1:
        return "exact", "this model is not measured on this device yet, plain until then"
    return "exact", f"{_equal(exact)} as far as they are measured"


def _judged(exact: Sequence[int], price: float, trees: bool) -> tuple[Numerics, str]:
    most, costs = max(exact, default=1), f"{price:.1%} of the attainable rate"
    if price >= _WORTH:
        limit = f"only passes of up to {most} rows equal" if most > 1 else "no pass of several rows equals"
        return "near", f"{limit} single rows bit for bit, exact would cost {costs}"
    if most == 1:
        return "exact", f"passes of several rows hardly pay here, {costs} at most"
    return "exact", _equal(exact, trees) + (f", at {costs}" if price >= 0.005 else "")


def _equal(exact: Sequence[int], trees: bool = False) -> str:
    kinds = "passes, trees too," if trees else "passes"
    return f"{kinds} of up to {max(exact)} rows equal single rows bit for bit"
