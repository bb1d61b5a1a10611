"""Medians, percentiles, and how sure a ratio of medians is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Ratio:
    """`low` and `high` bound 95%; None where one pair says nothing about that."""

    value: float
    low: float | None
    high: float | None


def median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def percentile(values: Sequence[float], weights: Sequence[int], percent: float) -> float | None:
    """The smallest value that at least `percent` of the weight does not exceed."""
    if not values:
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.asarray(weights, np.float64)[order])
    at = int(np.searchsorted(reached, percent / 100 * reached[-1] * (1 - 1e-12)))
    return float(values[int(order[at])])


def ratio_of_medians(pairs: Sequence[tuple[float, float]], seed: int = 0) -> Ratio | None:
    """Median of the second over median of the first, with a bootstrap over whole pairs (Efron 1979)."""
    if not pairs:
        return None
    table = np.asarray(pairs, np.float64)
    value = float(np.median(table[:, 1]) / np.median(table[:, 0]))
    if len(pairs) < 2:
        return Ratio(value, None, None)
    drawn = table[np.random.default_rng(seed).integers(len(pairs), size=(RESAMPLES, len(pairs)))]
    medians = np.median(drawn, axis=1)
    low, high = np.percentile(medians[:, 1] / medians[:, 0], (2.5, 97.5))
    return Ratio(value, float(low), float(high))
