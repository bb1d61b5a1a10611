"""The chat in lines: a prompt, a streamed answer, and a few commands that begin with a slash."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec import Chat, Message, StepEvent
from edgespec.cli import report
from edgespec.cli.keeping import KeptChat
from edgespec.cli.keyboard import Keyboard
from edgespec.cli.printers import TextPrinter
from edgespec.cli.prompt import read_text
from edgespec.cli.sigterm import ends_on_sigterm
from edgespec.errors import EdgespecError, UsageError
from edgespec.history import as_json, as_markdown

if TYPE_CHECKING:
    from edgespec.cli.answer import Desk

_QUIT_HINT = "to quit: Ctrl-D or /quit"
_COMMAND = re.compile(r"/([a-z]+|\?)(?:\s+(.*))?")


class LineChat:
    """Reads what the user types until the end. Nothing that was typed or answered is lost on a failure."""

    def __init__(self, kept: KeptChat, printer: TextPrinter, desk: Desk, *, stats: bool) -> None:
        self._kept = kept
        self._chat = kept.chat
        self._printer = printer
        self._desk = desk
        self._stats = stats
        self._keyboard = Keyboard()
        desk.worker.goodbyes.append(self._keyboard.restore)
        self._attached: list[tuple[str, str]] = []
        self._saved: set[Path] = set()
        self._over = False
        self._cold = bool(self._chat.messages)
        self._commands: dict[str, tuple[Callable[[str], None], str, str]] = {
            "help": (self._help, "", "show this"),
            "clear": (self._clear, "", "begin a new conversation; the system message stays"),
            "system": (self._system, "TEXT", "set the system message"),
            "regen": (self._regenerate, "", "answer the last message again"),
            "stats": (self._show_stats, "", "counts and rates of the last answer"),
            "save": (self._save, "FILE", "write the conversation to a file, as JSON if it ends with .json"),
            "read": (self._read, "FILE", "send this file along with the next message"),
            "quit": (self._quit, "", "end, like Ctrl-D"),
        }

    def loop(self) -> int:
        """Until the user ends it. Returns the exit code."""
        model = self._chat.model
        self._tell(f"{Path(model.info.path).stem} · /help for help, Ctrl-D to quit")
        with ends_on_sigterm():
            while not self._over:
                try:
                    self._kept.tell(self._tell)
                    with self._desk.meanwhile(model, self._warm if self._cold else None):
                        text = self._keyboard.read()
                    if text is None:
                        break
                    self._handle(text)
                except KeyboardInterrupt:
                    self._tell(_QUIT_HINT)
                except EdgespecError as error:
                    self._tell(f"edgespec: {error}")
                if self._desk.worker.signal == signal.SIGTERM:
                    return self._desk.worker.exit_code
        if self._kept.recorder.flush() and (id := self._kept.recorder.id) is not None:
            self._tell(f"to go on with this chat: edgespec run --continue {id}")
        return 0

    def _warm(self) -> None:
        try:
            self._chat.warm()
        except EdgespecError:
            self._cold = False
            raise

    def _handle(self, text: str) -> None:
        if not text.strip() and not self._attached:
            return
        command = _COMMAND.fullmatch(text.rstrip())
        if command is None:
            self._send(text)
            return
        entry = self._commands.get("help" if command[1] == "?" else command[1])
        if entry is None:
            self._tell(
                f"unknown command /{command[1]}: /help lists them; a space in front makes it a message"
            )
            return
        entry[0](command[2] or "")

    def _send(self, text: str) -> None:
        parts = [text, *(content for _, content in self._attached)]
        message = "\n\n".join(part for part in parts if part.strip())
        before = len(self._chat.messages)
        try:
            self._stream(lambda: self._kept.send(message))
        finally:
            if len(self._chat.messages) > before:
                self._attached.clear()

    def _regenerate(self, _: str) -> None:
        if not any(message.role == "user" for message in self._chat.messages):
            raise UsageError("there is no message to answer again")
        sampling = self._chat.sampling
        self._chat.sampling = replace(sampling, seed=sampling.seed + 1)
        self._stream(self._kept.regenerate)
        if sampling.temperature == 0:
            self._tell("at temperature 0 the answer is always the same")

    def _stream(self, start: Callable[[], Generator[StepEvent, None, None]]) -> None:
        chat, model = self._chat, self._chat.model
        self._cold = False
        with self._keyboard.quiet():
            self._desk.stream(model, start, _Marking(self._printer, chat), chat.sampling.seed, None)
        if self._stats:
            self._show_stats("")
        else:
            self._tell(report.status_line(model))

    def _help(self, _: str) -> None:
        lines = [f"/{name} {what}".ljust(14) + text for name, (_, what, text) in self._commands.items()]
        lines += [
            'A line that ends with \\ goes on in the next. """ begins and ends a text of several lines.',
            "Ctrl-C stops an answer.",
        ]
        self._desk.console.write("\n".join(lines))

    def _clear(self, _: str) -> None:
        self._chat.messages[:] = [m for m in self._chat.messages if m.role == "system"]
        self._attached.clear()
        self._kept.recorder.begin()
        self._tell("a new conversation begins")

    def _system(self, text: str) -> None:
        messages = self._chat.messages
        old = messages[0].content if messages and messages[0].role == "system" else None
        if not text:
            self._tell(f"the system message is: {old}" if old else "there is no system message: /system TEXT")
            return
        messages[: 0 if old is None else 1] = [Message("system", text)]
        self._kept.recorder.describe(system=text)
        self._tell("the system message is set")

    def _show_stats(self, _: str) -> None:
        self._desk.console.write(report.block(self._chat.model, self._chat.sampling.seed), dim=True)

    def _save(self, name: str) -> None:
        if not name:
            raise UsageError("give a file name: /save FILE")
        path = Path(name).expanduser()
        write = as_json if path.suffix.lower() == ".json" else as_markdown
        try:
            with path.open("w" if path in self._saved else "x", encoding="utf-8") as file:
                file.write(write(self._kept.recorder.conversation))
        except FileExistsError:
            raise UsageError(f"{path} exists already: give another name") from None
        except OSError as error:
            raise EdgespecError(f"cannot write {path}: {error.strerror or error}") from error
        self._saved.add(path)
        self._tell(f"saved to {path}")

    def _read(self, name: str) -> None:
        if not name:
            raise UsageError("give a file name: /read FILE")
        content = read_text(str(Path(name).expanduser()))
        self._attached.append((name, content))
        self._tell(f"{name} ({len(content)} characters) goes with your next message")

    def _quit(self, _: str) -> None:
        self._over = True

    def _tell(self, text: str) -> None:
        self._desk.console.write(" ".join(text.split()), dim=True)


class _Marking:
    """Marks an answer that was stopped."""

    def __init__(self, printer: TextPrinter, chat: Chat) -> None:
        self._printer = printer
        self._chat = chat

    def event(self, event: StepEvent) -> None:
        self._printer.event(event)

    def end(self, summary: dict[str, object]) -> None:
        if self._chat.finish == "cancelled":
            self._printer.mark(" [stopped]")
        self._printer.end(summary)
