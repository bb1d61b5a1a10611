"""When a model was last loaded: an empty file for each, whose time is that."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from edgespec.hub import cachedir


def mark(path: Path) -> None:
    """The model is being loaded now. Where nothing can be written nothing is."""
    with suppress(OSError):
        stamp = _stamp(path)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()


def when(path: Path) -> float | None:
    """Seconds since the epoch, None if it was never loaded here."""
    try:
        return _stamp(path).stat().st_mtime
    except OSError:
        return None


def _stamp(path: Path) -> Path:
    name = hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return cachedir.folder() / "used" / name
