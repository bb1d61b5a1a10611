"""Answers on stdout: text for people and pipes, JSON lines for programs."""

from __future__ import annotations

import json
from typing import Any, Protocol

from edgespec.cli.stdout import Stdout
from edgespec.cli.terminal import has_colour, is_terminal, printable
from edgespec.history import Conversation
from edgespec.types import StepEvent

PAST = 20
"""Messages of a conversation that are shown when it goes on."""


class Printer(Protocol):
    """Takes the events of one answer, then `end` with its summary."""

    def event(self, event: StepEvent) -> None: ...

    def end(self, summary: dict[str, Any]) -> None: ...


class TextPrinter:
    """The answer's text. A terminal gets no control characters, and thinking in dim."""

    def __init__(self) -> None:
        self._out = Stdout()
        self._terminal = is_terminal(self._out.stream)
        self._dims = has_colour(self._out.stream)
        self._dim = False
        self._last = "\n"

    def event(self, event: StepEvent) -> None:
        text = "".join(self._shown(piece.text, piece.kind == "thinking") for piece in event.pieces)
        if text:
            self._out.write(text)

    def past(self, conversation: Conversation) -> None:
        """What was said before, or the end of it."""
        turns = conversation.turns[-PAST:]
        if len(turns) < len(conversation.turns):
            self._out.write(f"({len(conversation.turns) - len(turns)} earlier messages)\n")
        for turn in turns:
            mark = "" if turn.state == "complete" else " [stopped]"
            text = "> " + turn.content.replace("\n", "\n. ") if turn.role == "user" else turn.content + mark
            self._out.write((printable(text) if self._terminal else text) + "\n")

    def mark(self, text: str) -> None:
        """A word of our own after the answer."""
        self._out.write(self._styled(False) + text)
        self._last = text[-1]

    def end(self, summary: dict[str, Any]) -> None:
        """Close the last line."""
        self._out.write(self._styled(False) + ("" if self._last == "\n" else "\n"))
        self._last = "\n"

    def _shown(self, text: str, dim: bool) -> str:
        if self._terminal:
            text = printable(text)
        if not text:
            return ""
        self._last = text[-1]
        return self._styled(dim) + text

    def _styled(self, dim: bool) -> str:
        if dim == self._dim or not self._dims:
            return ""
        self._dim = dim
        return "\x1b[2m" if dim else "\x1b[0m"


class JsonPrinter:
    """One object a line: `token` for every emitted piece, then `summary`, or `error` as the last."""

    def __init__(self) -> None:
        self._out = Stdout()

    def event(self, event: StepEvent) -> None:
        lines = [
            {
                "type": "token",
                "id": piece.token,
                "text": piece.text,
                "source": piece.source,
                "kind": piece.kind,
                "position": piece.position,
            }
            for piece in event.pieces
        ]
        if lines:
            self._out.write("".join(json.dumps(line) + "\n" for line in lines))

    def end(self, summary: dict[str, Any]) -> None:
        self._out.write(json.dumps({"type": "summary", **summary}) + "\n")

    def error(self, message: str) -> None:
        self._out.write(json.dumps({"type": "error", "message": message}) + "\n")
