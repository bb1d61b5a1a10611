"""Where the user types."""

from __future__ import annotations

import re
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from edgespec_tui.attachments import Attachment, completions, quoted
from edgespec_tui.commands import COMMANDS
from edgespec_tui.text import one_line

_MOST_PASTED = 8000
_MOST_LINES = 60
"""A bigger paste becomes a chip."""
_TYPING_PATH = re.compile(r'(?:^|(?<=\s))@("[^"\n]*|[^\s"]*)$')
_TYPING_COMMAND = re.compile(r"/[a-z]*$")


class Prompt(TextArea):
    """Enter sends; Shift+Enter and Ctrl+J begin a line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "send", priority=False),
        Binding("ctrl+j,shift+enter", "newline", "new line", key_display="^j"),
    ]

    class Key(Message):
        """A key that may mean something else than editing; `prompt` decides if nobody takes it."""

    async def on_key(self, event: events.Key) -> None:
        if self.composer.take_key(event.key) or await self._edit(event):
            event.stop()
            event.prevent_default()

    async def _edit(self, event: events.Key) -> bool:
        """Obey an editing key at once: left to bubble, it would act after what was typed behind it."""
        bound = None if event.is_printable else self.screen.active_bindings.get(event.key)
        if bound is None or bound.node is not self or not bound.enabled:
            return False
        return await self.app.run_action(bound.binding.action, self)

    async def on_paste(self, event: events.Paste) -> None:
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        event.stop()
        event.prevent_default()
        self.composer.pasted(text)

    @property
    def composer(self) -> Composer:
        parent = self.parent
        assert isinstance(parent, Composer)
        return parent

    def action_newline(self) -> None:
        self.insert("\n")

    def action_send(self) -> None:
        self.composer.send()


class Composer(Vertical):
    """The prompt with its attachments, its completions and what was typed before."""

    DEFAULT_CSS = """
    Composer { height: auto; max-height: 60%; margin: 0 1; }
    Composer > #chips { color: $text-accent; padding: 0 1; display: none; }
    Composer > #chips.-shown { display: block; }
    Composer > #suggestions {
        height: auto; max-height: 8; border: none; background: $panel; display: none; padding: 0;
    }
    Composer > #suggestions.-shown { display: block; }
    Composer > #suggestions:ansi { border: round ansi_bright_black; }
    Composer > Prompt {
        height: auto; min-height: 3; max-height: 12; border: round $border-blurred; padding: 0 1;
        background: $background; scrollbar-size-vertical: 1;
    }
    Composer > Prompt:focus { border: round $primary; }
    """

    class Sent(Message):
        """The user sends this."""

        def __init__(self, text: str, attachments: list[Attachment]) -> None:
            super().__init__()
            self.text = text
            self.attachments = attachments

    class Quit(Message):
        """Ctrl+D on an empty prompt."""

    class Left(Message):
        """The cursor leaves the prompt upwards."""

    def __init__(self) -> None:
        super().__init__(id="composer")
        self.attachments: list[Attachment] = []
        self.past: list[str] = []
        self._at = 0
        self._kept = ""
        self.prompt = Prompt(
            placeholder="Ask something, / for commands, @ to attach a file",
            highlight_cursor_line=False,
            id="prompt",
        )
        self._chips = Static("", id="chips", markup=False)
        self._suggestions = OptionList(id="suggestions", markup=False)
        self._suggestions.can_focus = False
        self._inserts: list[str] = []
        self._suggested = (0, "")

    def compose(self) -> ComposeResult:
        yield self._suggestions
        yield self._chips
        yield self.prompt

    @property
    def text(self) -> str:
        return self.prompt.text

    def load(self, text: str, attachments: list[Attachment] | None = None) -> None:
        """Put this text there, the cursor at its end."""
        self.prompt.load_text(text)
        self.prompt.move_cursor(self.prompt.document.end)
        if attachments is not None:
            self.attachments = attachments
            self._show_chips()

    def attach(self, attachment: Attachment) -> None:
        self.attachments.append(attachment)
        self._show_chips()

    def send(self) -> None:
        text, attachments = self.text, self.attachments
        if text.strip() or attachments:
            self.post_message(self.Sent(text, list(attachments)))

    def sent(self, text: str) -> None:
        """What was sent is on its way: empty the prompt."""
        if text.strip() and (not self.past or self.past[-1] != text):
            self.past.append(text)
        self._at = len(self.past)
        self.load("", [])

    def pasted(self, text: str) -> None:
        """Short text goes into the prompt, long text becomes a chip."""
        if len(text) > _MOST_PASTED or text.count("\n") > _MOST_LINES:
            number = sum(a.name.startswith("pasted-") for a in self.attachments) + 1
            self.attach(Attachment(f"pasted-{number}.txt", text.removesuffix("\n")))
        else:
            start, end = self.prompt.selection
            result = self.prompt.replace(text, start, end, maintain_selection_offset=False)
            self.prompt.move_cursor(result.end_location)
        self.prompt.focus()

    @property
    def suggesting(self) -> bool:
        """Are completions shown?"""
        return self._suggestions.has_class("-shown")

    # Keys

    def take_key(self, key: str) -> bool:
        """Keys that are not editing. False leaves the key to the prompt."""
        self._suggest_anew()  # the news of a change may still be on its way
        if self.suggesting and self._take_suggestion_key(key):
            return True
        if key == "enter":
            self.send()
        elif key == "ctrl+d" and not self.text and not self.attachments:
            self.post_message(self.Quit())
        elif key == "backspace" and not self.text and self.attachments:
            self.attachments.pop()
            self._show_chips()
        elif key == "up" and self.prompt.cursor_location[0] == 0 and (self._at > 0 or not self.text):
            self._recall(-1)
        elif key == "down" and self.prompt.cursor_at_last_line and self._at < len(self.past):
            self._recall(1)
        elif key in ("alt+up", "ctrl+up", "shift+tab"):
            self.post_message(self.Left())
        else:
            return False
        return True

    def _recall(self, by: int) -> None:
        if self._at == len(self.past):
            self._kept = self.text
        at = min(max(self._at + by, 0), len(self.past))
        if at != self._at:
            self._at = at
            self.load(self.past[at] if at < len(self.past) else self._kept)

    # Completions

    def on_text_area_changed(self) -> None:
        self._suggest_anew()

    def _before(self) -> tuple[int, str]:
        """The cursor's row, and what stands there before it; nothing of a long line."""
        row, column = self.prompt.cursor_location
        return row, self.prompt.document.get_line(row)[:column] if column < 500 else ""

    def _suggest_anew(self) -> None:
        if self._suggested != self._before():
            self.suggest()

    def suggest(self) -> None:
        """Show what could follow at the cursor."""
        row, before = self._suggested = self._before()
        options: list[tuple[str, str]] = []
        if path := _TYPING_PATH.search(before):
            self._start = path.start()
            options = [(quoted(found), "") for found in completions(path[1])]
        elif row == 0 and _TYPING_COMMAND.fullmatch(before):
            self._start = 0
            options = [(f"/{c.name}", c.help) for c in COMMANDS if c.name.startswith(before[1:])]
        self._inserts = [text for text, _ in options]
        if [before[self._start :]] == self._inserts if options else True:
            self._inserts = []
        self._suggestions.clear_options()
        if self._inserts:
            width = max(len(text) for text in self._inserts) + 2
            self._suggestions.add_options(
                Option(Content.assemble(f"{one_line(text):<{width}}", Content(help).stylize("$dim")))
                for text, help in options
            )
            self._suggestions.highlighted = 0
        self._suggestions.set_class(bool(self._inserts), "-shown")

    def _take_suggestion_key(self, key: str) -> bool:
        if key in ("up", "down"):
            move = self._suggestions.action_cursor_up if key == "up" else self._suggestions.action_cursor_down
            move()
        elif key == "escape":
            self._suggestions.set_class(False, "-shown")
        elif key == "tab" or (key == "enter" and self._wants_more()):
            self._insert(self._suggestions.highlighted or 0)
        else:
            return False
        return True

    def _wants_more(self) -> bool:
        """Is what stands there less than the marked suggestion?"""
        return bool(self._inserts)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._insert(event.option_index)
        self.prompt.focus()

    def _insert(self, index: int) -> None:
        text = self._inserts[index]
        row, column = self.prompt.cursor_location
        ends = text.startswith("/") or not text.rstrip('"').endswith("/")
        if not ends:
            text = text.removesuffix('"')
        self.prompt.replace(text + (" " if ends else ""), (row, self._start), (row, column))

    def _show_chips(self) -> None:
        shown = "   ".join(f"▤ {one_line(a.summary, 60)}" for a in self.attachments)
        self._chips.update(Content(shown))
        self._chips.set_class(bool(shown), "-shown")
