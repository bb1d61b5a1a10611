"""What the user typed as a model: a path, a name of the catalogue, a repository, a name of a local store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgespec.errors import ModelFileError, UsageError
from edgespec.hub.catalogue import DEFAULT, Card

_HOSTS = ("https://huggingface.co/", "http://huggingface.co/", "https://hf.co/", "huggingface.co/", "hf.co/")
_PREFIXES = (*_HOSTS, "hf:")
_PART = r"[A-Za-z0-9](?:[\w.-]*\w)?"
_REPOSITORY = re.compile(rf"({_PART}/{_PART})(?:@([^:\s]+))?(?::([\w.-]+))?", re.ASCII)
_FILE = re.compile(
    rf"({_PART}/{_PART})(?:@([^/:\s]+))?/(?:(?:blob|resolve)/([^/\s]+)/)?(.+\.gguf)", re.ASCII | re.I
)


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model in a Hugging Face repository `org/name`.

    `quant` is in upper case. With a `file` (its path inside the repository) nothing is left to choose;
    `revision` None is the main branch.
    """

    repo: str
    quant: str | None = None
    file: str | None = None
    revision: str | None = None

    def __str__(self) -> str:
        at = f"@{self.revision}" if self.revision else ""
        if self.file:
            return f"hf:{self.repo}{at}/{self.file}"
        return f"{self.repo}{at}" + (f":{self.quant}" if self.quant else "")


@dataclass(frozen=True, slots=True)
class LocalName:
    """A name that no card has: perhaps that of a model in a store on this machine."""

    name: str


Reference = Path | Card | RemoteModel | LocalName


def parse(text: str | None, cards: Sequence[Card]) -> Reference:
    """What is meant; None is the default card. Nothing but the existence of a path is looked up.

    A file wins over a catalogue name, a catalogue name over a folder. Symlinks stay as they are.
    Raises UsageError for what can be no name, ModelFileError for a path that is not there.
    """
    wanted = DEFAULT if text is None else text
    if not wanted.strip():
        raise UsageError(f"the model name is empty: give a path, or {names(cards)}")
    path = Path(wanted)
    if text is not None and os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for over-long names
        return path
    for card in cards:
        if wanted.strip().casefold() in {name.casefold() for name in card.names}:
            return card
    if os.path.lexists(path):
        return path
    if wanted.startswith("~"):
        return _expanded(path)
    if remote := _remote(wanted.strip()):
        return remote
    if _looks_like_file(wanted):
        raise ModelFileError(f"{visible(wanted)}: no such file; check the path, or use {names(cards)}")
    return LocalName(wanted.strip())


def _remote(text: str) -> RemoteModel | None:
    """The repository that is meant; a file inside one needs a prefix, since it looks like a path."""
    prefix = next((prefix for prefix in _PREFIXES if text.lower().startswith(prefix)), "")
    rest = text[len(prefix) :].split("?")[0].rstrip("/") if prefix else text
    if prefix and (match := _FILE.fullmatch(rest)) and ".." not in match[4].split("/"):
        return RemoteModel(match[1], file=match[4], revision=match[2] or match[3])
    match = _REPOSITORY.fullmatch(rest)
    if match and (prefix or not _looks_like_file(text)):
        quant = (match[3] or "latest").upper()
        return RemoteModel(match[1], None if quant == "LATEST" else quant, revision=match[2])
    if prefix or re.match(r"\w+://", text):
        raise UsageError(
            f"{visible(text)} names no model: "
            "write hf.co/org/repo, hf.co/org/repo:Q4_K_M or hf:org/repo/file.gguf"
        )
    return None


def unknown(name: str, cards: Sequence[Card], local: Iterable[str] = ()) -> UsageError:
    """The error for a name that nothing answers to, with those that are nearest."""
    shown = {one: card.name for card in cards for one in card.names} | {one: one for one in local}
    near = dict.fromkeys(shown[match] for match in closest(name, shown))
    said = f"did you mean {visible(' or '.join(near))}" if near else f"use {names(cards)}"
    return UsageError(f"unknown model {visible(name)!r}: {said}, or give a path")


def closest(wanted: str, known: Iterable[str]) -> list[str]:
    """At most three of the known names that resemble what was typed, best first."""
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in known}
    return [folded[match] for match in get_close_matches(wanted.casefold()[:200], folded, n=3, cutoff=0.5)]


def visible(text: str | Path) -> str:
    """The text on one line, without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def names(cards: Sequence[Card]) -> str:
    """What may be typed instead, in few words."""
    if len(cards) == 1:
        return cards[0].name
    few = ", ".join(card.name for card in cards[:4])
    return f"one of {few}" if len(cards) <= 4 else f"a name that `edgespec search` lists, such as {DEFAULT}"


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ModelFileError(f"{visible(path)}: no such home folder; give the whole path") from None


def _looks_like_file(text: str) -> bool:
    return text.startswith((".", "/", os.sep)) or "\\" in text or text.lower().endswith(".gguf")
