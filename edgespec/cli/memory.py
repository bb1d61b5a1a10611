"""`edgespec memory`: past answers and files that may be copied from: added, shown and deleted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from edgespec.cli.failure import explain
from edgespec.cli.options import verbose_option
from edgespec.cli.prompt import InputError, read_input, read_text
from edgespec.cli.references import ModelReference
from edgespec.cli.stdout import put
from edgespec.cli.tables import columns
from edgespec.cli.terminal import one_line, write_error
from edgespec.memory import MOST_BYTES, clear, kept, location

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_PATIENCE = 2.0
"""Seconds to leave by itself: some tens of thousands of characters are cut into tokens at a time."""


@click.group("memory", context_settings=_SETTINGS)
@verbose_option
def memory() -> None:
    """Past answers and files that edgespec run guesses from: token ids, on this machine only.

    edgespec run --no-memory does without; edgespec config set memory false for good.
    """


@memory.command("add", context_settings=_SETTINGS)
@click.argument("reference", metavar="MODEL", type=ModelReference())
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
def add(reference: str, files: tuple[str, ...]) -> None:
    """Have MODEL's answers guessed from text files, too, without their being in the prompt.

    MODEL is as in edgespec run, FILE - is standard input. A file that was added before is kept as it is now.
    """
    from edgespec.cli.answer import memory_of
    from edgespec.cli.run import run

    options = run.make_context("edgespec run", ["--", reference]).params
    if memory_of(options) == "off":
        raise click.ClickException(
            "the memory is off, so nothing is kept: edgespec config unset memory, or unset EDGESPEC_MEMORY"
        )
    texts, failed = _texts(files)
    if texts:
        failed = _keep(reference, options, texts) or failed
    if failed:
        raise click.exceptions.Exit(failed)


def _texts(files: Sequence[str]) -> tuple[dict[str, str], int]:
    """Those that can be read, and the exit code for the others, which are told."""
    texts, failed = dict[str, str](), 0
    for file in files:
        try:
            text = read_input(MOST_BYTES) if file == "-" else read_text(file, MOST_BYTES)
            if "\0" in text:
                raise InputError(f"{_title(file)} is no text: it has zero bytes")
            texts[file] = text
        except InputError as error:
            message, failed = explain(error)
            write_error(message)
    return texts, failed


def _keep(reference: str, options: dict[str, Any], texts: dict[str, str]) -> int:
    """The exit code. What is kept is told file by file."""
    from edgespec.api.texts import TextError, TextMemory
    from edgespec.cli.answer import load_settings, native_options
    from edgespec.cli.console import Console
    from edgespec.cli.worker import Worker
    from edgespec.errors import Cancelled

    console = Console(sys.stderr)

    def progress(label: str, share: float) -> None:
        worker.check()
        console.step(label, share)

    def keep(memory: TextMemory, file: str, text: str) -> int:
        name = None if file == "-" else str(Path(file).resolve())
        try:
            n = memory.keep(text, name, lambda share: progress(f"reading {file}", share))
        except TextError as error:
            console.done()
            write_error(one_line(f"{_title(file)} is not kept: {error}"))
            return error.exit_code
        console.done()
        put(one_line(f"{_title(file)}: {n:,} tokens"))
        return 0

    def job() -> int:
        settings = load_settings(options, console.say, progress)
        memory = TextMemory(reference, settings, **native_options(options))
        return max([keep(memory, file, text) for file, text in texts.items()])

    with Worker(console.draw) as worker:
        worker.goodbyes.append(console.done)
        try:
            return worker.run(job, patience=_PATIENCE)
        except Cancelled:
            raise click.exceptions.Exit(worker.exit_code) from None
        finally:
            console.done()


def _title(file: str) -> str:
    return "standard input" if file == "-" else file


@memory.command("show", context_settings=_SETTINGS)
def show() -> None:
    """Print how much is kept for which model."""
    models = kept()
    if not models:
        write_error("nothing is kept")
        return
    rows = [
        (one.model, f"{one.answers:,} answers", f"{one.files:,} files", f"{one.size / 1e6:,.2f} MB")
        for one in models
    ]
    put(columns(rows, right=(1, 2, 3)))


@memory.command("clear", context_settings=_SETTINGS)
def clear_() -> None:
    """Delete all of it for good."""
    if not clear():
        write_error("nothing is kept")


@memory.command("path", context_settings=_SETTINGS)
def path() -> None:
    """Print where it is."""
    put(f"{location()}")
