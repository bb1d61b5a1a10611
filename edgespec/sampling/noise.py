"""Keyed noise: one number for every (seed, position, token), with no generator state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_DERIVED = 0xD1B54A32D192ED03
_SHIFT_12, _SHIFT_27, _SHIFT_30, _SHIFT_31 = (np.uint64(n) for n in (12, 27, 30, 31))
_MUL_1, _MUL_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

CHOICE, DRAFT, ACCEPT, RESIDUAL = range(4)
"""Streams: independent numbers for the same (seed, position, token)."""


def _mix(x: int) -> int:
    """splitmix64's finaliser (Steele, Lea, Flood 2014) on one integer."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def derived(seed: int, n: int) -> int:
    """The n-th of seeds whose numbers are independent of those of `seed` and of each other."""
    return _mix((_mix((seed + _DERIVED) & _MASK) + (n + 1) * _GOLDEN) & _MASK)


def _key(seed: int, position: int, stream: int) -> int:
    key = _mix((seed + _GOLDEN) & _MASK)
    key = _mix((key + position * _GOLDEN) & _MASK)
    return _mix((key + (stream + 1) * _GOLDEN) & _MASK)


def uniform(seed: int, position: int, stream: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Numbers in (0, 1), one for each id."""
    x = ids.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(_key(seed, position, stream))
    x = (x ^ (x >> _SHIFT_30)) * _MUL_1
    x = (x ^ (x >> _SHIFT_27)) * _MUL_2
    x = x ^ (x >> _SHIFT_31)
    return ((x >> _SHIFT_12).astype(np.float64) + 0.5) * 2.0**-52


def gumbel(seed: int, position: int, stream: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Standard Gumbel numbers: argmax over ids of log p + gumbel is an exact sample of p."""
    return -np.log(-np.log(uniform(seed, position, stream, ids)))
