"""Model files: what the user meant, where it is on this machine, and how it gets there."""

from __future__ import annotations

from pathlib import Path

from edgespec.hub import catalogue, gguf
from edgespec.hub.catalogue import DEFAULT, Card, cards
from edgespec.hub.gguf import Header
from edgespec.hub.obtain import obtain
from edgespec.hub.reference import LocalName, RemoteModel, parse, unknown
from edgespec.hub.store import Notify, Progress

__all__ = ["Card", "Header", "Notify", "Progress", "cards", "default_card", "resolve"]


def resolve(reference: str | None, *, progress: Progress | None = None, notify: Notify | None = None) -> Path:
    """A path to a checked model file: found, or downloaded once. None is the default model.

    `progress(done_bytes, total_bytes, label)` is called often during a download and may raise to
    stop it; `notify(line)` gets single lines for a person. A path is returned as it was given.
    A folder that holds a model is not looked into further. Raises UsageError, ModelFileError,
    UnsupportedModelError or DownloadError.
    """
    path = _path(reference, progress or _silent, notify or _silent)
    if not _is_model_folder(path):
        gguf.check(path)
    return path


def _is_model_folder(path: Path) -> bool:
    """As mlx-lm, onnxruntime-genai or optimum make it: weights beside a configuration."""
    return any((path / name).is_file() for name in ("config.json", "genai_config.json", "model.onnx"))


def _path(reference: str | None, progress: Progress, notify: Notify) -> Path:
    match parse(reference, cards()):
        case Path() as path:
            return path
        case Card() as card:
            return obtain(card, progress, notify)
        case RemoteModel() as remote:
            return obtain(remote, progress, notify)
        case LocalName(name):
            raise unknown(name, cards())


def default_card() -> Card:
    """The card of the model that is used when none is named."""
    return next(card for card in catalogue.cards() if card.name == DEFAULT)


def _silent(*_: object) -> None:
    pass
