"""One row of logits -> the ids that survive and their scaled logits.

Order as in llama.cpp: bias and penalties, top-k, top-p, min-p, temperature last.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import BackendError
from edgespec.types import Distribution, FloatArray, Ids, SamplingSettings

Logits = NDArray[np.float64]

_COLUMNS = 1024


def changes_logits(settings: SamplingSettings) -> bool:
    """Do bias or penalties change anything?"""
    return bool(settings.logit_bias) or _has_penalties(settings)


def _has_penalties(s: SamplingSettings) -> bool:
    return s.repeat_penalty != 1.0 or s.frequency_penalty != 0.0 or s.presence_penalty != 0.0


def penalised(
    row: FloatArray, s: SamplingSettings, history: Sequence[int], path: Sequence[int]
) -> FloatArray:
    """A copy of `row` `[n_vocab]` with bias and penalties; `path` is the drafted way from history to it."""
    row = row.copy()
    for token, bias in s.logit_bias.items():
        if 0 <= token < row.size:
            row[token] += bias
    if _has_penalties(s) and s.penalty_last_n != 0:
        n = s.penalty_last_n if s.penalty_last_n > 0 else len(history) + len(path)
        window = [*history[max(0, len(history) + len(path) - n) :], *path][-n:]
        counts = Counter(token for token in window if token < row.size)
        ids = np.fromiter(counts.keys(), np.int64, len(counts))
        seen = np.fromiter(counts.values(), np.float32, len(counts))
        value = row[ids]
        value = np.where(value > 0, value / s.repeat_penalty, value * s.repeat_penalty)
        row[ids] = value - seen * s.frequency_penalty - s.presence_penalty
    return row


def top_k(row: FloatArray, k: int) -> Ids:
    """Ids of the k largest, best first, the lowest id first among equals.

    The k-th largest of 1,024 column maxima is a floor that at least k entries reach, and only in the
    columns whose maximum reaches it; that leaves a handful to sort.
    """
    n = row.size
    if k <= 0 or k >= n:
        ids = np.arange(n, dtype=np.int64)
    elif n < 4 * _COLUMNS or k >= _COLUMNS:
        floor = np.partition(row, n - k)[n - k]
        ids = np.flatnonzero(row >= floor)
    else:
        whole = n - n % _COLUMNS
        grid = row[:whole].reshape(-1, _COLUMNS)
        best = grid.max(axis=0)
        floor = np.partition(best, _COLUMNS - k)[_COLUMNS - k]
        columns = np.flatnonzero(best >= floor)
        at, which = np.nonzero(grid[:, columns] >= floor)
        rest = whole + np.flatnonzero(row[whole:] >= floor)
        ids = np.concatenate((at * _COLUMNS + columns[which], rest))
    order = np.argsort(-row[ids], kind="stable")
    return ids[order[:k]] if k > 0 else ids[order]


def greedy(row: FloatArray) -> int:
    """The best id, the lowest among equals. Raises BackendError when the row holds NaN."""
    best = int(row.argmax())
    if math.isnan(row[best]):
        raise BackendError("the model computed NaN: the file may be damaged, or try another KV type")
    return best


def survivors(row: FloatArray, s: SamplingSettings) -> tuple[Ids, Logits]:
    """Ids that pass top-k, top-p and min-p, and their logits over temperature. Temperature must be > 0."""
    best = greedy(row)
    wide = s.top_k <= 0
    if wide and s.top_p >= 1.0:
        floor = float(row[best]) + math.log(s.min_p) if s.min_p > 0.0 else -math.inf
        ids = np.flatnonzero(row >= floor)
        return ids, row[ids].astype(np.float64) / s.temperature
    ids = _nucleus(row, s.top_p) if wide else top_k(row, s.top_k)
    logits = row[ids].astype(np.float64)
    keep = len(ids)
    if s.top_p < 1.0 and not wide:
        mass = np.exp(logits - logits[0]).cumsum()
        keep = int(np.searchsorted(mass, s.top_p * mass[-1])) + 1
    if s.min_p > 0.0:
        keep = min(keep, int(np.count_nonzero(logits >= logits[0] + math.log(s.min_p))))
    keep = max(keep, 1)
    return ids[:keep], logits[:keep] / s.temperature


def _nucleus(row: FloatArray, p: float) -> Ids:
    """The smallest set of best ids whose mass over the whole vocabulary reaches p."""
    wanted = p * float(np.exp(row - row.max(), dtype=np.float64).sum())
    k = 256
    while True:
        ids = top_k(row, min(k, row.size))
        mass = np.exp(row[ids].astype(np.float64) - float(row[ids[0]])).cumsum()
        if mass[-1] >= wanted or len(ids) >= row.size:
            return ids[: int(np.searchsorted(mass, wanted)) + 1]
        k *= 8


def point(token: int) -> Distribution:
    return Distribution(np.array([token], np.int64), np.ones(1))


def normalised(ids: Ids, logits: Logits) -> Distribution:
    """Softmax over the survivors, ids ascending."""
    order = np.argsort(ids)
    weights = np.exp(logits[order] - logits.max())
    return Distribution(ids[order], weights / weights.sum())
