"""The model on disk that a reference means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from edgespec.errors import UsageError
from edgespec.hub.catalogue import Card
from edgespec.hub.local.found import Found
from edgespec.hub.quantization import choose, normal
from edgespec.hub.reference import LocalName, RemoteModel, visible


def find(meant: Card | RemoteModel | LocalName, models: Sequence[Found]) -> Found | None:
    """The first that is meant, in the order of the stores; None if it has to be fetched.

    Raises UsageError listing them when a name means several.
    """
    match meant:
        case Card():
            return _of_card(meant, models)
        case RemoteModel():
            return _remote(meant, models)
        case LocalName(name):
            return _named(name, models)


def _of_card(card: Card, models: Sequence[Found]) -> Found | None:
    """The card's own, else one of its name: that is how Ollama calls the same model."""
    typed = (typed for name in card.names for typed in (name, f"{name}:latest"))
    same = [model for name in typed for model in _by_name(name, models)]
    return next((model for model in models if fits(card, model)), same[0] if same else None)


def fits(card: Card, model: Found) -> bool:
    """Is it the card's model, by checksum, its own file, or repository with file or quantisation?"""
    if card.sha256 and model.sha256 == card.sha256:
        return True
    if model.repo is None:
        return model.place.kind == "edgespec" and model.path.name == card.file and len(model.files) == 1
    for source in card.sources:
        repo, file = getattr(source, "repo", None), getattr(source, "file", None)
        if repo is not None and repo.casefold() == model.repo.casefold():
            return file in model.inside if file else normal(card.quantization or "") == model.quantization
    return False


def _remote(meant: RemoteModel, models: Sequence[Found]) -> Found | None:
    whole = str(meant) if meant.quant else f"{meant}:latest"
    if meant.file is None and (same := _by_name(whole, models)):
        return same[0]
    stores: dict[object, dict[str, Found]] = defaultdict(dict)
    repo = f"{meant.repo}@{meant.revision}" if meant.revision else meant.repo
    for model in models:
        if model.repo is not None and model.repo.casefold() == repo.casefold():
            stores[model.place] |= dict.fromkeys(model.inside, model)
    for files in stores.values():
        with suppress(UsageError):
            return files[choose(meant, files).first]
    return None


def _named(name: str, models: Sequence[Found]) -> Found | None:
    """A name as `edgespec ls` shows it, one of Ollama's without `:latest`, or the name of a file."""
    by_name = _by_name(name, models) or _by_name(f"{name}:latest", models)
    if by_name:
        return by_name[0]
    wanted = name.casefold().removesuffix(".gguf")
    same = [model for model in models if model.path.name.casefold().removesuffix(".gguf") == wanted]
    if len(same) > 1:
        several = ", ".join(sorted(visible(model.name) for model in same)[:4])
        raise UsageError(f"{visible(name)} may be several models: give one of {several}")
    return same[0] if same else None


def titled(models: Sequence[Found], cards: Sequence[Card]) -> tuple[Found, ...]:
    """The models with the catalogue's names where it has them."""
    names = {id(model): card.name for card in cards for model in models if fits(card, model)}
    return tuple(replace(model, name=names.get(id(model), model.name)) for model in models)


def _by_name(name: str, models: Sequence[Found]) -> list[Found]:
    return [model for model in models if model.name.casefold() == name.casefold()]
