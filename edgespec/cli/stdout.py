"""Standard output, flushed, and its failures in one line."""

from __future__ import annotations

import sys
from typing import TextIO

from edgespec.cli.failure import NobodyReadsError, OutputError
from edgespec.cli.terminal import make_lenient


class Stdout:
    """Flushes what it writes. Raises OutputError."""

    def __init__(self) -> None:
        if sys.stdout is None:
            raise OutputError("standard output is closed: there is nowhere to write the answer")
        make_lenient(sys.stdout)
        self.stream: TextIO = sys.stdout

    def write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except BrokenPipeError as error:
            raise NobodyReadsError("nobody reads the answer") from error
        except OSError as error:
            raise OutputError(f"cannot write the answer: {error.strerror or error}") from error


def put(text: str) -> None:
    """Write lines. Raises OutputError."""
    Stdout().write(f"{text}\n")
