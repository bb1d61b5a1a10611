"""Which backend runs a model: the one that was asked for, that measured best, or the first that can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgespec.backends.registry import ADAPTERS, adapter
from edgespec.errors import BackendError, UnsupportedModelError, UsageError

AUTO = "auto"
_CONVERTED = ("onnx",)
"""Backends that a GGUF file is converted for when they are asked for by name."""


def _ignore(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Place:
    """Which backend loads what: the model's own file or folder, or what was made of it for the backend."""

    backend: str
    path: Path


def check_name(name: str) -> None:
    """Raises UsageError for a backend that does not exist, BackendError for one that is not installed."""
    if name == AUTO:
        return
    if name not in ADAPTERS:
        raise UsageError(f"unknown backend {name!r}: use {AUTO}, {', '.join(ADAPTERS)}")
    if lacking := adapter(name).missing():
        raise BackendError(lacking)


def able(path: Path) -> list[Place]:
    """Every installed backend that can load this model without a conversion, the usual one first."""
    places = (ready(name, path) for name in ADAPTERS)
    return [place for place in places if place is not None]


def ready(name: str, path: Path) -> Place | None:
    """The backend with the model as it is, or as it was converted before; None where neither can be."""
    if adapter(name).missing():
        return None
    if adapter(name).refuses(path) is None:
        return Place(name, path)
    from edgespec.convert import FORMS, prepared

    made = prepared(path, name) if name in FORMS and path.is_file() else None
    return None if made is None else Place(name, made)


def convertible(path: Path) -> list[str]:
    """The installed backends that could load this model after a conversion that was not made yet."""
    from edgespec.convert import FORMS

    if not path.is_file():
        return []
    return [name for name in FORMS if adapter(name).missing() is None and ready(name, path) is None]


def pick(
    path: Path,
    asked: str,
    preferred: str | None = None,
    *,
    notify: Callable[[str], None] = _ignore,
    progress: Callable[[float], None] = _ignore,
) -> Place:
    """The backend for a model: `asked`, else `preferred` where it can, else the first that can.

    What was asked for may need a conversion, which is made once and told. Raises UsageError, BackendError,
    UnsupportedModelError, ConversionError or ModelFileError.
    """
    check_name(asked)
    if asked != AUTO:
        return ready(asked, path) or _made(path, asked, notify, progress)
    for name in (preferred, *ADAPTERS):
        if name in ADAPTERS and (place := ready(name, path)):
            return place
    raise UnsupportedModelError(_nobody(path))


def _made(
    path: Path, backend: str, notify: Callable[[str], None], progress: Callable[[float], None]
) -> Place:
    if backend not in _CONVERTED or not path.is_file():
        raise UnsupportedModelError(adapter(backend).refuses(path))
    from edgespec.convert import prepare

    return Place(backend, prepare(path, backend, notify=notify, progress=progress))


def _nobody(path: Path) -> str:
    """Installing one that would take it is the way out, if there is one."""
    lacking = {name: adapter(name).missing() for name in ADAPTERS}
    reasons = {name: adapter(name).refuses(path) for name in ADAPTERS}
    for name, missing in lacking.items():
        if missing and reasons[name] is None:
            return f"{path.name}: {missing}"
    why = dict.fromkeys(filter(None, (lacking[name] or reasons[name] for name in ADAPTERS)))
    return f"no backend can load {path.name}: {'; '.join(why)}"
