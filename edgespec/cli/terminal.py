"""What a stream is, and what may be sent to it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from typing import TextIO

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def has_style(stream: TextIO | None) -> bool:
    """May dim text and moving lines be sent to it?"""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO | None) -> bool:
    return has_style(stream) and not os.environ.get("NO_COLOR")


def no_screen() -> str | None:
    """Why a full-screen program cannot run here, None if it can."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        return "this is no terminal"
    if os.environ.get("TERM", "dumb" if os.name == "posix" else "") == "dumb":
        return "TERM is dumb"
    return "NO_COLOR is set" if os.environ.get("NO_COLOR") else None


def printable(text: str) -> str:
    """Without the characters that a terminal would obey; lines and tabs stay."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """On one line, and nothing in it that a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def valid(text: str) -> str:
    """Text from argv or the environment: bytes that were not UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def make_lenient(stream: TextIO | None) -> None:
    """Let the stream replace what its encoding lacks."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def write_error(message: str) -> None:
    """One line on stderr, if there is one."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            make_lenient(sys.stderr)
            sys.stderr.write(f"edgespec: {message}\n")
            sys.stderr.flush()


def silence(stream: TextIO | None) -> None:
    """Flush; if that fails, send the rest nowhere, so that the end of the process does not fail again."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def fill_closed_descriptors() -> None:
    """Open what is closed of 0, 1 and 2, so that no model file gets such a number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
