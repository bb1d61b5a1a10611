"""The prompt of a single answer: from -p, a file, or standard input."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

import click

from edgespec.errors import EdgespecError


class InputError(EdgespecError):
    """A file that the user named cannot be read."""


def gather(text: str | None, file: str | None) -> str | None:
    """The whole prompt; None if nothing was given and a person sits at the keyboard."""
    if file is not None:
        content: str | None = read_input() if file == "-" else read_text(file)
    elif text is None:
        content = None if _stdin_is_terminal() else read_input()
    else:
        content = read_input() if _is_fed() else None
    if text is None and content is None:
        return None
    prompt = "\n\n".join(part for part in (text, content) if part)
    if not prompt.strip():
        raise click.UsageError("the prompt is empty: give one with -p TEXT, -f FILE or a pipe")
    return prompt


def read_text(file: str, most: int | None = None) -> str:
    """A UTF-8 file of at most `most` bytes, without its last line end. Raises InputError."""
    try:
        with Path(file).open("rb") as stream:
            return _read(stream, file, most)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error


def read_input(most: int | None = None) -> str:
    """As `read_text`, from standard input."""
    if sys.stdin is None:
        return ""
    try:
        return _read(sys.stdin.buffer, "standard input", most)
    except OSError as error:
        raise InputError(f"standard input: {error.strerror or error}") from error


def _read(stream: BinaryIO, name: str, most: int | None) -> str:
    data = stream.read() if most is None else stream.read(most + 1)
    if most is not None and len(data) > most:
        raise InputError(f"{name} is too large: it has more than {most / 1e6:,.0f} MB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not UTF-8 text (byte {error.start}): convert it, or give another file"
        ) from error
    return text.replace("\r\n", "\n").removesuffix("\n")


def _stdin_is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _is_fed() -> bool:
    """Is standard input a pipe or a file, which somebody means to be read?"""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
