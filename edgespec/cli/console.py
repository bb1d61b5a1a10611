"""Everything that goes to stderr: notices, and a progress line that goes away again."""

from __future__ import annotations

import contextlib
import shutil
import time
from threading import RLock
from typing import TextIO

from edgespec.cli.terminal import has_colour, has_style, make_lenient, one_line, printable

DELAY = 0.3
"""Seconds that a step may take before it is shown."""
_BARS = (5, 20)
"""Least and most characters of a bar."""


class Console:
    """Lines come from any thread; `draw` is called often by the thread that waits."""

    def __init__(self, stream: TextIO | None) -> None:
        make_lenient(stream)
        self._stream = stream
        self._moves = has_style(stream)
        self._colour = has_colour(stream)
        self._lock = RLock()  # a signal handler may say goodbye while its thread draws
        self._label, self._share, self._began = "", 0.0, 0.0
        self._drawn = ""

    def say(self, text: str) -> None:
        """A notice: one line."""
        self.write(one_line(text))

    def write(self, text: str, *, dim: bool = False) -> None:
        """Lines as they are."""
        text = printable(text)
        with self._lock:
            self._label = ""
            self._erase()
            self._put(f"\x1b[2m{text}\x1b[0m\n" if dim and self._colour else f"{text}\n")

    def step(self, label: str, share: float) -> None:
        """What is being done now, and its share from 0 to 1."""
        with self._lock:
            if not self._label:
                self._began = time.monotonic()
            self._label, self._share = label, share

    def done(self) -> None:
        """The step is over."""
        with self._lock:
            self._label = ""
            self._erase()

    def draw(self) -> None:
        """Show the step if it takes long."""
        with self._lock:
            if not self._moves or not self._label or time.monotonic() - self._began < DELAY:
                return
            line = _bar(one_line(self._label), self._share, shutil.get_terminal_size().columns - 1)
            if line != self._drawn:
                self._erase()
                self._put(line)
                self._drawn = line

    def _erase(self) -> None:
        if self._drawn:
            self._put("\r\x1b[K")
            self._drawn = ""

    def _put(self, text: str) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError, ValueError):
                self._stream.write(text)
                self._stream.flush()


def _bar(label: str, share: float, columns: int) -> str:
    """The step on one line of so many columns; a long label shortens the bar, then is cut."""
    end = f"] {share:.0%}"
    least, most = _BARS
    width = max(least, min(most, columns - len(f"{label} [{end}")))
    filled = round(width * min(max(share, 0.0), 1.0))
    return f"{label[: max(columns - width - len(f' [{end}'), 0)]} [{'#' * filled:{width}}{end}"[:columns]
