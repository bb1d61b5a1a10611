"""The `edgespec` command: finds the subcommand and turns every failure into one line and an exit code."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import click

from edgespec import __version__
from edgespec.cli.failure import NobodyReadsError, explain
from edgespec.cli.terminal import fill_closed_descriptors, silence, write_error


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that is imported when it is called; `help` is all that the list of commands needs."""

    module: str
    attribute: str
    help: str


COMMANDS = {
    "run": Entry("edgespec.cli.run", "run", "Answer a prompt, or chat."),
    "history": Entry("edgespec.cli.history", "history", "Conversations: list, show, search, export, delete."),
    "memory": Entry(
        "edgespec.cli.memory", "memory", "Past answers and files to guess from: add, show, clear."
    ),
    "config": Entry("edgespec.cli.config", "config", "Settings that run starts with."),
    "pull": Entry("edgespec.cli.pull", "pull", "Fetch models."),
    "bench": Entry("edgespec.cli.bench", "bench", "Measure what speculation brings on this machine."),
    "doctor": Entry("edgespec.cli.doctor", "doctor", "Look at this machine, and say what is set badly."),
    "ls": Entry("edgespec.cli.listing", "ls", "List the models on this machine."),
    "show": Entry("edgespec.cli.show", "show", "Show what a model is, and which models may draft for it."),
    "search": Entry("edgespec.cli.listing", "search", "Search the catalogue."),
    "rm": Entry("edgespec.cli.remove", "rm", "Delete a model from edgespec's store."),
    "convert": Entry(
        "edgespec.cli.convert", "convert", "Write a GGUF model as a folder for ONNX Runtime or MLX."
    ),
    "replay": Entry(
        "edgespec.cli.replay", "replay", "Try the controller on recorded answers, with no model."
    ),
}


@dataclass(slots=True)
class Report:
    """How failures are told."""

    verbose: bool = False


class Commands(click.Group):
    """Subcommands by name, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(importlib.import_module(entry.module), entry.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: edgespec run",
)
@click.version_option(__version__, prog_name="edgespec", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Run a local language model faster, without changing what it says."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    fill_closed_descriptors()
    report = Report()
    try:
        code = cli.main(argv, prog_name="edgespec", standalone_mode=False, obj=report)
        if sys.stdout is not None:
            sys.stdout.flush()
    except NobodyReadsError as error:
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        code = 130
    except Exception as error:
        if report.verbose:
            traceback.print_exc()
        message, code = explain(error)
        write_error(message)
    silence(sys.stdout)
    silence(sys.stderr)
    return code if isinstance(code, int) else 0
