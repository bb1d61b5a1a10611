"""Model files: what the user meant, where it is on this machine, and how it gets there."""

from __future__ import annotations

from pathlib import Path

from edgespec.hub import catalogue, gguf, local, shards
from edgespec.hub.catalogue import DEFAULT, Card, cards
from edgespec.hub.gguf import Header
from edgespec.hub.obtain import obtain
from edgespec.hub.quantization import USUAL
from edgespec.hub.reference import LocalName, RemoteModel, parse, unknown
from edgespec.hub.store import Notify, Progress

__all__ = ["Card", "Header", "Notify", "Progress", "cards", "default_card", "resolve"]


def resolve(reference: str | None, *, progress: Progress | None = None, notify: Notify | None = None) -> Path:
    """A path to a checked model file: found, or downloaded once. None is the default model.

    `progress(done_bytes, total_bytes, label)` is called often during a download and may raise to
    stop it; `notify(line)` gets single lines for a person. A path is returned as it was given, that of
    a later shard as the first one's. Models in the stores of other programs are used where they are.
    A folder that holds a model is not looked into further. Raises UsageError, ModelFileError,
    UnsupportedModelError or DownloadError.
    """
    path = _path(reference, progress or _silent, notify or _silent)
    if _is_model_folder(path):
        return path
    gguf.check(path)
    return shards.first(path)


def _is_model_folder(path: Path) -> bool:
    """As mlx-lm, onnxruntime-genai or optimum make it: weights beside a configuration."""
    return any((path / name).is_file() for name in ("config.json", "genai_config.json", "model.onnx"))


def _path(reference: str | None, progress: Progress, notify: Notify) -> Path:
    match parse(reference, cards()):
        case Path() as path:
            return path
        case LocalName() as name:
            models = local.found()
            if found := local.find(name, models):
                return found.path
            raise unknown(name.name, cards(), [model.name for model in models])
        case meant:
            return _elsewhere(meant, notify) or obtain(meant, progress, notify)


def _elsewhere(meant: Card | RemoteModel, notify: Notify) -> Path | None:
    """The model in the store of another program, unless edgespec's has it."""
    found = local.find(meant, local.found())
    if found is None or found.place.kind == "edgespec":
        return None
    free = isinstance(meant, RemoteModel) and not meant.quant and not meant.file
    if free and found.quantization != USUAL:
        notify(f"{meant}: using {found.quantization or found.path.name}, which is on this machine")
    return found.path


def default_card() -> Card:
    """The card of the model that is used when none is named."""
    return next(card for card in catalogue.cards() if card.name == DEFAULT)


def _silent(*_: object) -> None:
    pass
