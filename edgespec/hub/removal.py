"""Deleting a model from edgespec's own store."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from edgespec.errors import ModelFileError, UsageError
from edgespec.hub.local.found import Found
from edgespec.hub.reference import visible


@dataclass(frozen=True, slots=True)
class Removed:
    """`size`: bytes that are free now."""

    name: str
    size: int


def remove(model: Found) -> Removed:
    """Delete all files of the model and what its downloads left.

    Raises UsageError with the right command when it is in the store of another program, ModelFileError
    when the disk refuses.
    """
    if model.place.kind != "edgespec":
        raise UsageError(
            f"{visible(model.name)} is kept by {model.place.title}: delete it with `{command(model)}`"
        )
    freed = 0
    for path in (*model.files, *_leftovers(model.files)):
        try:
            size = path.lstat().st_size
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ModelFileError(f"{visible(path)} cannot be deleted ({error.strerror or error})") from None
        freed += size
    _prune(model.path.parent, model.place.root)
    return Removed(model.name, freed)


def command(model: Found) -> str:
    """What deletes a model that another program keeps."""
    match model.place.kind:
        case "ollama":
            return f"ollama rm {visible(model.name)}"
        case "huggingface":
            return f"hf cache rm model/{model.repo}"
        case _:
            return f"rm {shlex.join(visible(path) for path in model.files)}"


def _leftovers(files: Sequence[Path]) -> list[Path]:
    """Hidden files beside the model's that its downloads made."""
    found: list[Path] = []
    for path in files:
        with suppress(OSError):
            found += [
                other
                for other in path.parent.iterdir()
                if other.name.startswith(f".{path.name}.") and other.suffix in (".part", ".lock")
            ]
    return found


def _prune(folder: Path, root: Path) -> None:
    """Folders that are empty now."""
    while folder != root and root in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
