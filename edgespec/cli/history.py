"""`edgespec history`: conversations on this machine, listed, shown, searched and taken out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from edgespec.cli.options import verbose_option
from edgespec.cli.prompt import read_text
from edgespec.cli.stdout import Stdout
from edgespec.cli.stored import Number, conversation_number, numbered
from edgespec.cli.terminal import is_terminal, printable, valid, write_error
from edgespec.errors import EdgespecError, UsageError
from edgespec.history import Conversation, Entry, History, as_json, as_markdown, from_json, location

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_LIMIT = click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
_JSON = click.option("--json", "as_lines", is_flag=True, help="One JSON object a line.")


@click.group("history", context_settings=_SETTINGS, epilog="N is a number from ls, or last.")
@verbose_option
def history() -> None:
    """Conversations that are kept on this machine.

    To go on with one: edgespec run --continue N.
    """


@history.command("ls", context_settings=_SETTINGS)
@_LIMIT
@_JSON
def ls(limit: int | None, as_lines: bool) -> None:
    """List conversations, the latest first."""
    with _opened() as kept:
        _list(kept.list(limit or -1), as_lines=as_lines)


@history.command("search", context_settings=_SETTINGS)
@click.argument("words", nargs=-1, required=True, type=valid)
@_LIMIT
@_JSON
def search(words: tuple[str, ...], limit: int | None, as_lines: bool) -> None:
    """List conversations with a message, or a title, that has all WORDS."""
    with _opened() as kept:
        found = kept.search(" ".join(words), limit or -1)
        _list(found, as_lines=as_lines)
    if not found:
        raise click.exceptions.Exit(1)


@history.command("show", context_settings=_SETTINGS)
@click.argument("number", metavar="[N]", type=conversation_number, default="last")
def show(number: Number) -> None:
    """Print a conversation as Markdown."""
    _write(as_markdown(_load(number)))


@history.command("export", context_settings=_SETTINGS)
@click.argument("number", metavar="[N]", type=conversation_number, default="last")
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Instead of standard output.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "json"]),
    help="Without it the ending of FILE says; else Markdown.",
)
def export(number: Number, output: str | None, form: str | None) -> None:
    """Write a conversation as Markdown or JSON.

    JSON has everything, and import reads it.
    """
    is_json = form == "json" or (form is None and (output or "").lower().endswith(".json"))
    text = (as_json if is_json else as_markdown)(_load(number))
    if output is None:
        _write(text)
        return
    try:
        with Path(output).open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{output} exists already: give another name") from None
    except OSError as error:
        raise EdgespecError(f"cannot write {output}: {error.strerror or error}") from error


@history.command("import", context_settings=_SETTINGS)
@click.argument("file", type=click.Path())
def import_(file: str) -> None:
    """Keep a conversation from a JSON file that export or /save wrote."""
    conversation = from_json(read_text(file))
    with _opened() as kept:
        _write(f"{kept.add(conversation)}\n")


@history.command("rename", context_settings=_SETTINGS)
@click.argument("number", metavar="N", type=conversation_number)
@click.argument("title", nargs=-1, type=valid)
def rename(number: Number, title: tuple[str, ...]) -> None:
    """Give a conversation a title. Without TITLE its first words are the title again."""
    with _opened() as kept:
        kept.rename(numbered(kept, number), " ".join(title))


@history.command("rm", context_settings=_SETTINGS)
@click.argument("numbers", metavar="N...", nargs=-1, type=conversation_number)
@click.option("--all", "everything", is_flag=True, help="Every conversation; asks first.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def rm(numbers: tuple[Number, ...], everything: bool, yes: bool) -> None:
    """Delete conversations for good."""
    if bool(numbers) == everything:
        raise click.UsageError("give the numbers of the conversations to delete, or --all")
    with _opened() as kept:
        wanted = (
            [entry.id for entry in kept.list()]
            if everything
            else [numbered(kept, number) for number in numbers]
        )
        if everything and wanted and not yes:
            click.confirm(f"Delete all {len(wanted)} conversations?", abort=True, err=True)
        for id in dict.fromkeys(wanted):
            kept.delete(id)


@history.command("path", context_settings=_SETTINGS)
def path() -> None:
    """Print where the history is."""
    _write(f"{location()}\n")


@contextmanager
def _opened() -> Iterator[History]:
    with History(notify=write_error) as opened:
        yield opened


def _load(number: Number) -> Conversation:
    with _opened() as kept:
        return kept.load(numbered(kept, number))


def _list(entries: list[Entry], *, as_lines: bool) -> None:
    if as_lines:
        _write("".join(json.dumps(asdict(entry)) + "\n" for entry in entries))
    elif entries:
        width = max(len(str(entry.id)) for entry in entries)
        _write("".join(_line(entry, width) for entry in entries))
    else:
        write_error("no conversations")


def _line(entry: Entry, width: int) -> str:
    day = datetime.fromtimestamp(entry.updated).astimezone().strftime("%Y-%m-%d %H:%M")
    shown = f"{entry.id:>{width}}  {day}  {entry.turns:>3}  {entry.title}\n"
    return shown + (f"{'':{width}}  {entry.match}\n" if entry.match else "")


def _write(text: str) -> None:
    """A terminal gets nothing that it would obey; a pipe gets the text as it is."""
    Stdout().write(printable(text) if is_terminal(sys.stdout) else text)
