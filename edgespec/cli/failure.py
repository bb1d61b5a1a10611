"""Every failure in one line that says what to do."""

from __future__ import annotations

import click

from edgespec.cli.terminal import one_line
from edgespec.errors import EdgespecError


class OutputError(EdgespecError):
    """stdout takes nothing more."""


class NobodyReadsError(OutputError):
    """The reader of the pipe has gone, which is its right: ends in silence, as by SIGPIPE."""

    exit_code = 141


def explain(error: Exception) -> tuple[str, int]:
    """One line for the user, and the exit code."""
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "edgespec"
        return f"{one_line(error.format_message()).rstrip('.')}; see '{path} --help'", 2
    if isinstance(error, click.ClickException):
        return one_line(error.format_message()), error.exit_code
    if isinstance(error, EdgespecError):
        return one_line(str(error)), error.exit_code
    if isinstance(error, MemoryError):
        return "out of memory: choose a smaller context (-c) or a smaller model", 1
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{error.filename}: " if error.filename else ""
        return one_line(f"{where}{error.strerror}; run with --verbose for details"), 1
    name = type(error).__name__
    return one_line(f"internal error, {name}: {error}; run with --verbose for the traceback"), 1
