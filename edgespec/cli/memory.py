"""`edgespec memory`: past answers that may be copied from, shown and deleted."""

from __future__ import annotations

import click

from edgespec.cli.options import verbose_option
from edgespec.cli.stdout import Stdout
from edgespec.cli.tables import columns
from edgespec.cli.terminal import write_error
from edgespec.memory import clear, kept, location

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group("memory", context_settings=_SETTINGS)
@verbose_option
def memory() -> None:
    """Past answers that edgespec run guesses from: token ids, on this machine only.

    edgespec run --no-memory does without; edgespec config set memory false for good.
    """


@memory.command("show", context_settings=_SETTINGS)
def show() -> None:
    """Print how much is kept of which model's answers."""
    models = kept()
    if not models:
        write_error("no answers are kept")
        return
    rows = [(one.model, f"{one.answers:,} answers", f"{one.size / 1e6:,.2f} MB") for one in models]
    Stdout().write(columns(rows, right=(1, 2)) + "\n")


@memory.command("clear", context_settings=_SETTINGS)
def clear_() -> None:
    """Delete all of it for good."""
    if not clear():
        write_error("no answers are kept")


@memory.command("path", context_settings=_SETTINGS)
def path() -> None:
    """Print where it is."""
    Stdout().write(f"{location()}\n")
