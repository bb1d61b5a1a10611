"""What is measured of a model on this device: exact row counts and seconds, a step at a time, and kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from edgespec.backends.base import Backend
from edgespec.backends.rows import BEHIND, LEAST_ROWS, hopeless, tried_rows, tried_trees
from edgespec.calibration.cost import Stopwatch
from edgespec.calibration.store import Measurements
from edgespec.types import Clock, Tokens

SECONDS = "verify_seconds"
_TRIED, _EXACT = "tried_rows", "exact_rows"
_TRIED_TREES, _EXACT_TREES = "tried_trees", "exact_trees"
NAMES = (_TRIED, _EXACT, _TRIED_TREES, _EXACT_TREES, SECONDS)
"""What is kept, in the store."""
COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)

_LEAST_TREE = 3
_IDLE_TURNS, _LESS = 2, 0.97
_STEP_DOWN = 1.5

Progress = Callable[[float], None]
"""Share of the work that is done. Whatever it raises ends the measuring; what was measured is kept."""


@dataclass(frozen=True, slots=True)
class Measured:
    """`exact`: row counts whose rows equal single rows. `seconds`: of a pass, by row count, with 1 if any.

    `tried`: the row counts that were compared; others may be exact, too. `exact_trees` and `tried_trees`:
    the same of trees.
    """

    exact: tuple[int, ...] = (1,)
    seconds: Mapping[int, float] | None = None
    tried: tuple[int, ...] = ()
    exact_trees: tuple[int, ...] = ()
    tried_trees: tuple[int, ...] = ()

    @property
    def trees(self) -> bool:
        """Are trees exact wherever chains are? Only their attention differs, so a few counts tell."""
        shapes = _shapes(self.exact)
        return bool(shapes) and set(shapes) <= set(self.exact_trees)


def _shapes(exact: Sequence[int]) -> list[int]:
    """The smallest, the largest and a middle one of the exact counts that a tree may have."""
    able = [n for n in exact if n >= _LEAST_TREE]
    return sorted({able[0], able[len(able) // 2], able[-1]}) if able else []


def _counts(stored: Any) -> tuple[int, ...]:
    """Raises TypeError, ValueError or OverflowError."""
    if not isinstance(stored, list):
        raise TypeError("not a list of row counts")
    return tuple(sorted(int(n) for n in stored))


def _ignore(_: float) -> None:
    pass


class Survey:
    """Measures on any text at the end of the cache, which it leaves as it was. It goes on where it ended,
    also in a later run.

    `tokens`: at least a few more than the largest of `COUNTS`; those in front only make the cache long.
    """

    def __init__(
        self, backend: Backend, tokens: Tokens, stored: Measurements, clock: Clock = time.perf_counter
    ) -> None:
        self._backend, self._tokens, self._stored, self._clock = backend, tokens, stored, clock
        most = min(backend.capabilities.max_rows, backend.n_ctx - 2, len(tokens) - 1)
        self._counts = [n for n in COUNTS if n <= most]
        self.can_be_kept = True
        """Could the last results be written?"""

    @property
    def known(self) -> Measured:
        """What does not make sense in the store is not known."""
        try:
            tried, exact = _counts(self._stored.get(_TRIED)), _counts(self._stored.get(_EXACT))
            trees = [_counts(self._stored.get(name) or []) for name in (_EXACT_TREES, _TRIED_TREES)]
            seconds = {int(n): float(s) for n, s in self._stored.get(SECONDS).items()}
        except (TypeError, ValueError, AttributeError, OverflowError):
            return Measured()
        sound = 1 in exact and 1 in seconds and all(0.0 < s < math.inf for s in seconds.values())
        sound = sound and set(exact) <= {1, *tried} and set(trees[0]) <= set(trees[1])
        return Measured(exact, seconds, tried, *trees) if sound else Measured()

    @property
    def complete(self) -> bool:
        return not self._left(self.known)

    def _left(self, known: Measured) -> list[int]:
        """What is to be measured still, by row counts."""
        return [*self._untried(known), *self._untimed(known), *self._untried_trees(known)]

    def _untried(self, known: Measured) -> list[int]:
        if hopeless([n in known.exact for n in known.tried]):
            return []
        return [n for n in self._counts if n not in known.tried]

    def _untried_trees(self, known: Measured) -> list[int]:
        """One that is not exact is enough to know."""
        if not self._backend.capabilities.tree or set(known.tried_trees) - set(known.exact_trees):
            return []
        room = min(self._backend.n_ctx, len(self._tokens)) - BEHIND
        return [n for n in _shapes(known.exact) if n <= room and n not in known.tried_trees]

    def _untimed(self, known: Measured) -> list[int]:
        return [n for n in (1, *self._counts) if n not in (known.seconds or {})]

    def advance(self, seconds: float = math.inf, progress: Progress = _ignore) -> None:
        """Measure what is not known yet, smallest counts first, for about so long: nothing is begun that
        would not end in time.

        Raises Cancelled when the backend is aborted, and what `progress` raises.
        """
        if self.complete:
            return
        watch = Stopwatch(self._backend, self._clock)
        found = _Findings(self.known, watch)
        end = self._clock() + seconds
        steps = self._steps(watch, found, lambda n: self._clock() + found.worst(n) <= end)
        try:
            for _ in steps:
                left = len(self._left(found.measured))
                progress(1.0 - left / (2 * len(self._counts) + 4))
        finally:
            steps.close()
            if watch.seconds:
                self._keep(found.measured)

    def renew(self, seconds: float, progress: Progress = _ignore) -> None:
        """Measure everything anew, then take turns over all counts until they bring nothing down any more or
        take over `seconds`: what a row count costs is the least of its passes. Raises as `advance` does.
        """
        for name in NAMES:
            self._stored.put(name, None)
        self.advance(progress=lambda share: progress(0.5 * share))
        began = self._clock()
        least, idle = dict(self.known.seconds or {}), 0
        while idle < _IDLE_TURNS and self._clock() - began + sum(least.values()) <= seconds:
            progress(0.5 + 0.5 * (self._clock() - began) / seconds)
            turn = self._turn()
            idle = 0 if any(turn[n] < _LESS * least[n] for n in turn) else idle + 1
            least = {n: min(least[n], turn[n]) for n in turn}
        progress(1.0)
        self._keep(replace(self.known, seconds=least))

    def _turn(self) -> dict[int, float]:
        """Seconds of one pass of every count."""
        backend, start = self._backend, self._backend.length
        seconds = {}
        try:
            for n in (1, *self._counts):
                began = self._clock()
                backend.forward(self._tokens[:n])
                seconds[n] = self._clock() - began
                backend.commit(())
        finally:
            backend.truncate(start)
        return seconds

    def _steps(
        self, watch: Stopwatch, found: _Findings, fits: Callable[[int], bool]
    ) -> Generator[None, None, None]:
        # What the cache holds already makes it as long as the first tokens would.
        spare = max(len(self._tokens) - max(COUNTS) - BEHIND - 2, 0)
        tokens = self._tokens[min(watch.length, spare) :]
        untried = self._untried(found.measured)
        with closing(tried_rows(watch, tokens, untried)) as trials:
            while untried and fits(untried[0]) and (trial := next(trials, None)):
                found.add(*trial)
                untried = self._untried(found.measured)
                yield
        untimed = self._untimed(found.measured)
        for n in untimed if 1 in watch.seconds else dict.fromkeys((1, *untimed)):
            if not fits(n) or watch.length + n > watch.n_ctx:
                return
            watch.forward(tokens[:n])
            watch.commit(())
            yield
        untried = [] if untried else self._untried_trees(found.measured)
        with closing(tried_trees(self._backend, tokens, untried)) as trials:
            while untried and fits(untried[0] + BEHIND) and (trial := next(trials, None)):
                found.add_tree(*trial)
                untried = self._untried_trees(found.measured)
                yield

    def _keep(self, measured: Measured) -> None:
        self._stored.put(_TRIED, list(measured.tried))
        self._stored.put(_EXACT, list(measured.exact))
        self._stored.put(_TRIED_TREES, list(measured.tried_trees))
        self._stored.put(_EXACT_TREES, list(measured.exact_trees))
        seconds = {str(n): s for n, s in _plausible(measured.seconds or {}).items()}
        self.can_be_kept = self._stored.put(SECONDS, seconds)


def _plausible(seconds: Mapping[int, float]) -> dict[int, float]:
    """Kernels may take a little longer for fewer rows. What takes half as long again was slowed down."""
    counts = sorted(seconds)
    least = {n: min(seconds[m] for m in counts[i:]) for i, n in enumerate(counts)}
    return {n: least[n] if seconds[n] > _STEP_DOWN * least[n] else seconds[n] for n in counts}


class _Findings:
    """What was known before, and what `watch` and the comparisons add to it."""

    def __init__(self, known: Measured, watch: Stopwatch) -> None:
        self._exact, self._tried = set(known.exact), set(known.tried)
        self._exact_trees, self._tried_trees = set(known.exact_trees), set(known.tried_trees)
        self._known, self._watch = dict(known.seconds or {}), watch

    def add(self, n: int, exact: bool) -> None:
        self._tried.add(n)
        self._exact |= {n} if exact else set()

    def add_tree(self, n: int, exact: bool) -> None:
        self._tried_trees.add(n)
        self._exact_trees |= {n} if exact else set()

    @property
    def measured(self) -> Measured:
        exact, tried, exact_trees, tried_trees = (
            tuple(sorted(counts))
            for counts in (self._exact, self._tried, self._exact_trees, self._tried_trees)
        )
        return Measured(exact, self._seconds, tried, exact_trees, tried_trees)

    @property
    def _seconds(self) -> dict[int, float]:
        """Compared by their ratio to a single row: the machine may be busier than it was before."""
        now = self._watch.seconds
        if not self._known or 1 not in now:
            return self._known or dict(now)
        scale = self._known[1] / now[1]
        return {n: s * scale for n, s in now.items()} | self._known

    def worst(self, n: int) -> float:
        """Seconds that comparing n rows takes at most: each once alone, and once among others."""
        one = self._watch.seconds.get(1) or self._known.get(1, 0.0)
        return 2 * max(n, LEAST_ROWS) * one
