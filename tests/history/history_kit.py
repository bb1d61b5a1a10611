"""Conversations and pieces of answers to test with."""

from __future__ import annotations

from edgespec.history import Conversation, Figures, Run, Turn
from edgespec.types import Piece

NASTY = (
    "x = a[i] [/some/path]",
    "[/",
    "[@click=app.quit]x[/]",
    "\x1b]52;c;QUJD\x07 \x9b2J",
    "nul \0 in it",
    "\ud83d",
)


def pieces(*texts: str, source: str = "target") -> list[Piece]:
    return [Piece(i, text, source, i) for i, text in enumerate(texts)]


def conversation(*texts: str, title: str | None = None, began: float = 1000.0) -> Conversation:
    """User and assistant take turns saying these texts."""
    turns = tuple(
        Turn("user", text, began + i) if i % 2 == 0 else answer(text, began + i)
        for i, text in enumerate(texts)
    )
    return Conversation(turns, "Be brief.", "/models/m.gguf", title, began, began + len(texts))


def answer(text: str, created: float) -> Turn:
    figures = Figures(12, 5, 4, 0, 3, 2, 0.25, 0.5)
    return Turn("assistant", text, created, "complete", "m", "stop", figures, (Run(len(text), "suffix"),))
