"""How likely a drafted token is right, given what its proposer knew: calibrated counts over a prior."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from edgespec.types import Evidence, Source

_LENGTHS = (1, 2, 3, 4, 6, 8, 10, 16, 24)
_COPIED = (0.32, 0.57, 0.61, 0.71, 0.79, 0.86, 0.91, 0.96, 0.99)
_PLACES = {
    "recycling": (0.55, 0.36, 0.17, 0.11, 0.05, 0.04, 0.03, 0.02, 0.02, 0.01),
    "lookahead": (0.37, 0.12, 0.12, 0.10, 0.55, 0.10, 0.08, 0.04, 0.03),
    "jacobi": (0.0, 0.0, 0.0, 0.0, 0.0, 0.10, 0.20, 0.10, 0.06),
    "lookahead=alone": (0.06, 0.07, 0.08, 0.20, 0.20, 0.20, 0.22, 0.24),
    "jacobi=alone": (0.06, 0.07, 0.08),
    "lookahead=": (0.02, 0.03, 0.04, 0.015, 0.04, 0.04, 0.05, 0.06),
    "jacobi=": (0.02, 0.03, 0.04),
}
"""Chances by the place that is the evidence; of a window by its size, beside other proposers or alone."""
_SUREST = 0.85
"""Of what one token alone tells: it has been right everywhere until the text turns."""
_TOP = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 1.0)
_AGREED = (0.05, 0.25, 0.5, 0.65, 0.85, 0.95, 0.985, 0.997)
_LENGTH_BINS = (1, 2, 3, 4, 5, 7, 10, 15, 24)
_TOP_BINS = (0.0, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
_WEIGHT = 13.0
_MOST = 400.0
_FADE = 0.9

_TOGETHER = ("draft", "suffix", "ngram")
"""Sources whose evidence means the same, or whose kinds differ; all others are counted apart."""
BESIDE = "+"
BEYOND = "="
"""Ends the name of the table of what a window of guesses brings."""
_BESIDE = 0.8
_SECOND = 0.45

Bin = tuple[str, int, int]
_NONE = (0.0, 0.0)


def _between(x: float, xs: Sequence[float], ys: Sequence[float]) -> float:
    i = bisect_right(xs, x)
    if i == 0 or i == len(xs):
        return ys[min(i, len(ys) - 1)]
    return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1])


def prior(evidence: Evidence, table: str = "") -> float:
    """Before anything was counted: measured on mixed answers of other models."""
    if len(evidence) == 1:
        known = _PLACES.get(table.removesuffix(BESIDE), _PLACES["recycling"])
        return known[min(int(evidence[0]), len(known) - 1)]
    if len(evidence) == 2:
        top, agrees = evidence
        chance = _between(top, _TOP, _AGREED)
        odds = chance / (1.0 - chance) * (4.0 if agrees > 0 else 0.6 if agrees < 0 else 1.0)
        return odds / (1.0 + odds)
    length, share, times = evidence
    chance = _between(length, _LENGTHS, _COPIED)
    if share < 1.0:
        return max(0.02, chance * 0.7 * max(share, 0.05))
    return 1.0 - (1.0 - chance) * 0.6 if times > 1 else chance


def _bin(evidence: Evidence) -> Bin:
    if len(evidence) == 1:
        return "place", int(evidence[0]), 0
    if len(evidence) == 2:
        return "draft", bisect_right(_TOP_BINS, evidence[0]), int(evidence[1])
    length, share, times = evidence
    return "copy", bisect_right(_LENGTH_BINS, length), 2 if share < 1.0 else int(times > 1)


def _of_model(where: Bin) -> bool:
    return where[0].startswith("draft")


def table_of(source: Source, alternative: bool) -> str:
    """Sources that are counted apart; a branch beside a likelier one is right less often than it looks."""
    name = "" if source in _TOGETHER else source
    return name + BESIDE if alternative else name


@lru_cache(maxsize=4096)
def _placed(evidence: Evidence, table: str) -> tuple[Bin, float]:
    (kind, *where), expected = _bin(evidence), prior(evidence, table)
    if table.endswith(BESIDE):
        expected *= _BESIDE
    return (kind + table, *where), expected  # type: ignore[return-value]


class Calibration:
    """Beta-smoothed hit rates, one count pair a bin, decayed once a bin is full.

    Copying is counted by match length and whether the continuation is the only one, a draft model by
    its top probability. Costs nothing to keep: free proposers are counted whether verified or not.
    """

    def __init__(self, counts: Mapping[Bin, tuple[float, float]] | None = None) -> None:
        counts = counts or {}
        self._drafted = {where: count for where, count in counts.items() if _of_model(where)}
        self._counts = {where: count for where, count in counts.items() if not _of_model(where)}

    def sharing(self, other: Calibration) -> Calibration:
        """These counts of a draft model; all else is counted together with `other` from now on."""
        self._counts = other._counts
        return self

    def _table(self, where: Bin) -> dict[Bin, tuple[float, float]]:
        return self._drafted if _of_model(where) else self._counts

    def chance(self, evidence: Evidence, table: str = "") -> float:
        """That the token is right, given that all before it are. `table`: counted apart from others."""
        where, expected = _placed(evidence, table)
        hits, n = self._table(where).get(where, _NONE)
        chance = (hits + _WEIGHT * expected) / (n + _WEIGHT)
        return chance if len(evidence) > 1 else min(chance, _SUREST)

    def learn(self, evidence: Evidence, hit: bool, table: str = "") -> None:
        where, _ = _placed(evidence, table)
        counts = self._table(where)
        hits, n = counts.get(where, _NONE)
        keep = 1.0 if n < _MOST else 1.0 - 1.0 / _MOST
        counts[where] = (hits * keep + hit, n * keep + 1.0)

    def fade(self) -> None:
        """Forget a little of the draft model, so that one that was given up gets another chance."""
        for where, (hits, n) in self._drafted.items():
            if where[0] == "draft":
                self._drafted[where] = (hits * _FADE, n * _FADE)

    @property
    def drafting(self) -> float:
        """Mean hit rate of the draft model's tokens, with a cautious start."""
        mine = [count for (name, *_), count in self._drafted.items() if name == "draft"]
        return (sum(h for h, _ in mine) + 8.5) / (sum(n for _, n in mine) + 10.0)

    @property
    def second(self) -> float:
        """The same of its other tokens where the likelier ones are wrong."""
        others = [count for (name, *_), count in self._drafted.items() if name == "draft" + BESIDE]
        return (sum(h for h, _ in others) + 10.0 * _SECOND) / (sum(n for _, n in others) + 10.0)

    def as_json(self) -> list[list[Any]]:
        return [[*where, hits, n] for where, (hits, n) in sorted((self._counts | self._drafted).items())]

    @staticmethod
    def from_json(rows: object) -> Calibration:
        """What `as_json` gave; anything else reads as empty."""
        try:
            counts = {(str(s), int(a), int(b)): (float(h), float(n)) for s, a, b, h, n in rows}  # type: ignore[attr-defined]
        except (TypeError, ValueError, OverflowError):
            counts = {}
        return Calibration({k: v for k, v in counts.items() if 0 <= v[0] <= v[1] < math.inf})
