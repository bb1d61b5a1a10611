"""`edgespec convert`: a GGUF model as a folder for another backend."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from edgespec.cli.options import Command, Option, verbose_option

_PATIENCE = 10.0
"""Seconds to leave without a trace; the conversion asks several times a second whether it is to go on."""


@click.command(
    "convert",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.argument("reference", metavar="MODEL", type=click.Path())
@click.option(
    "--to",
    "form",
    cls=Option,
    required=True,
    type=click.Choice(["onnx", "mlx"]),
    help="The backend that is to run it.",
)
@click.option(
    "-o",
    "--output",
    "output",
    cls=Option,
    type=click.Path(path_type=Path),
    metavar="DIR",
    show_default=False,
    help="A new folder; without it the cache, where edgespec run --backend finds it.",
)
@verbose_option
def convert(reference: str, form: str, output: Path | None) -> None:
    """Write MODEL, as in edgespec run, in the form of another backend, and print the folder.

    Blocks of weights are copied where the form has the same ones; others are rounded, and the error is told.
    """
    from edgespec import hub
    from edgespec.cli.console import Console
    from edgespec.cli.stdout import Stdout
    from edgespec.cli.worker import Worker
    from edgespec.convert import convert as into
    from edgespec.convert import prepare
    from edgespec.errors import Cancelled

    console = Console(sys.stderr)

    def job() -> Path:
        def step(label: str, share: float) -> None:
            worker.check()
            console.step(label, share)

        def arrived(done: int, total: int, label: str) -> None:
            step(label, done / total if total else 0.0)

        def converted(share: float) -> None:
            step(f"converting {source.name}", share)

        source = hub.resolve(reference, progress=arrived, notify=console.say)
        if output is None:
            return prepare(source, form, notify=console.say, progress=converted)
        return into(source, form, output, notify=console.say, progress=converted)

    with Worker(console.draw) as worker:
        worker.goodbyes.append(console.done)
        try:
            folder = worker.run(job, patience=_PATIENCE)
        except Cancelled:
            if worker.signal is None:
                raise
            raise click.exceptions.Exit(worker.exit_code) from None
        finally:
            console.done()
    Stdout().write(f"{folder}\n")
