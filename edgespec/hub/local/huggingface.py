"""The cache of huggingface_hub: `models--org--repo/snapshots/REVISION/file`, links into `blobs`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from edgespec.hub.local.found import Found, Place, in_repository, walk

_PREFIX = "models--"
_DEPTH = 3


def places() -> tuple[Place, ...]:
    """The folder that huggingface_hub uses, from the same variables."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if chosen := os.environ.get(name):
            return (Place("huggingface", _expanded(chosen)),)
    home = os.environ.get("HF_HOME") or str(
        Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    )
    return (Place("huggingface", _expanded(home) / "hub"),)


def _expanded(text: str) -> Path:
    return Path(os.path.expandvars(os.path.expanduser(text)))  # noqa: PTH111 - Path's raises without a home


def scan(place: Place) -> Iterator[Found]:
    """The models of every repository; of several revisions the main one, else the newest, counts."""
    with suppress(OSError):
        for entry in sorted(os.scandir(place.root), key=lambda entry: entry.name):
            repo = entry.name.removeprefix(_PREFIX).replace("--", "/", 1)
            if entry.name.startswith(_PREFIX) and "/" in repo:
                files: dict[str, Path] = {}
                for snapshot in _snapshots(Path(entry.path)):
                    for inside in walk(snapshot, _DEPTH):
                        files.setdefault(inside, snapshot / inside)
                yield from in_repository(repo, files, place)


def folder(repo: str, revision: str | None = None) -> Path | None:
    """The snapshot of `org/name` that is a model folder: a configuration beside weights, none missing."""
    for place in places():
        for snapshot in _snapshots(place.root / (_PREFIX + repo.replace("/", "--"))):
            if revision in (None, snapshot.name) and _is_whole(snapshot):
                return snapshot
    return None


def _is_whole(snapshot: Path) -> bool:
    weights = {path.name for path in snapshot.glob("model*.safetensors") if path.is_file()}
    try:
        index = json.loads((snapshot / "model.safetensors.index.json").read_text("utf-8"))
        wanted = set(index["weight_map"].values())
    except FileNotFoundError:
        wanted = set()
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return False
    return (snapshot / "config.json").is_file() and bool(weights) and wanted <= weights


def _snapshots(repo: Path) -> list[Path]:
    """The revisions that are here, the one of the main branch first."""
    main = ""
    with suppress(OSError, UnicodeDecodeError):
        main = (repo / "refs/main").read_text(encoding="utf-8").strip()
    try:
        there = sorted(os.scandir(repo / "snapshots"), key=lambda entry: entry.stat().st_mtime, reverse=True)
    except OSError:
        return []
    return sorted((Path(entry.path) for entry in there), key=lambda path: path.name != main)
