"""Which backend is fastest for a model on this device: measured when asked, and kept.

The expected rate is the controller's own: tokens a second on a text of which every kind of draft makes an
equal share (`control.attainable`), with the row counts that are exact.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from edgespec.api.backends import Place, able
from edgespec.api.calibrating import sample_text
from edgespec.backends.base import LoadedModel, LoadOptions
from edgespec.backends.device import cpu_name, usable_cores
from edgespec.backends.registry import adapter
from edgespec.calibration import Measured, Measurements, Survey, draft_seconds, fingerprint
from edgespec.control import CostModel
from edgespec.control.attainable import attainable_rate
from edgespec.errors import Cancelled, EdgespecError

_HOPELESS = 4.0
"""With a single row so many times slower than another's nothing can be made up for."""
_SECONDS = 3.0
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
    path: Path, options: LoadOptions, progress: Callable[[str, float], None], seconds: float = _SECONDS
) -> tuple[Candidate, ...]:
    """Measure every backend that can load this model without a conversion, one after the other, and keep the
    result for `chosen`. Each takes its loading, its measurement and about `seconds` more.

    Raises Cancelled, or what `progress` raises; then nothing is kept.
    """
    found: list[Candidate] = []
    for place in able(path):
        fastest = min((c.single for c in found if c.excluded is None), default=math.inf)

        def step(share: float, name: str = place.backend) -> None:
            progress(f"measuring {name}", share)

        step(0.0)
        found.append(_measured(place, options, step, fastest * _HOPELESS, seconds))
    _store(path).put(_KEPT, [asdict(candidate) for candidate in found])
    return tuple(found)


def _measured(
    place: Place, options: LoadOptions, step: Callable[[float], None], limit: float, seconds: float
) -> Candidate:
    try:
        with _loaded(place, options) as model:
            single = _single(model)
            if single > limit:
                return Candidate(place.backend, single, excluded=_too_slow(single))
            found = _survey(model, place.path, step, seconds)
            single = (found.seconds or {1: single})[1]
            relative = CostModel(found.seconds or {1: single}).relative
            rate = attainable_rate(relative, found.exact) / single
            return Candidate(place.backend, single, rate, max(found.exact))
    except Cancelled:
        raise
    except EdgespecError as error:
        return Candidate(place.backend, excluded=str(error))


def _too_slow(single: float) -> str:
    return f"a single row takes {single * 1e3:.0f} ms, too long for speculation to make up"


@contextlib.contextmanager
def _loaded(place: Place, options: LoadOptions) -> Iterator[LoadedModel]:
    model = adapter(place.backend).load(place.path, replace(options, exact=True))
    try:
        yield model
    finally:
        model.backend.close()


def _single(model: LoadedModel) -> float:
    """Seconds of a single row, the least of a few."""
    return draft_seconds(model.backend, sample_text(model))


def _survey(model: LoadedModel, path: Path, step: Callable[[float], None], seconds: float) -> Measured:
    """What `edgespec run` will find measured, too."""
    stored = Measurements(fingerprint(path), model.info.settings)
    survey = Survey(model.backend, sample_text(model), stored)
    survey.renew(seconds, step)
    return survey.known


def _store(path: Path) -> Measurements:
    device: dict[str, Any] = {"what": "choice of a backend", "cpu": cpu_name(), "cores": usable_cores()}
    return Measurements(fingerprint(path), device)
