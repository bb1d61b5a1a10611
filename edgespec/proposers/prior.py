"""How often copying is right, before anything was measured."""

from __future__ import annotations

import numpy as np

_LENGTHS = np.array([1, 2, 3, 4, 6, 8, 10, 16, 24])
_MATCH = np.array([0.32, 0.57, 0.61, 0.71, 0.79, 0.86, 0.91, 0.96, 0.99])
COPY = tuple(float(p) for p in np.interp(np.arange(65), _LENGTHS, _MATCH))
"""COPY[n]: chance that the next token continues a match of n tokens, measured on mixed answers."""


def copy_chance(length: int) -> float:
    return COPY[min(length, 64)]
