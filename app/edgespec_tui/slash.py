"""What the commands do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from edgespec import hub, proposer_names
from edgespec.errors import EdgespecError, UsageError
from edgespec.history import as_json, as_markdown, from_json
from edgespec_tui import attachments
from edgespec_tui.choices import FIELDS, changed, setting
from edgespec_tui.commands import Command
from edgespec_tui.figures import speedup
from edgespec_tui.markdown.splitter import split
from edgespec_tui.theme import NAMES

if TYPE_CHECKING:
    from edgespec_tui.app import ChatApp


class Slash:
    """A method for each command."""

    def __init__(self, app: ChatApp) -> None:
        self._app = app

    async def run(self, command: Command, argument: str) -> None:
        """Raises EdgespecError, which the app tells."""
        method: Callable[[str], Awaitable[None]] = getattr(self, f"_{command.name}")
        await method(argument)

    def palette(self) -> Iterable[SystemCommand]:
        """The command palette."""
        app = self._app
        yield SystemCommand("New conversation", "Ctrl+N", app.action_new)
        yield SystemCommand("Conversations", "Ctrl+O: find, open, rename, delete", app.action_history)
        yield SystemCommand("Settings", "F4", app.action_settings)
        yield SystemCommand("Speculation panel", "F2", app.action_panel)
        yield SystemCommand("Who proposed which words", "F3", app.action_provenance)
        yield SystemCommand("Answer again", "Ctrl+R", app.action_again)
        yield SystemCommand("Copy the last answer", "/copy", lambda: app.run_worker(self._safely("copy", "")))
        yield SystemCommand("Write in the editor", "Ctrl+G", app.action_editor)
        for name in NAMES:
            yield SystemCommand(f"Theme: {name}", "", lambda name=name: self._theme(name))
        for spec in ("auto", "off", *proposer_names()):
            yield SystemCommand(
                f"Proposers: {spec}",
                "/spec",
                lambda spec=spec: app.run_worker(self._safely("spec", spec)),
            )
        yield SystemCommand("Help", "F1", app.action_help)
        yield SystemCommand("Quit", "Ctrl+Q", app.action_quit)

    async def _safely(self, name: str, argument: str) -> None:
        try:
            await getattr(self, f"_{name}")(argument)
        except EdgespecError as error:
            await self._app.tell_error(str(error))

    def _theme(self, name: str) -> None:
        self._app.choose(replace(self._app.talk.choices, theme=name))

    async def _help(self, _: str) -> None:
        self._app.action_help()

    async def _clear(self, _: str) -> None:
        await self._app.open(None)

    async def _regen(self, _: str) -> None:
        await self._app.again()

    async def _edit(self, text: str) -> None:
        self._app.edit(self._app.talk.last_message())
        if text:
            await self._app.say(text)
            self._app.composer.load("", [])

    async def _system(self, text: str) -> None:
        choices = self._app.talk.choices
        if text:
            self._app.choose(replace(choices, system="" if text == "-" else text))
        now = self._app.talk.choices.system
        await self._app.tell(f"The system prompt is: {now}" if now else "There is no system prompt.")

    async def _set(self, text: str) -> None:
        choices = self._app.talk.choices
        name, _, value = text.partition(" ")
        if not name:
            width = max(map(len, FIELDS))
            lines = [f"{f.name:<{width}}  {_short(f.get(choices))}" for f in FIELDS.values()]
            await self._app.tell("\n".join(lines))
        elif not value.strip():
            raise UsageError(f"/set NAME VALUE: give a value for {name}")
        else:
            self._app.choose(changed(choices, name, value))
            known = setting(name)
            await self._app.tell(f"{known.name} is {_short(known.get(self._app.talk.choices))}")

    async def _read(self, name: str) -> None:
        self._app.composer.attach(attachments.read(_unquoted(name)))

    async def _save(self, name: str) -> None:
        await self._write(name, as_json(self._app.talk.conversation))

    async def _export(self, name: str) -> None:
        conversation = self._app.talk.conversation
        name = name or f"{_file_name(conversation.name)}.md"
        as_text = as_json if name.lower().endswith(".json") else as_markdown
        await self._write(name, as_text(conversation))

    async def _write(self, name: str, text: str) -> None:
        path = Path(_unquoted(name)).expanduser()
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise UsageError(f"{path} exists already: give another name") from None
        except (OSError, ValueError) as error:
            raise EdgespecError(
                f"cannot write {path}: {getattr(error, 'strerror', None) or error}"
            ) from error
        await self._app.tell(f"written to {path}")

    async def _load(self, name: str) -> None:
        path = Path(_unquoted(name)).expanduser()
        try:
            if path.exists() and not path.is_file():  # a pipe or a device may never end
                raise UsageError(f"{name} is not a file")
            text = path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise EdgespecError(f"{name}: {getattr(error, 'strerror', None) or 'no UTF-8 text'}") from error
        await self._app.open(from_json(text))

    async def _stats(self, _: str) -> None:
        model = self._app.engine.model
        if model is None or not model.stats.tokens:
            raise UsageError("there is no answer yet to tell about")
        stats, status = model.stats, model.status
        rate = stats.acceptance_rate
        faster = speedup(stats.tokens, status.figures)
        lines = [
            f"tokens       {stats.tokens} emitted, {stats.prompt_tokens} in the prompt,"
            f" {stats.cached_tokens} of them cached",
            f"speed        {stats.tokens_per_second:.1f} tok/s, first token after {stats.t_first:.2f} s",
            f"rounds       {stats.rounds}, mean acceptance length {stats.mean_acceptance_length:.2f}",
            f"drafts       {stats.draft_n} verified, {stats.draft_n_accepted} accepted"
            + (f" ({rate:.1%})" if rate is not None else ""),
            "sources      " + ", ".join(f"{name} {share:.1%}" for name, share in stats.shares.items()),
            f"speculation  {'on' if status.on else 'off'}: {status.reason}",
            f"numerics     {model.rows.mode}: {model.rows.reason}",
        ]
        if faster is not None:
            lines.insert(2, f"speedup      {faster:.2f} (plain's time / the time taken, in measured V(1))")
        await self._app.tell("\n".join(lines))

    async def _model(self, name: str) -> None:
        if name:
            self._app.switch(name)
            return
        lines = [f"{card.name}" for card in hub.cards()]
        await self._app.tell("\n".join(["/model NAME, or a GGUF file. The catalogue has:", *lines]))

    async def _spec(self, spec: str) -> None:
        model = self._app.engine.model
        if not spec:
            if model is None:
                raise UsageError("no model is loaded")
            status = model.status
            await self._app.tell(f"speculation is {'on' if status.on else 'off'}: {status.reason}")
            return
        self._app.choose(replace(self._app.talk.choices, spec=spec))

    async def _copy(self, what: str) -> None:
        turns = self._app.talk.turns
        last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
        if last is None:
            raise UsageError("there is no answer to copy")
        view = self._app.transcript.last_answer
        text = view.text if view is not None else last.content
        if what == "code":
            self.copy_code(text)
        else:
            self._app.copy(text, "the answer")

    def copy_code(self, text: str) -> None:
        """The last fence of a message. Raises UsageError."""
        parts: list[str] = []
        for block in split(text):
            if block.kind == "code":
                parts = [*([] if block.first else parts), block.source]
        if not parts:
            raise UsageError("there is no code block in this message")
        self._app.copy("".join(parts), "the code")

    async def _title(self, text: str) -> None:
        self._app.talk.recorder.describe(title=text)

    async def _history(self, _: str) -> None:
        self._app.action_history()

    async def _settings(self, _: str) -> None:
        self._app.action_settings()

    async def _quit(self, _: str) -> None:
        await self._app.action_quit()


def _unquoted(name: str) -> str:
    return name[1:-1] if len(name) > 2 and name[0] == name[-1] == '"' else name


def _short(value: object) -> str:
    return str(value) if value not in ("", None) else "–"


def _file_name(title: str) -> str:
    kept = "".join(c if c.isalnum() else "-" for c in title.lower()).strip("-")
    return "-".join(part for part in kept.split("-") if part)[:50] or "conversation"
