"""Settings and seed bound into the two questions that verification asks of a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgespec.sampling import noise
from edgespec.sampling.transform import changes_logits, greedy, normalised, penalised, point, survivors, top_k
from edgespec.types import Distribution, FloatArray, Ids, SamplingSettings


@dataclass(frozen=True, slots=True)
class Sampler:
    """`history` is everything before the row, `path` the drafted tokens from there to the row."""

    settings: SamplingSettings

    def choose(
        self,
        row: FloatArray,
        history: Sequence[int],
        path: Sequence[int] = (),
        names: Ids | None = None,
    ) -> int:
        """The target's own token: argmax of log p plus the Gumbel number of (seed, position, token).

        The Gumbel-max coupling makes it an exact sample that depends on nothing but its key. `names`: the
        target's token that each of a draft's stands for in the noise, which is then no sample.
        """
        row = self._changed(row, history, path)
        if self.settings.temperature <= 0:
            return greedy(row)
        ids, logits = survivors(row, self.settings)
        if len(ids) == 1:
            return int(ids[0])
        position = len(history) + len(path)
        keys = ids if names is None else names[ids]
        return int(ids[np.argmax(logits + noise.gumbel(self.settings.seed, position, noise.CHOICE, keys))])

    def choices(
        self, row: FloatArray, history: Sequence[int], path: Sequence[int], most: int, top: float
    ) -> list[tuple[int, float]]:
        """What `choose` gives, then what it would give without that, and so on. `top`: `confidence(row)`.

        With each its share of what those before it leave, under the same noise: how clear the choice is.
        """
        scores: NDArray[Any] = self._changed(row, history, path)
        ids, total = None, None
        if self.settings.temperature <= 0:
            greedy(scores)
            total = 1.0 / top if scores is row and top > 0.0 else None
        else:
            ids, logits = survivors(scores, self.settings)
            position = len(history) + len(path)
            scores = logits + noise.gumbel(self.settings.seed, position, noise.CHOICE, ids)
        best = top_k(scores, most)
        highest = scores[best[0]]
        left = float(np.exp(scores - highest).sum(dtype=np.float64)) if total is None else total
        found = []
        weights = np.exp(scores[best] - highest)
        for at, weight in zip(best[weights > 0.0], weights[weights > 0.0].tolist(), strict=True):
            found.append((int(at if ids is None else ids[at]), min(1.0, weight / left)))
            left = max(left - weight, 1e-300)
        return found

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
