"""Models that are on this machine already, in edgespec's store and in those of other programs."""

from __future__ import annotations

from collections.abc import Iterator

from edgespec.hub.local import huggingface, lmstudio, ollama, own
from edgespec.hub.local.find import find, fits, titled
from edgespec.hub.local.found import Found, Place
from edgespec.hub.local.index import Facts, Listed, facts_of, listed, read_facts
from edgespec.hub.local.leftovers import Leftover, leftovers

__all__ = [
    "Facts",
    "Found",
    "Leftover",
    "Listed",
    "Place",
    "facts_of",
    "find",
    "fits",
    "found",
    "leftovers",
    "listed",
    "places",
    "read_facts",
    "titled",
]

_STORES = (own, huggingface, lmstudio, ollama)


def places() -> tuple[Place, ...]:
    """The stores that exist, edgespec's own first."""
    return tuple(place for store in _STORES for place in store.places() if place.root.is_dir())


def found() -> tuple[Found, ...]:
    """Every model in them, in the order of the stores; a file that several share is listed once."""
    seen: set[tuple[int, int]] = set()
    models: list[Found] = []
    for model in _all():
        key = _identity(model)
        if key is None or key not in seen:
            models.append(model)
        if key is not None:
            seen.add(key)
    return tuple(models)


def _all() -> Iterator[Found]:
    for store in _STORES:
        for place in store.places():
            yield from store.scan(place)


def _identity(model: Found) -> tuple[int, int] | None:
    try:
        status = model.path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None
