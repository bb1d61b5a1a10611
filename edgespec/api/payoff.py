"""Whether a draft model that nobody asked for is worth loading, from what earlier runs measured."""

from __future__ import annotations

import math
from typing import Any

from edgespec.calibration import SECONDS, Measurements
from edgespec.control import Calibration, Controller, CostModel

_APART = 10
"""It is loaded again after so many times without it, since machines and prompts change."""


def objection(stored: Measurements, draft: str, *, exact: bool) -> str | None:
    """Why the draft with this fingerprint cannot pay on this device; None if it may, or is not known yet.

    A draft that lies unused would still cost its memory. `exact`: only passes of exact row counts are made.
    """
    each, seconds = stored.get(f"draft_seconds:{draft}"), _seconds(stored.get(SECONDS))
    if not isinstance(each, float) or not 0.0 < each < math.inf or len(seconds) < 2:
        return None
    rows = stored.get("exact_rows")
    policy = Controller(
        ("draft",),
        CostModel(seconds, {"draft": each}),
        Calibration.from_json(stored.get(f"survival:{draft}")),
        row_counts=tuple(rows) if exact and isinstance(rows, list) else None,
    )
    if policy.begin():
        stored.put(f"unpaired:{draft}", 0)
        return None
    times = stored.get(f"unpaired:{draft}")
    times = times + 1 if isinstance(times, int) else 1
    stored.put(f"unpaired:{draft}", times)
    if times % _APART == 0:
        return None
    return f"it cannot pay here, where a token of it takes {each / seconds[1]:.2f} of the target's time"


def _seconds(kept: Any) -> dict[int, float]:
    """As it was stored, if it is sound."""
    try:
        seconds = {int(n): float(s) for n, s in kept.items()}
    except (AttributeError, TypeError, ValueError):
        return {}
    return seconds if 1 in seconds and all(0.0 < s < math.inf for s in seconds.values()) else {}
