"""The chat app: what comes from the keyboard and from the engine, and where it goes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Footer, TextArea

from edgespec.errors import EdgespecError
from edgespec.history import Conversation, Recorder
from edgespec_tui import outside
from edgespec_tui.attachments import joined, mentioned, parted
from edgespec_tui.choices import Choices, Start
from edgespec_tui.commands import parse
from edgespec_tui.engine import BACKGROUND, Engine, name_of
from edgespec_tui.live import Live
from edgespec_tui.pauses import look_at_all
from edgespec_tui.slash import Slash
from edgespec_tui.talk import Talk
from edgespec_tui.text import one_line
from edgespec_tui.theme import themes
from edgespec_tui.widgets.bars import StatusLine, TopBar
from edgespec_tui.widgets.composer import Composer
from edgespec_tui.widgets.message import AnswerMessage, ErrorMessage, MessageView, NoteMessage, UserMessage
from edgespec_tui.widgets.panel import Panel
from edgespec_tui.widgets.transcript import Transcript
from edgespec_tui.widgets.welcome import Welcome

TICK = 1 / 15
"""Seconds between looks at what the engine has done."""


class ChatApp(App[int]):
    """One conversation at a time with one model."""

    TITLE = "edgespec"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (84, "-wide")]  # noqa: RUF012 - as the library declares it
    CSS = """
    #main { height: 1fr; }
    #panel { dock: right; }
    .-narrow #panel { dock: none; }
    #transcript { width: 1fr; }
    ChatApp Footer { dock: none; background: $background; }
    Toast { max-width: 60; }
    .-narrow #main { layout: vertical; }
    .-narrow Transcript { padding: 0; }
    .-narrow Panel { width: 100%; height: 8; padding: 0 1; }
    .-narrow Panel > .fact { margin-top: 0; }
    .-narrow Panel > Sparkline { height: 1; }
    .-narrow Panel > .title { display: none; }
    .-narrow Composer { margin: 0; }
    .-narrow Composer > Prompt { max-height: 6; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "help", "help"),
        Binding("f2", "panel", "speculation"),
        Binding("f3", "provenance", "who proposed"),
        Binding("escape", "stop", "stop", show=False),
        Binding("ctrl+o", "history", "conversations"),
        Binding("ctrl+n", "new", "new", show=False),
        Binding("ctrl+r", "again", "again", show=False),
        Binding("f4", "settings", "settings"),
        Binding("ctrl+g", "editor", "editor", show=False),
        Binding("ctrl+c", "interrupt", "stop or copy", show=False, priority=True),
        Binding("ctrl+q", "quit", "quit", show=False, priority=True),
        Binding("pageup", "page(-1)", "up", show=False, priority=True),
        Binding("pagedown", "page(1)", "down", show=False, priority=True),
    ]

    def __init__(self, start: Start) -> None:
        super().__init__()
        self._start = start
        self.reference = start.reference
        self.engine = Engine()
        recorder = Recorder(conversation=start.conversation, notify=self.engine.notify, on=start.history)
        self.talk = Talk(self.engine, recorder, start.choices)
        self.top = TopBar()
        self.transcript = Transcript()
        self.composer = Composer()
        self.panel = Panel()
        self.status = StatusLine()
        self.live = Live(self)
        self.slash = Slash(self)
        self._editing: int | None = None
        for theme in themes():
            self.register_theme(theme)
        self.theme = start.choices.theme

    def compose(self) -> ComposeResult:
        yield self.top
        with Horizontal(id="main"):
            yield self.panel
            yield self.transcript
        yield self.status
        yield self.composer
        yield Footer(show_command_palette=False)

    async def on_mount(self) -> None:
        await self.show_conversation()
        self.composer.prompt.focus()
        self.load()
        self.set_interval(TICK, self.live.tick)
        if not self.is_headless:
            with contextlib.suppress(NotImplementedError):  # Windows
                loop = asyncio.get_running_loop()
                loop.add_signal_handler(signal.SIGTERM, self.exit, 128 + signal.SIGTERM)

    # The model

    def load(self) -> None:
        """Load the model that was chosen, with the settings as they are."""
        choices = self.talk.choices
        self.engine.load(self._start.loader(self.reference, choices, self.engine.notify))

    def switch(self, model: str) -> None:
        """Load another model, with the settings that were kept for it. Raises EdgespecError."""
        now, stored = self.talk.choices, self._start.stored(model)
        if stored is not None:
            self.talk.choose(replace(stored, theme=now.theme, system=stored.system or now.system))
        self.reference = model
        self.load()

    def measure(self) -> None:
        """Use the time until the next message to measure what is not known of the model."""
        if self.engine.model is not None and not self.engine.model.calibrated:
            self.engine.measure()

    def choose(self, choices: Choices, *, keep: bool = False) -> None:
        """Other settings; those that take a reload cause one. Raises EdgespecError if they cannot be kept."""
        before = self.talk.choices
        self.talk.choose(choices)
        self.theme = choices.theme
        if choices.needs_reload(before):
            self.load()
        elif choices.spec != before.spec:
            self.engine.speculate(choices.spec)
        if keep:
            self._start.save(self.reference, choices)

    # The conversation

    async def show_conversation(self) -> None:
        """Draw the whole conversation anew."""
        turns = self.talk.turns
        await self.transcript.open(turns)
        self.composer.past = [parted(turn.content)[0] for turn in turns if turn.role == "user"][-100:]
        self.composer.sent("")
        if not turns:
            await self.transcript.add(Welcome(self.model_name, first_run=self._start.first_run))

    @property
    def model_name(self) -> str:
        return name_of(self.engine.model) if self.engine.model else (self.reference or "")

    async def open(self, conversation: Conversation | None) -> None:
        """Go over to a conversation, None to a new one."""
        self.engine.stop()
        self.live.forget()
        look_at_all()
        self.talk.begin(conversation)
        self._editing = None
        await self.show_conversation()
        self.composer.prompt.focus()
        model = conversation.model if conversation else None
        if model and model != self.reference:
            self.notify(f"This was a chat with {model}: /model {model} loads it.", markup=False)

    @on(Composer.Sent)
    async def _sent(self, event: Composer.Sent) -> None:
        try:
            command = parse(event.text)
            if command is not None:
                self.composer.sent(event.text)
                await self.slash.run(*command)
                return
            content = joined(event.text, [*event.attachments, *mentioned(event.text)])
            await self.say(content)
            self.composer.sent(event.text)
        except EdgespecError as error:
            await self.tell_error(str(error))

    async def say(self, content: str) -> None:
        """Send a message; what is typed while an answer runs waits in the prompt. Raises EdgespecError."""
        if self.talk.answering:
            raise EdgespecError("an answer is running: Esc stops it; your message stays in the prompt")
        index, self._editing = self._editing, None
        if index is not None:
            await self.transcript.cut(index)
            self.talk.cut(index)
        n = len(self.talk.turns)
        answer = self.live.expect(n + 1)
        self.talk.send(content)
        await self.transcript.query(Welcome).remove()
        await self.transcript.add(UserMessage(n, self.talk.turns[n]), answer)
        self.transcript.follow()

    async def again(self) -> None:
        """Answer the last message again. Raises EdgespecError."""
        if self.talk.answering:
            raise EdgespecError("an answer is running: Esc stops it")
        n = self.talk.last_message() + 1
        answer = self.live.expect(n)
        self.talk.again()
        await self.transcript.cut(n)
        await self.transcript.add(answer)
        self.transcript.follow()

    async def tell(self, text: str) -> None:
        """A note in the conversation."""
        await self.transcript.add(NoteMessage(text))
        self.transcript.follow()

    async def tell_error(self, text: str) -> None:
        await self.transcript.add(ErrorMessage(text))
        self.transcript.follow()

    def copy(self, text: str, what: str) -> None:
        """Put text on the clipboard, by the terminal and by the desktop."""
        self.copy_to_clipboard(text)
        self.run_worker(lambda: self._copied(text, what), thread=True)

    def _copied(self, text: str, what: str) -> None:
        local = outside.copy_locally(text)
        if local or outside.fits_terminal(text):
            self.engine.notify(f"copied {what}")
        else:
            self.engine.notify(f"{what} may be too long for this terminal: /export FILE writes it to a file")

    # Messages

    @on(MessageView.Asked)
    async def _asked(self, event: MessageView.Asked) -> None:
        view = event.view
        try:
            if event.what == "edit":
                self.edit(view.index)
            elif event.what == "again":
                await self.again()
            elif event.what == "provenance" and isinstance(view, AnswerMessage):
                await view.show_provenance(not view.provenance)
            elif event.what == "copy":
                self.copy(view.text if isinstance(view, AnswerMessage) else view.turn.content, "the message")
            elif event.what == "copy code":
                self.slash.copy_code(view.text if isinstance(view, AnswerMessage) else view.turn.content)
        except EdgespecError as error:
            await self.tell_error(str(error))
        if event.what in ("leave", "edit", "again"):
            self.composer.prompt.focus()

    @on(MessageView.Moved)
    def _moved(self, event: MessageView.Moved) -> None:
        views = self.transcript.views
        at = views.index(event.view) + event.by
        if at >= len(views) and event.by == 1:
            self.composer.prompt.focus()
        else:
            views[min(max(at, 0), len(views) - 1)].focus()

    @on(Composer.Left)
    def _left(self) -> None:
        if views := self.transcript.views:
            views[-1].focus()

    def edit(self, index: int) -> None:
        """Take a message back into the prompt; sending it replaces it and what followed."""
        if self.talk.answering:
            raise EdgespecError("an answer is running: Esc stops it")
        text, files = parted(self.talk.turns[index].content)
        self.composer.load(text, files)
        self._editing = index
        self.notify("Sending replaces this message and what followed. Esc leaves it as it was.")

    # Keys

    def action_stop(self) -> None:
        if self._editing is not None:
            self._editing = None
            self.composer.load("", [])
            self.notify("The message stays as it was.")
        elif self.engine.busy:
            self.engine.stop()
            self.live.stopping = True

    def action_interrupt(self) -> None:
        if isinstance(self.focused, TextArea) and self.focused.selected_text:
            self.copy(self.focused.selected_text, "the selection")
        elif selected := self.screen.get_selected_text():
            self.copy(selected, "the selection")
            self.screen.clear_selection()
        elif self.engine.busy and self.engine.activity.phase not in BACKGROUND:
            self.engine.stop()
            self.live.stopping = True
        else:
            self.notify("Ctrl+Q quits, or Ctrl+D on an empty line")

    def action_help(self) -> None:
        from edgespec_tui.screens.help import HelpScreen

        self.push_screen(HelpScreen())

    def action_panel(self) -> None:
        self.panel.toggle_class("-shown")
        self.live.read()

    async def action_provenance(self) -> None:
        focused = self.focused
        view = focused if isinstance(focused, AnswerMessage) else self.transcript.last_answer
        if view is not None:
            await view.show_provenance(not view.provenance)

    async def action_again(self) -> None:
        try:
            await self.again()
        except EdgespecError as error:
            await self.tell_error(str(error))

    async def action_new(self) -> None:
        await self.open(None)

    def action_page(self, by: int) -> None:
        self.transcript.scroll_page_up() if by < 0 else self.transcript.scroll_page_down()

    def action_history(self) -> None:
        from edgespec_tui.screens.conversations import ConversationsScreen

        async def chosen(conversation: Conversation | None) -> None:
            if conversation is not None:
                await self.open(conversation)

        self.talk.recorder.flush(0.2)
        self.push_screen(ConversationsScreen(self.talk.recorder.id), chosen)

    def action_settings(self) -> None:
        from edgespec_tui.screens.settings import SettingsScreen

        async def chosen(choices: Choices | None) -> None:
            if choices is not None:
                try:
                    self.choose(choices, keep=True)
                except EdgespecError as error:
                    await self.tell_error(str(error))

        self.push_screen(SettingsScreen(self.talk.choices, self.model_name), chosen)

    def action_editor(self) -> None:
        from textual.app import SuspendNotSupported

        try:
            with self.suspend():
                text = outside.edited(self.composer.text)
            self.composer.load(text)
        except SuspendNotSupported:
            self.notify("This terminal cannot be handed to an editor.", severity="warning")
        except EdgespecError as error:
            self.notify(one_line(str(error)), severity="error", markup=False)

    @on(Composer.Quit)
    async def _quit(self) -> None:
        await self.action_quit()

    async def action_quit(self) -> None:
        self.engine.stop()
        self.exit(0)

    def close(self) -> bool:
        """After the end: write what is left. False if native work would not end."""
        self.engine.stop()
        self.live.drain()
        self.talk.ended("cancelled", None)
        self.talk.recorder.close()
        return self.engine.close()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from self.slash.palette()
