"""Which backend is fastest for a model on this device: measured when asked, and kept.

The expected rate is the controller's own: tokens a second on a text of which every kind of draft makes an
equal share (`control.attainable`), with the row counts that are exact.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from edgespec.api.backends import Place, able
from edgespec.api.calibrating import sample_text
from edgespec.api.memory import free_memory
from edgespec.backends.base import LoadedModel, LoadOptions
from edgespec.backends.device import cpu_name, usable_cores
from edgespec.backends.registry import adapter
from edgespec.calibration import Measurements, Survey, draft_seconds, fingerprint
from edgespec.control import CostModel
from edgespec.control.attainable import attainable_rate
from edgespec.errors import Cancelled, EdgespecError

_HOPELESS = 4.0
"""With a single row so many times slower than another's nothing can be made up for."""
_ROWS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32)
_SINGLES, _TURNS = 3, 5
_PATIENCE = 30.0
_KEPT = "backends"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend as it was measured: seconds of a single row, tokens a second to expect from exact passes with
    speculation, and the most rows of an exact pass. `excluded` says why there is no rate.
    """

    backend: str
    single: float = 0.0
    rate: float = 0.0
    exact: int = 1
    excluded: str | None = None


def best(candidates: Sequence[Candidate]) -> str | None:
    """The one with the best rate; the first of equals."""
    rated = [candidate for candidate in candidates if candidate.excluded is None]
    return max(rated, key=lambda candidate: candidate.rate).backend if rated else None


def chosen(path: Path, options: LoadOptions) -> str | None:
    """The backend that measured best for this model on this device; None before it was measured, or with
    options that only the usual backend has.
    """
    return best(known(path)) if is_usual(options) else None


def is_usual(options: LoadOptions) -> bool:
    """Is nothing asked for that only llama.cpp and its forks know?"""
    asked = (options.type_k, options.type_v, options.flash_attn)
    return asked == (None, None, None) and options.load_mode == "auto" and options.n_gpu_layers < 0


def known(path: Path) -> tuple[Candidate, ...]:
    """What `compare` found for this model on this device, in its order; nothing before it did."""
    try:
        return tuple(Candidate(**kept) for kept in _store(path).get(_KEPT))
    except TypeError:
        return ()


def compare(
    path: Path, options: LoadOptions, progress: Callable[[str, float], None], turns: int = _TURNS
) -> tuple[Candidate, ...]:
    """Measure every backend that can load this model without a conversion, and keep the result for `chosen`.

    They take turns, so that a busy moment hits all of them; where memory does not hold all at once those that
    it holds. Raises Cancelled, or what `progress` raises; then nothing is kept.
    """
    places, contenders = able(path), list[_Contender]()
    found = {place.backend: Candidate(place.backend) for place in places}
    with contextlib.ExitStack() as loaded:
        for i, place in enumerate(places):
            progress(f"loading for {place.backend}", i / len(places))
            try:
                model = _load(place, options)
                loaded.callback(model.backend.close)
                contender = _Contender(place, model)
                if free_memory() < 2 * model.info.size_bytes:
                    contender.finish(turns)
            except Cancelled:
                raise
            except EdgespecError as error:
                found[place.backend] = Candidate(place.backend, excluded=str(error))
            else:
                contenders.append(contender)
        for contender in contenders * _SINGLES:
            contender.try_single()
        fastest = min((contender.single for contender in contenders), default=0.0)
        hopeful = [contender for contender in contenders if contender.single <= _HOPELESS * fastest]
        found |= {contender.backend: contender.excluded() for contender in contenders}
        for i, contender in enumerate(hopeful):
            progress(f"measuring {contender.backend}", i / (2 * len(hopeful)))
            contender.find_exact_rows()
        for i, contender in enumerate(hopeful * turns):
            progress(f"measuring {contender.backend}", 0.5 + i / (2 * turns * len(hopeful)))
            contender.turn()
        found |= {contender.backend: contender.rated() for contender in hopeful}
    _store(path).put(_KEPT, [asdict(candidate) for candidate in found.values()])
    return tuple(found.values())


def _load(place: Place, options: LoadOptions) -> LoadedModel:
    return adapter(place.backend).load(place.path, replace(options, exact=True))


class _Contender:
    """A loaded backend, and the least that passes of it took so far."""

    def __init__(self, place: Place, model: LoadedModel) -> None:
        self.backend = place.backend
        self._place, self._model, self._tokens = place, model, sample_text(model)
        self.single = math.inf
        self._most = min(model.backend.capabilities.max_rows, model.backend.n_ctx - 1, len(self._tokens))
        self._seconds: dict[int, float] = {}
        self._exact: tuple[int, ...] = (1,)
        self._finished = False
        self.try_single()

    def try_single(self) -> None:
        if not self._finished:
            self.single = min(self.single, draft_seconds(self._model.backend, self._tokens))

    def excluded(self) -> Candidate:
        slow = f"a single row takes {self.single * 1e3:.0f} ms, too long for speculation to make up"
        return Candidate(self.backend, self.single, excluded=slow)

    def find_exact_rows(self) -> None:
        """Kept for `edgespec run`, too. What is not found in time is taken for inexact."""
        if self._finished:
            return
        stored = Measurements(fingerprint(self._place.path), self._model.info.settings)
        survey = Survey(self._model.backend, self._tokens, stored)
        survey.advance(_PATIENCE)
        self._exact = survey.known.exact

    def turn(self) -> None:
        """One pass of every row count, a few of a single row: the first wakes the threads. What would take
        too long is left out.
        """
        if self._finished:
            return
        backend, end = self._model.backend, time.perf_counter() + _PATIENCE / _TURNS
        for n in (1, 1, *(n for n in _ROWS if n <= self._most)):
            began = time.perf_counter()
            if n > 1 and began > end:
                return
            backend.forward(self._tokens[:n])
            taken = time.perf_counter() - began
            backend.commit(())
            self._seconds[n] = min(taken, self._seconds.get(n, taken))

    def finish(self, turns: int) -> None:
        """Take all turns now and make room."""
        self.find_exact_rows()
        for _ in range(turns):
            self.turn()
        self._finished = True
        self._model.backend.close()

    def rated(self) -> Candidate:
        # A pass that took longer than one of more rows was slowed down by something else.
        least = {n: min(s for m, s in self._seconds.items() if m >= n) for n in self._seconds}
        single = least[1]
        rate = attainable_rate(CostModel(least).relative, self._exact) / single
        return Candidate(self.backend, single, rate, max(self._exact))


def _store(path: Path) -> Measurements:
    device: dict[str, Any] = {"what": "choice of a backend", "cpu": cpu_name(), "cores": usable_cores()}
    return Measurements(fingerprint(path), device)
