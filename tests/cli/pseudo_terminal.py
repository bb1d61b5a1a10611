"""The command in a real pseudo terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time

from cli.conftest import command

CTRL_C, CTRL_D = b"\x03", b"\x04"
PROMPT = "> "
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\r")


class Terminal:
    """The command in a pseudo terminal, and what it has shown since the last `expect`."""

    def __init__(self, arguments, env, **changes: str) -> None:
        parent, child = pty.openpty()
        self.process = subprocess.Popen(
            command(arguments),
            stdin=child,
            stdout=child,
            stderr=child,
            env=env | {"TERM": "xterm"} | changes,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(child)
        self._fd = parent
        self.raw = b""
        self._seen = self._waited = 0

    def type(self, data: bytes | str) -> None:
        os.write(self._fd, data if isinstance(data, bytes) else data.encode())

    def text(self) -> str:
        """All that was shown."""
        return _SEQUENCES.sub("", self.raw.decode("utf-8", "ignore"))

    def expect(self, text: str, seconds: float = 20.0) -> str:
        """Read until `text` is shown; what came up to and with it."""
        end = time.monotonic() + seconds
        while True:
            shown = self.text()
            at = shown.find(text, self._seen)
            if at >= 0:
                piece = shown[self._seen : at + len(text)]
                self._seen = at + len(text)
                return piece
            ready, _, _ = select.select([self._fd], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"{text!r} did not come; instead {shown[self._seen :]!r}")
            try:
                self.raw += os.read(self._fd, 65536)
            except OSError:
                raise AssertionError(f"ended before {text!r}; instead {shown[self._seen :]!r}") from None

    def more(self, characters: int) -> None:
        """Wait for that much text after what was expected or waited for last."""
        end = time.monotonic() + 30
        wanted = max(self._seen, self._waited) + characters
        while len(self.text()) < wanted:
            assert select.select([self._fd], [], [], max(0.0, end - time.monotonic()))[0]
            self.raw += os.read(self._fd, 65536)
        self._waited = len(self.text())

    def wait(self) -> int:
        """The exit code; reads what is left."""
        end = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self._fd], [], [], 0.05)[0]:
                try:
                    self.raw += os.read(self._fd, 65536)
                except OSError:
                    break
        return self.process.wait(20)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._fd)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
