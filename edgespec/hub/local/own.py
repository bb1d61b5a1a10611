"""edgespec's own store: files of cards at the top, others as `org/repo/file.gguf`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from edgespec.hub.local.found import Found, Place, in_repository, walk
from edgespec.hub.quantization import groups
from edgespec.hub.store import root

_DEPTH = 4


def places() -> tuple[Place, ...]:
    return (Place("edgespec", root()),)


def scan(place: Place) -> Iterator[Found]:
    """The models of a tree of repositories."""
    repositories: dict[str, dict[str, Path]] = defaultdict(dict)
    loose: list[str] = []
    for inside in walk(place.root, _DEPTH):
        parts = inside.split("/", 2)
        if len(parts) == 3:
            repositories[f"{parts[0]}/{parts[1]}"][parts[2]] = place.root / inside
        else:
            loose.append(inside)
    for repo, files in repositories.items():
        yield from in_repository(repo, files, place)
    for group in groups(loose):
        paths = tuple(place.root / name for name in group.files)
        yield Found(group.first.removesuffix(".gguf"), paths, place, group.quantization)
