"""Model cards: one TOML file a model, in `models/` of a checkout and in the installed package."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgespec.errors import ModelFileError

DEFAULT = "smollm2:135m"


@dataclass(frozen=True, slots=True)
class HuggingFaceSource:
    """A file in a Hugging Face repository; `revision` None is the main branch."""

    repo: str
    file: str
    revision: str | None = None

    @property
    def label(self) -> str:
        return "Hugging Face"


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A file inside a Python package. `size`: bytes of the wheel, where known."""

    package: str
    version: str
    member: str
    size: int | None = None

    @property
    def label(self) -> str:
        return f"Python package {self.package}"


ModelSource = HuggingFaceSource | WheelSource
"""One file whose size and checksum are known."""


@dataclass(frozen=True, slots=True)
class RepositorySource:
    """A Hugging Face repository whose list gives sizes and checksums when the model is fetched.

    `file` None: the file of the card's quantization.
    """

    repo: str
    file: str | None = None
    revision: str | None = None

    @property
    def label(self) -> str:
        return "Hugging Face"


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of one model. `size`: bytes; `sources`: in the order in which they are tried.

    Facts that nobody has checked are None. With `sha256`, `file` is the model's name in the store and `size`
    is exact; without, the size is rounded and the one source is a repository. `draft`: the catalogue name of
    a model that may draft for it, or "none" where none suits and only copying helps.
    """

    name: str
    title: str
    sources: tuple[ModelSource | RepositorySource, ...]
    file: str | None = None
    size: int | None = None
    sha256: str | None = None
    aliases: tuple[str, ...] = ()
    architecture: str | None = None
    parameters: int | None = None
    licence: str | None = None
    context: int | None = None
    quantization: str | None = None
    draft: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


def folder() -> Path:
    """Where the cards are: beside this file when installed, `models/` in a checkout."""
    installed = Path(__file__).parent / "catalogue"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "models"


def cards(where: Path | None = None) -> tuple[Card, ...]:
    """Every card, ordered by file name. Raises ModelFileError if one is malformed or two share a name."""
    found = tuple(load(path) for path in sorted((where or folder()).glob("*.toml")))
    if not found:
        raise ModelFileError(f"no model cards in {where or folder()}: install edgespec again")
    owner: dict[str, Card] = {}
    for card in found:
        for key in (*card.names, *([f"file {card.file}"] if card.file else [])):
            if (other := owner.setdefault(key.casefold(), card)) is not card:
                raise ModelFileError(f"model cards {other.name} and {card.name} share {key!r}")
    return found


def load(path: Path) -> Card:
    """One card from its TOML file. Raises ModelFileError naming the file and the field."""
    try:
        return parse(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ModelFileError(f"model card {path.name}: {error}") from None


def parse(data: Mapping[str, object]) -> Card:
    """A card from the table of its file. Raises ValueError naming the field."""
    fields = _Fields(data, "")
    sha256 = fields.maybe_text("sha256")
    card = Card(
        name=fields.text("name"),
        title=fields.text("title"),
        sources=tuple(
            _source(i, table, sha256 is not None) for i, table in enumerate(fields.items("sources"), 1)
        ),
        file=fields.text("file") if sha256 else None,
        size=fields.count("size") if sha256 else fields.maybe_count("size"),
        sha256=sha256,
        aliases=tuple(_alias(item) for item in fields.items("aliases", required=False)),
        architecture=fields.maybe_text("architecture"),
        parameters=fields.maybe_count("parameters"),
        licence=fields.maybe_text("licence"),
        context=fields.maybe_count("context"),
        quantization=fields.maybe_text("quantization"),
        draft=fields.maybe_text("draft"),
    )
    fields.finish()
    _check(card)
    return card


def _check(card: Card) -> None:
    if card.sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", card.sha256):
        raise ValueError("sha256 must be 64 lower-case hexadecimal digits")
    if card.file is not None and (Path(card.file).name != card.file or card.file.startswith(".")):
        raise ValueError("file must be a plain file name")
    if not card.sources:
        raise ValueError("sources must name at least one source")
    if card.sha256 is None and len(card.sources) > 1:
        raise ValueError("sources must be one repository where there is no sha256")


def _source(number: int, table: object, pinned: bool) -> ModelSource | RepositorySource:
    where = f"sources[{number}]"
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table")
    fields = _Fields(table, f"{where}.")
    source: ModelSource | RepositorySource
    match kind := fields.text("kind"):
        case "huggingface" if pinned:
            source = HuggingFaceSource(
                fields.text("repo"), fields.text("file"), fields.maybe_text("revision")
            )
        case "huggingface":
            source = RepositorySource(
                fields.text("repo"), fields.maybe_text("file"), fields.maybe_text("revision")
            )
        case "wheel" if pinned:
            source = WheelSource(
                fields.text("package"),
                fields.text("version"),
                fields.text("member"),
                fields.maybe_count("size"),
            )
        case "wheel":
            raise ValueError(f"{where} is a wheel, which needs file, size and sha256 on the card")
        case _:
            raise ValueError(f"{where}.kind {kind!r} is not huggingface or wheel")
    fields.finish()
    return source


def _alias(item: object) -> str:
    if not isinstance(item, str) or not item:
        raise ValueError("aliases must be a list of names")
    return item


class _Fields:
    """Typed reading of one table; `finish` refuses what nobody asked for."""

    def __init__(self, data: Mapping[str, object], prefix: str) -> None:
        self._left = dict(data)
        self._prefix = prefix

    def text(self, key: str) -> str:
        if (value := self.maybe_text(key)) is None:
            raise ValueError(f"{self._prefix}{key} is missing")
        return value

    def maybe_text(self, key: str) -> str | None:
        value = self._left.pop(key, None)
        if value is None or (isinstance(value, str) and value):
            return value
        raise ValueError(f"{self._prefix}{key} must be a text that is not empty")

    def count(self, key: str) -> int:
        if (value := self.maybe_count(key)) is None:
            raise ValueError(f"{self._prefix}{key} is missing")
        return value

    def maybe_count(self, key: str) -> int | None:
        value = self._left.pop(key, None)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value
        raise ValueError(f"{self._prefix}{key} must be a whole number above 0")

    def items(self, key: str, *, required: bool = True) -> list[object]:
        value = self._left.pop(key, None)
        if isinstance(value, list):
            return value
        if value is None and not required:
            return []
        raise ValueError(f"{self._prefix}{key} must be a list")

    def finish(self) -> None:
        if self._left:
            raise ValueError(f"unknown field {self._prefix}{min(self._left)}")
