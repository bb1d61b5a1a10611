"""The models on this machine: where they are, how much room is left, which are broken or half fetched."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

from edgespec import hub
from edgespec.doctor.sections import Finding, Section
from edgespec.doctor.subject import Subject
from edgespec.hub import local, removal
from edgespec.hub.local import Listed
from edgespec.hub.store import amount, root

_LITTLE_ROOM = 5_000_000_000
"""Bytes; a model of everyday size would not fit any more."""


def stores(subject: Subject) -> Section:
    """Headers and folders are read, nothing else."""
    models = local.listed(local.titled(local.found(), hub.cards()))
    places = local.places()
    partial = [leftover for place in places for leftover in local.leftovers(place)]
    free = _free(root())
    facts = [
        (place.title, f"{_told([m for m in models if m.found.place == place])} in {place.root}")
        for place in places
    ]
    facts.append(("free space", f"{amount(free)} for {root()}" if free is not None else "unknown"))
    findings = [_broken(model) for model in models if model.facts.condition == "broken"]
    findings += [
        Finding(f"{left.path.name} is a download that ended {left.age / 86400:.0f} days ago.", _delete(left))
        for left in partial
    ]
    if free is not None and free < _LITTLE_ROOM:
        findings.append(_little_room(free, models))
    figures = {
        "stores": [{"kind": place.kind, "path": str(place.root)} for place in places],
        "free_bytes": free,
        "models": len(models),
        "broken": [str(model.found.path) for model in models if model.facts.condition == "broken"],
        "partial": [{"path": str(left.path), "bytes": left.size} for left in partial],
    }
    return Section("Models", tuple(facts), findings=tuple(findings), figures=figures)


def _told(models: list[Listed]) -> str:
    count = "1 model" if len(models) == 1 else f"{len(models)} models"
    return f"{count}, {amount(sum(model.facts.size for model in models))}"


def _free(folder: Path) -> int | None:
    """Bytes that are free where the folder is, or will be."""
    for path in (folder, *folder.parents):
        try:
            return shutil.disk_usage(path).free
        except OSError:
            continue
    return None


def _broken(model: Listed) -> Finding:
    name = shlex.quote(model.name)
    if model.found.place.kind != "edgespec":
        fix = removal.command(model.found)
    elif model.found.repo or model.name in {card.name for card in hub.cards()}:
        fix = f"edgespec rm {name} && edgespec pull {name}"
    else:
        fix = f"edgespec rm {name}"
    return Finding(f"{model.name} is broken: {model.facts.problem}", fix)


def _delete(left: local.Leftover) -> str:
    if left.place.kind == "huggingface":
        return "hf cache prune"
    return f"rm {shlex.quote(str(left.path))}"


def _little_room(free: int, models: Iterable[Listed]) -> Finding:
    ours = [model for model in models if model.found.place.kind == "edgespec"]
    largest = max(ours, key=lambda model: model.facts.size, default=None)
    fix = f"edgespec rm {shlex.quote(largest.name)}" if largest else "EDGESPEC_MODELS=/another/folder"
    freed = f"; {largest.name} takes {amount(largest.facts.size)}" if largest else ""
    return Finding(f"Only {amount(free)} are free for models{freed}.", fix)
