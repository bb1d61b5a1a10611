"""What the user typed as a model: a path or a catalogue name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from edgespec.errors import ModelFileError, UsageError
from edgespec.hub.catalogue import DEFAULT, Card

_REMOTE = re.compile(r"(https?://|hf\.co/|huggingface\.co/)\S+|[\w.-]+/[\w.-]+(:[\w.-]+)?", re.IGNORECASE)


def parse(text: str | None, cards: Sequence[Card]) -> Path | Card:
    """The path or the card that is meant; None is the default card.

    A file wins over a catalogue name, a catalogue name over a folder. Symlinks stay as they are.
    Raises UsageError for a name that nothing answers to, ModelFileError for a path that is not there.
    """
    wanted = DEFAULT if text is None else text
    if not wanted.strip():
        raise UsageError(f"the model name is empty: give a path, or {_names(cards)}")
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
    if _REMOTE.fullmatch(wanted) and not _looks_like_file(wanted):
        raise UsageError(
            f"{wanted}: models from Hugging Face by name are not supported yet; "
            f"download the file and give its path, or use {_names(cards)}"
        )
    if _looks_like_file(wanted):
        raise ModelFileError(f"{visible(wanted)}: no such file; check the path, or use {_names(cards)}")
    raise UsageError(f"unknown model {visible(wanted)!r}: {_closest(wanted, cards)}, or give a path")


def visible(text: str | Path) -> str:
    """The text on one line, without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ModelFileError(f"{visible(path)}: no such home folder; give the whole path") from None


def _looks_like_file(text: str) -> bool:
    if text.startswith((".", "/", os.sep)) or "\\" in text:
        return True
    return text.lower().endswith(".gguf") and not text.lower().startswith(
        ("http", "hf.co/", "huggingface.co/")
    )


def _closest(wanted: str, cards: Sequence[Card]) -> str:
    from difflib import get_close_matches

    names = {name.casefold(): card.name for card in cards for name in card.names}
    near = [names[match] for match in get_close_matches(wanted.casefold(), names, n=3, cutoff=0.5)]
    return f"did you mean {' or '.join(dict.fromkeys(near))}" if near else f"use {_names(cards)}"


def _names(cards: Sequence[Card]) -> str:
    return "one of " + ", ".join(card.name for card in cards) if len(cards) > 1 else f"{cards[0].name}"
