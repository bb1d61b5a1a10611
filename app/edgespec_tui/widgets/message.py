"""One message of the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from edgespec.history import Turn
from edgespec_tui.attachments import parted
from edgespec_tui.figures import answer_line
from edgespec_tui.provenance import Stretch, stretches
from edgespec_tui.text import count, one_line, visible
from edgespec_tui.widgets.body import MarkdownBody
from edgespec_tui.widgets.provenance import ProvenanceBody

_MOST_LINES, _MOST_CHARS = 60, 6000
"""Of a user's message that is shown."""


class MessageView(Vertical, can_focus=True):
    """A turn at its place in the conversation."""

    DEFAULT_CSS = """
    MessageView { height: auto; margin: 0 0 1 0; padding: 0 1 0 2; }
    MessageView:focus { padding-left: 1; border-left: outer $primary; background: $boost; }
    MessageView > .name { color: $dim; text-style: bold; width: 1fr; }
    MessageView > .foot { color: $dim; margin-top: 1; }
    MessageView > .foot.-hidden { display: none; }
    MessageView > .foot.-stopped { color: $text-warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", "copy"),
        Binding("b", "copy_code", "copy code"),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("home", "move(-100000)", "first", show=False),
        Binding("end", "move(100000)", "last", show=False),
        Binding("escape,enter,i", "leave", "back to typing"),
    ]

    class Asked(Message):
        """Something to be done with this message."""

        def __init__(self, view: MessageView, what: str) -> None:
            super().__init__()
            self.view = view
            self.what = what

    class Moved(Message):
        """Focus another message, so many further down."""

        def __init__(self, view: MessageView, by: int) -> None:
            super().__init__()
            self.view = view
            self.by = by

    def __init__(self, index: int, turn: Turn) -> None:
        super().__init__()
        self.index = index
        self.turn = turn

    def action_copy(self) -> None:
        self.post_message(self.Asked(self, "copy"))

    def action_copy_code(self) -> None:
        self.post_message(self.Asked(self, "copy code"))

    def action_move(self, by: int) -> None:
        self.post_message(self.Moved(self, by))

    def action_leave(self) -> None:
        self.post_message(self.Asked(self, "leave"))


class UserMessage(MessageView):
    """What the user wrote, letter for letter, with chips for files."""

    DEFAULT_CSS = """
    UserMessage { background: $surface; padding: 0 1; border-left: outer $primary 60%; }
    UserMessage:ansi { border-left: outer ansi_blue; }
    UserMessage > .chip { color: $text-accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("e", "edit", "edit and go on from here")]

    def compose(self) -> ComposeResult:
        text, files = parted(self.turn.content)
        yield Static("You", classes="name", markup=False)
        if text:
            yield Static(Content(_shortened(visible(text))), markup=False)
        for file in files:
            yield Static(Content(f"▤ {one_line(file.summary)}"), classes="chip", markup=False)

    def action_edit(self) -> None:
        self.post_message(self.Asked(self, "edit"))


class AnswerMessage(MessageView):
    """What the model wrote, as Markdown or by who proposed it."""

    DEFAULT_CSS = """
    AnswerMessage > .thinking { color: $dim; text-style: italic; margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "again", "answer again"),
        Binding("p", "provenance", "who proposed"),
        Binding("t", "thinking", "thinking", show=False),
    ]

    def __init__(self, index: int, turn: Turn, *, live: bool = False) -> None:
        super().__init__(index, turn)
        self.live = live
        self.provenance = False
        self._pieces: list[Stretch] = [] if live else stretches(turn.content, turn.runs)
        self._body: MarkdownBody | ProvenanceBody = MarkdownBody(_answer(self._pieces))
        self._thinking = Static("", classes="thinking", markup=False)
        self._open = live
        self._foot = Static("", classes="foot", markup=False)

    @property
    def text(self) -> str:
        """The answer without thinking."""
        return _answer(self._pieces)

    @property
    def foot(self) -> str:
        """The line under the answer."""
        return str(self._foot.content)

    def compose(self) -> ComposeResult:
        yield Static(Content(one_line(self.turn.model or "Assistant", 60)), classes="name", markup=False)
        yield self._thinking
        yield self._body
        yield self._foot
        self._show_thinking()
        self._show_foot()

    def feed(self, pieces: Sequence[Stretch]) -> None:
        """More of the answer; with no pieces, what waits is drawn."""
        self._pieces += pieces
        if isinstance(self._body, MarkdownBody):
            self._body.feed(_answer(pieces))
        elif pieces:
            self._body.feed(pieces)
        if any(piece.thinking for piece in pieces):
            self._show_thinking()

    def end(self, turn: Turn) -> None:
        """The answer has ended."""
        self.turn, self.live, self._open = turn, False, False
        if isinstance(self._body, MarkdownBody):
            self._body.finish()
        self._show_thinking()
        self._show_foot()

    async def show_provenance(self, on: bool) -> None:
        """Change between Markdown and words by source."""
        if on == self.provenance:
            return
        self.provenance, live, n = on, self.live, len(self._pieces)
        new = ProvenanceBody(self._pieces[:n]) if on else MarkdownBody("" if live else self.text)
        await self.mount(new, before=self._foot)
        old, self._body = self._body, new
        # What has come meanwhile went to the old one.
        if isinstance(new, ProvenanceBody):
            new.feed(self._pieces[n:])
        elif live:
            new.feed(self.text)
            if not self.live:
                new.finish()
        await old.remove()

    def action_again(self) -> None:
        self.post_message(self.Asked(self, "again"))

    def action_provenance(self) -> None:
        self.post_message(self.Asked(self, "provenance"))

    def action_thinking(self) -> None:
        self._open = not self._open
        self._show_thinking()

    def _show_thinking(self) -> None:
        text = "".join(piece.text for piece in self._pieces if piece.thinking).strip()
        self._thinking.display = bool(text)
        if self._open:
            self._thinking.update(Content(visible(text[-2000:] if self.live else text)))
        elif text:
            self._thinking.update(Content(f"▸ thought for {count(len(text.split()), 'word')} (t shows it)"))

    def _show_foot(self) -> None:
        line = "" if self.live else answer_line(self.turn)
        stopped = self.turn.state != "complete" and not self.live
        self._foot.set_class(not line, "-hidden")
        self._foot.set_class(stopped, "-stopped")
        self._foot.update(Content(("■ " if stopped else "") + line))


class ErrorMessage(Static):
    """Something that went wrong, between the messages."""

    DEFAULT_CSS = """
    ErrorMessage {
        height: auto; margin: 0 0 1 0; padding: 0 1;
        border-left: outer $error; background: $error 10%; color: $text-error;
    }
    ErrorMessage:ansi { background: ansi_default; color: ansi_red; }
    """

    def __init__(self, text: str) -> None:
        super().__init__(Content(f"✕ {visible(text)}"), markup=False)


class NoteMessage(Static):
    """What a command has to say."""

    DEFAULT_CSS = """
    NoteMessage {
        height: auto; margin: 0 0 1 0; padding: 0 1;
        border-left: outer $panel; color: $dim;
    }
    NoteMessage:ansi { border-left: outer ansi_bright_black; }
    """

    def __init__(self, text: str) -> None:
        super().__init__(Content(visible(text)), markup=False)


def _answer(pieces: Iterable[Stretch]) -> str:
    return "".join(piece.text for piece in pieces if not piece.thinking)


def _shortened(text: str) -> str:
    lines = text.split("\n")
    shown = "\n".join(lines[:_MOST_LINES])[:_MOST_CHARS]
    rest = len(text) - len(shown)
    return f"{shown}\n… {rest:,} more characters" if rest > 0 else text
