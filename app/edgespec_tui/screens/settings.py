"""Settings of a model, kept for its next start."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Footer, Input, Label, Select, Static, TextArea

from edgespec import proposer_names
from edgespec.errors import UsageError
from edgespec_tui.choices import FIELDS, Choices, changed
from edgespec_tui.text import one_line
from edgespec_tui.theme import NAMES


class SettingsScreen(ModalScreen[Choices | None]):
    """Gives back what was chosen, None if nothing was."""

    DEFAULT_CSS = """
    SettingsScreen { align: center middle; }
    SettingsScreen > Vertical {
        width: 84; max-width: 100%; height: 90%; min-height: 18; max-height: 100%;
        background: $surface; padding: 1 2 0 2; border: round $border-blurred;
    }
    SettingsScreen #form { height: 1fr; scrollbar-size-vertical: 1; padding-right: 1; }
    SettingsScreen .heading { text-style: bold; color: $primary; margin-bottom: 1; }
    SettingsScreen .row { height: 3; }
    SettingsScreen .row > Label { width: 26; padding: 1 0; }
    SettingsScreen .row > Input, SettingsScreen .row > Select { width: 1fr; max-width: 28; }
    SettingsScreen .row > .hint { width: 1fr; color: $dim; padding: 1 1; text-overflow: ellipsis;
        text-wrap: nowrap; }
    SettingsScreen Input, SettingsScreen TextArea { border: round $border-blurred; background: $surface; }
    SettingsScreen Input:focus, SettingsScreen TextArea:focus { border: round $primary; }
    SettingsScreen SelectCurrent { border: round $border-blurred; background: $surface; }
    SettingsScreen #system { height: 5; margin-bottom: 1; }
    SettingsScreen #problem { color: $text-error; height: auto; }
    SettingsScreen #buttons { height: 3; align-horizontal: right; }
    SettingsScreen Button { margin-left: 2; }
    SettingsScreen.-narrow .hint, SettingsScreen.-narrow #buttons { display: none; }
    SettingsScreen.-narrow #system { height: 3; }
    SettingsScreen.-narrow > Vertical { height: 100%; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave as it was"),
        Binding("ctrl+s", "keep", "apply and keep", priority=True),
    ]

    def __init__(self, choices: Choices, model: str) -> None:
        super().__init__()
        self._choices = choices
        self._model = model

    def compose(self) -> ComposeResult:
        with Vertical():
            title = f"Settings of {one_line(self._model, 50)}" if self._model else "Settings"
            yield Static(title, classes="heading", markup=False)
            with VerticalScroll(id="form", can_focus=False):
                yield Label("System prompt")
                yield TextArea(self._choices.system, id="system", highlight_cursor_line=False)
                for name in FIELDS:
                    if name != "system":
                        yield from self._row(name)
            yield Static("", id="problem", markup=False)
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="cancel")
                yield Button("Apply and keep", id="keep", variant="primary")
            yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.call_after_refresh(self.query_one("#form").scroll_home, animate=False)

    def _row(self, name: str) -> ComposeResult:
        field = FIELDS[name]
        value = str(field.get(self._choices))
        with Horizontal(classes="row"):
            yield Label(field.label)
            if name in ("theme", "spec"):
                known = NAMES if name == "theme" else ("auto", "off", *proposer_names(), "suffix,draft")
                options = known if value in known else (*known, value)
                yield Select(
                    [(option, option) for option in options], value=value, allow_blank=False, id=name
                )
            else:
                yield Input(value, id=name)
            yield Static(field.hint, classes="hint", markup=False)

    def chosen(self) -> Choices:
        """What the form says. Raises UsageError."""
        choices = self._choices
        for name in FIELDS:
            widget = self.query_one(f"#{name}")
            if isinstance(widget, TextArea):
                text = widget.text
            elif isinstance(widget, Select):
                text = str(widget.value)
            else:
                assert isinstance(widget, Input)
                text = widget.value
            choices = changed(choices, name, text)
        return choices

    @on(Button.Pressed, "#keep")
    def action_keep(self) -> None:
        try:
            self.dismiss(self.chosen())
        except UsageError as error:
            self.query_one("#problem", Static).update(one_line(str(error)))

    @on(Button.Pressed, "#cancel")
    def _cancelled(self) -> None:
        self.dismiss(None)
