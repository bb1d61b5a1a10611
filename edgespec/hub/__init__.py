"""Model files: what the user meant, where it is on this machine, and how it gets there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from edgespec.errors import ModelFileError, UsageError
from edgespec.hub import catalogue, gguf, local, removal, shards
from edgespec.hub.catalogue import DEFAULT, Card, cards
from edgespec.hub.gguf import Header
from edgespec.hub.obtain import obtain
from edgespec.hub.quantization import USUAL
from edgespec.hub.reference import LocalName, RemoteModel, closest, parse, unknown, visible
from edgespec.hub.removal import Removed
from edgespec.hub.store import Notify, Progress

__all__ = [
    "Card",
    "Header",
    "Notify",
    "Opened",
    "Progress",
    "Removed",
    "cards",
    "closest",
    "default_card",
    "files",
    "locate",
    "opened",
    "remove",
    "resolve",
]


def resolve(reference: str | None, *, progress: Progress | None = None, notify: Notify | None = None) -> Path:
    """A path to a checked model file: found, or downloaded once. None is the default model.

    `progress(done_bytes, total_bytes, label)` is called often during a download and may raise to
    stop it; `notify(line)` gets single lines for a person. A path is returned as it was given, that of
    a later shard as the first one's. Models in the stores of other programs are used where they are.
    A folder that holds a model is not looked into further. Raises UsageError, ModelFileError,
    UnsupportedModelError or DownloadError.
    """
    return opened(reference, progress=progress, notify=notify).path


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that may be loaded from `path`; `header` None is a folder, which nobody has looked into."""

    path: Path
    header: Header | None


def opened(
    reference: str | None, *, progress: Progress | None = None, notify: Notify | None = None
) -> Opened:
    """As `resolve`, with the header that was checked."""
    path = _path(reference, progress or _silent, notify or _silent)
    if _is_model_folder(path):
        return Opened(path, None)
    header = gguf.check(path)
    return Opened(shards.first(path), header)


def locate(reference: str) -> Path | Card:
    """As `resolve`, but nothing is fetched: the card of a model that is not here, else its first file.

    The file is not checked. Raises UsageError or ModelFileError.
    """
    meant = parse(reference, cards())
    if isinstance(meant, Path):
        return files(meant)[0]
    models = local.found()
    found = local.find(meant, models)
    if found is not None:
        return found.path
    match meant:
        case Card():
            return meant
        case LocalName(name):
            raise unknown(name, cards(), [model.name for model in models])
        case RemoteModel():
            raise ModelFileError(f"{meant} is not on this machine: edgespec pull {meant} fetches it")


def remove(reference: str) -> Removed:
    """Delete a model from edgespec's store. Raises UsageError or ModelFileError."""
    models = local.found()
    where = locate(reference)
    if isinstance(where, Card):
        raise ModelFileError(f"{where.name} is not on this machine")
    found = next((model for model in models if where in model.files), None)
    if found is None:
        raise UsageError(f"{visible(where)} is in no store: delete the file yourself")
    name = local.titled([found], cards())[0].name
    return removal.remove(replace(found, name=name))


def files(path: Path) -> tuple[Path, ...]:
    """All files of the model, the one to load first. Raises ModelFileError naming a missing part."""
    return shards.siblings(path)


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
            return _elsewhere(meant, notify) or _folder(meant) or obtain(meant, progress, notify)


def _elsewhere(meant: Card | RemoteModel, notify: Notify) -> Path | None:
    """The model in the store of another program, unless edgespec's has it."""
    found = local.find(meant, local.found())
    if found is None or found.place.kind == "edgespec":
        return None
    if isinstance(meant, Card) and not local.fits(meant, found):
        notify(f"{meant.name}: using the one that {found.place.title} has")
    free = isinstance(meant, RemoteModel) and not meant.quant and not meant.file
    if free and found.quantization != USUAL:
        notify(f"{meant}: using {found.quantization or found.path.name}, which is on this machine")
    return found.path


def _folder(meant: Card | RemoteModel) -> Path | None:
    """A repository without quantisations, such as MLX's are, where Hugging Face's cache has it."""
    if isinstance(meant, Card) or meant.quant or meant.file or local.find(meant, local.found()):
        return None
    return local.huggingface.folder(meant.repo, meant.revision)


def default_card() -> Card:
    """The card of the model that is used when none is named."""
    return next(card for card in catalogue.cards() if card.name == DEFAULT)


def _silent(*_: object) -> None:
    pass
