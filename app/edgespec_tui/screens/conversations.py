"""The conversations on this machine."""

from __future__ import annotations

import time
from datetime import datetime
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from edgespec.errors import EdgespecError
from edgespec.history import Conversation, Entry, History
from edgespec_tui.text import count, one_line

_MOST = 500


class ConversationsScreen(ModalScreen[Conversation | None]):
    """Find, open, rename, delete. `current`: the one that is open."""

    DEFAULT_CSS = """
    ConversationsScreen { align: center middle; }
    ConversationsScreen > Vertical {
        width: 90; max-width: 100%; height: 80%; min-height: 16; max-height: 100%;
        background: $surface; padding: 1 2; border: round $border-blurred;
    }
    ConversationsScreen Input { border: round $border-blurred; background: $surface; height: 3; }
    ConversationsScreen Input:focus { border: round $primary; }
    ConversationsScreen OptionList { height: 1fr; border: none; background: $surface; padding: 0; }
    ConversationsScreen .hint { color: $dim; height: 1; }
    ConversationsScreen #rename { display: none; }
    ConversationsScreen #rename.-shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "close"),
        Binding("ctrl+t,f2", "rename", "rename", key_display="F2"),
        Binding("ctrl+x,delete", "delete", "delete", key_display="^x"),
        Binding("down", "list", show=False),
    ]

    def __init__(self, current: int | None) -> None:
        super().__init__()
        self._current = current
        self._entries: list[Entry] = []
        self._asked: int | None = None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Input(placeholder="Search in all messages", id="search")
            yield OptionList(id="list", markup=False)
            yield Input(placeholder="New title", id="rename")
            yield Static("", classes="hint", markup=False)
            yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._find("")

    @on(Input.Changed, "#search")
    def _searched(self, event: Input.Changed) -> None:
        self._find(event.value)

    @work(thread=True, exclusive=True)
    def _find(self, text: str) -> None:
        try:
            with History() as history:
                found = history.search(text, _MOST)
        except EdgespecError as error:
            self.app.call_from_thread(self._hint, str(error))
            return
        self.app.call_from_thread(self._show, found)

    def _show(self, entries: list[Entry]) -> None:
        self._entries = entries
        options = self.query_one("#list", OptionList)
        at = options.highlighted or 0
        options.clear_options()
        options.add_options(Option(_line(entry, entry.id == self._current)) for entry in entries)
        if entries:
            options.highlighted = min(at, len(entries) - 1)
        self._hint(count(len(entries), "conversation") if entries else "nothing found")

    def _hint(self, text: str) -> None:
        self.query_one(".hint", Static).update(Content(one_line(text)))

    @property
    def _marked(self) -> Entry | None:
        at = self.query_one("#list", OptionList).highlighted
        return self._entries[at] if at is not None and at < len(self._entries) else None

    @on(Input.Submitted, "#search")
    @on(OptionList.OptionSelected)
    def _chosen(self) -> None:
        if self._marked is not None:
            self._open(self._marked.id)

    @work(thread=True)
    def _open(self, id: int) -> None:
        try:
            with History() as history:
                found = history.load(id)
        except EdgespecError as error:
            self.app.call_from_thread(self._hint, str(error))
            return
        self.app.call_from_thread(self.dismiss, found)

    def action_list(self) -> None:
        self.query_one("#list", OptionList).focus()

    def action_back(self) -> None:
        rename = self.query_one("#rename", Input)
        if rename.has_class("-shown"):
            rename.remove_class("-shown")
            self.query_one("#list", OptionList).focus()
        else:
            self.dismiss(None)

    def action_rename(self) -> None:
        if self._marked is not None:
            rename = self.query_one("#rename", Input)
            rename.value = self._marked.title
            rename.add_class("-shown")
            rename.focus()

    @on(Input.Submitted, "#rename")
    def _renamed(self, event: Input.Submitted) -> None:
        event.stop()
        if self._marked is not None:
            self._change(self._marked.id, event.value)
        self.action_back()

    def action_delete(self) -> None:
        marked = self._marked
        if marked is None:
            return
        if marked.id == self._current:
            self._hint("this conversation is open: begin a new one first")
        elif self._asked != marked.id:
            self._asked = marked.id
            self._hint(f"press again to delete “{one_line(marked.title, 40)}” for good")
        else:
            self._asked = None
            self._change(marked.id, None)

    @work(thread=True)
    def _change(self, id: int, title: str | None) -> None:
        """A new title, or None to delete."""
        try:
            with History() as history:
                if title is None:
                    history.delete(id)
                else:
                    history.rename(id, title)
                found = history.search(self.query_one("#search", Input).value, _MOST)
        except EdgespecError as error:
            self.app.call_from_thread(self._hint, str(error))
            return
        self.app.call_from_thread(self._show, found)


def _line(entry: Entry, current: bool) -> Content:
    mark = Content("● " if current else "  ").stylize("$primary")
    about = f"  {_ago(entry.updated)} · {count(entry.turns, 'message')}"
    line = Content.assemble(mark, one_line(entry.title, 70) or "untitled", Content(about).stylize("$dim"))
    if entry.match:
        line = Content("\n").join([line, Content(f"    {one_line(entry.match, 80)}").stylize("$dim italic")])
    return line


def _ago(when: float) -> str:
    seconds = time.time() - when
    if seconds < 60:
        return "just now"
    for most, unit, name in ((3600, 60, "min"), (86400, 3600, "h")):
        if seconds < most:
            return f"{int(seconds // unit)} {name} ago"
    return datetime.fromtimestamp(when).astimezone().strftime("%Y-%m-%d")
