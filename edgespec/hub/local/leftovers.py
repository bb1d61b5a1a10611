"""Downloads that never came to their end, in edgespec's store and in those of other programs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgespec.hub.local.found import Place

STALE = 24 * 3600.0
"""Seconds after which nobody is expected to go on with a download."""
_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Leftover:
    """`size`: bytes on disk; `age`: seconds since the last of them came."""

    path: Path
    place: Place
    size: int
    age: float


def leftovers(place: Place, now: float | None = None) -> tuple[Leftover, ...]:
    """The partial downloads in a store that nobody has gone on with for a day, by path."""
    now = time.time() if now is None else now
    found: list[Leftover] = []
    for entry in _files(place.root, _DEPTH):
        if not _is_partial(place, entry.name):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if now - status.st_mtime >= STALE:
            found.append(Leftover(Path(entry.path), place, status.st_size, now - status.st_mtime))
    return tuple(sorted(found, key=lambda leftover: str(leftover.path)))


def _is_partial(place: Place, name: str) -> bool:
    match place.kind:
        case "huggingface":
            return name.endswith(".incomplete")
        case "ollama":
            return name.startswith("sha256-") and "-partial" in name
        case "lmstudio":
            return name.endswith(".part") or name.startswith("downloading_")
        case "edgespec":
            return name.startswith(".") and name.endswith(".part")


def _files(folder: Path | str, depth: int) -> Iterator[os.DirEntry[str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _files(entry.path, depth - 1)
        else:
            yield entry
