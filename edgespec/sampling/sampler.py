"""Settings and seed bound into the two questions that verification asks of a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgespec.sampling import noise
from edgespec.sampling.transform import changes_logits, greedy, normalised, penalised, point, survivors
from edgespec.types import Distribution, FloatArray, SamplingSettings


@dataclass(frozen=True, slots=True)
class Sampler:
    """`history` is everything before the row, `path` the drafted tokens from there to the row."""

    settings: SamplingSettings

    def choose(self, row: FloatArray, history: Sequence[int], path: Sequence[int] = ()) -> int:
        """The target's own token: argmax of log p plus the Gumbel number of (seed, position, token).

        The Gumbel-max coupling makes it an exact sample that depends on nothing but its key.
        """
        row = self._changed(row, history, path)
        if self.settings.temperature <= 0:
            return greedy(row)
        ids, logits = survivors(row, self.settings)
        if len(ids) == 1:
            return int(ids[0])
        position = len(history) + len(path)
        return int(ids[np.argmax(logits + noise.gumbel(self.settings.seed, position, noise.CHOICE, ids))])

    def distribution(self, row: FloatArray, history: Sequence[int], path: Sequence[int] = ()) -> Distribution:
        """p after every transform; a point mass at temperature 0."""
        row = self._changed(row, history, path)
        if self.settings.temperature <= 0:
            return point(greedy(row))
        return normalised(*survivors(row, self.settings))

    def _changed(self, row: FloatArray, history: Sequence[int], path: Sequence[int]) -> FloatArray:
        return penalised(row, self.settings, history, path) if changes_logits(self.settings) else row


def confidence(row: FloatArray) -> float:
    """Probability of the best token over the whole row, before any transform."""
    best = float(row.max())
    return 1.0 / float(np.exp(row - np.float32(best)).sum(dtype=np.float64)) if math.isfinite(best) else 0.0


def draw(p: Distribution, seed: int, position: int, stream: int) -> int:
    """One exact sample of p."""
    with np.errstate(divide="ignore"):
        return int(p.ids[np.argmax(np.log(p.probs) + noise.gumbel(seed, position, stream, p.ids))])
