"""What a person types at a terminal, with editing and a history for the session."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from edgespec.cli.terminal import make_lenient

PROMPT, MORE = "> ", ". "
_BLOCK = '"""'


class Keyboard:
    """Reads messages with `input`, which edits lines where readline is there.

    GNU readline marks pastes, so several pasted lines arrive as one text. Elsewhere a backslash at the
    end of a line, or a block between triple quotes, makes a message of several lines.
    """

    def __init__(self) -> None:
        make_lenient(sys.stdin)
        self._echoing: Any = None
        self._readline = None
        with contextlib.suppress(ImportError):
            import readline

            self._readline = readline
            if "libedit" not in (readline.__doc__ or ""):
                readline.parse_and_bind("set enable-bracketed-paste on")

    def read(self) -> str | None:
        """The next message, None at the end. Raises KeyboardInterrupt; the typed line is in the history."""
        try:
            line = self._line(PROMPT)
            if line.lstrip().startswith(_BLOCK):
                return self._block(line.lstrip().removeprefix(_BLOCK))
            while line.endswith("\\"):
                line = line[:-1] + "\n" + self._line(MORE)
        except EOFError:
            sys.stdout.write("\n")
            sys.stdout.flush()
            return None
        return line

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """What is typed meanwhile is kept for the next line and not shown."""
        with contextlib.suppress(ImportError, OSError, ValueError):
            import termios  # not on Windows

            number = sys.stdin.fileno()
            changed = termios.tcgetattr(number)
            self._echoing = termios.tcgetattr(number)
            changed[3] &= ~termios.ECHO
            termios.tcsetattr(number, termios.TCSANOW, changed)
        try:
            yield
        finally:
            self.restore()

    def restore(self) -> None:
        """Show again what is typed."""
        if self._echoing is not None:
            import termios

            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._echoing)
            self._echoing = None

    def _block(self, text: str) -> str:
        while not text.rstrip().endswith(_BLOCK):
            text += "\n" + self._line(MORE)
        return text.rstrip().removesuffix(_BLOCK).strip("\n")

    def _line(self, prompt: str) -> str:
        try:
            return input(prompt)
        except KeyboardInterrupt:
            self._keep()
            sys.stdout.write("\n")
            sys.stdout.flush()
            raise

    def _keep(self) -> None:
        if self._readline is not None and (typed := self._readline.get_line_buffer()):
            self._readline.add_history(typed)
