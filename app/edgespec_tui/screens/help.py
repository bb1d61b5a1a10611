"""Keys and commands."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from edgespec_tui.commands import COMMANDS
from edgespec_tui.provenance import LOOKS

_KEYS = {
    "Typing": (
        ("Enter", "send"),
        ("Shift+Enter, Ctrl+J", "begin a line"),
        ("Up, Down", "earlier messages"),
        ("@path", "attach a text file; Tab completes"),
        ("/", "commands; Tab completes"),
        ("Ctrl+G", "write in your editor ($VISUAL, $EDITOR)"),
    ),
    "Answers": (
        ("Esc, Ctrl+C", "stop; what is there stays"),
        ("Ctrl+R", "answer again"),
        ("F2", "speculation, live"),
        ("F3", "who proposed which words"),
        ("PageUp, PageDown", "scroll"),
    ),
    "Messages": (
        ("Ctrl+Up, Shift+Tab", "go to the messages; arrows move"),
        ("c, b", "copy the message, its last code block"),
        ("e", "edit your message and go on from there"),
        ("r, p", "answer again, who proposed"),
        ("Esc", "back to typing"),
    ),
    "App": (
        ("Ctrl+O, Ctrl+N", "conversations, a new one"),
        ("F4", "settings of this model"),
        ("Ctrl+P", "command palette"),
        ("Ctrl+C", "copy what is selected"),
        ("Ctrl+Q, Ctrl+D", "quit"),
    ),
}


class HelpScreen(ModalScreen[None]):
    """Closes with any of Esc, F1, q."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 78; max-width: 100%; height: auto; max-height: 100%; background: $surface; padding: 1 3;
        border: round $border-blurred; scrollbar-size-vertical: 1;
    }
    HelpScreen.-narrow > VerticalScroll { padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(_text(), markup=False)


def _text() -> Content:
    lines: list[Content] = []
    for title, keys in _KEYS.items():
        lines += [
            Content(title).stylize("bold $primary"),
            *(_pair(key, what) for key, what in keys),
            Content(""),
        ]
    lines.append(Content("Commands").stylize("bold $primary"))
    lines += [_pair(f"/{c.name} {c.argument.rstrip('?')}", c.help) for c in COMMANDS]
    lines += [Content(""), Content("Who proposed").stylize("bold $primary")]
    for shown in LOOKS.values():
        sample = Content(f"{shown.sign}words".ljust(21)).stylize(shown.style)
        lines.append(Content.assemble("  ", sample, shown.name))
    return Content("\n").join(lines)


def _pair(key: str, what: str) -> Content:
    return Content.assemble(Content(f"  {key:<20} ").stylize("bold"), Content(what).stylize("$dim"))
