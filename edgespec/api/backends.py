"""Which backend runs a model: the one that was asked for, or the first that can."""

from __future__ import annotations

from pathlib import Path

from edgespec.backends.registry import ADAPTERS, adapter
from edgespec.errors import BackendError, UnsupportedModelError, UsageError

AUTO = "auto"


def check_name(name: str) -> None:
    """Raises UsageError for a backend that does not exist, BackendError for one that is not installed."""
    if name == AUTO:
        return
    if name not in ADAPTERS:
        raise UsageError(f"unknown backend {name!r}: use {AUTO}, {', '.join(ADAPTERS)}")
    if lacking := adapter(name).missing():
        raise BackendError(lacking)


def able(path: Path) -> list[str]:
    """The installed backends that can load this file or folder as it is, the usual one first."""
    return [name for name in ADAPTERS if obstacle(name, path) is None]


def obstacle(name: str, path: Path) -> str | None:
    """Why a backend cannot load this file or folder as it is; None where nothing is known against it."""
    candidate = adapter(name)
    return candidate.missing() or candidate.refuses(path)


def pick(path: Path, asked: str, preferred: str | None = None) -> str:
    """The backend for a file or folder: `asked`, else `preferred` where it can, else the first that can.

    Raises UsageError, BackendError or UnsupportedModelError.
    """
    check_name(asked)
    if asked != AUTO:
        if reason := adapter(asked).refuses(path):
            raise UnsupportedModelError(reason)
        return asked
    if preferred is not None and obstacle(preferred, path) is None:
        return preferred
    for name in ADAPTERS:
        if obstacle(name, path) is None:
            return name
    raise UnsupportedModelError(_nobody(path))


def _nobody(path: Path) -> str:
    """Installing one that would take it is the way out, if there is one."""
    for name in ADAPTERS:
        lacking = adapter(name).missing()
        if lacking and adapter(name).refuses(path) is None:
            return f"{path.name}: {lacking}"
    reasons = dict.fromkeys(filter(None, (obstacle(name, path) for name in ADAPTERS)))
    return f"no backend can load {path.name}: {'; '.join(reasons)}"
