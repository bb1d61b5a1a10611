"""`edgespec pull`: bring models to this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from edgespec import hub
from edgespec.cli.console import Console
from edgespec.cli.failure import explain
from edgespec.cli.options import Command, Option, verbose_option
from edgespec.cli.references import ModelReference, repository
from edgespec.cli.stdout import Stdout
from edgespec.cli.terminal import has_style, write_error
from edgespec.cli.worker import Worker
from edgespec.errors import Cancelled, EdgespecError

PATIENCE = 0.45
"""Seconds that an interrupted download may take to end by itself."""
_LINES = 10
"""Lines of progress for a reader that is no terminal."""


@click.command(
    "pull",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE and the proxy variables are respected. "
    "EDGESPEC_MODELS is the folder that models are kept in.",
)
@click.argument("references", metavar="MODEL...", nargs=-1, type=ModelReference())
@click.option(
    "-hf",
    "--hf-repo",
    cls=Option,
    multiple=True,
    metavar="ORG/REPO[:QUANT]",
    help="The same as MODEL, for a repository of Hugging Face.",
)
@verbose_option
def pull(references: tuple[str, ...], hf_repo: tuple[str, ...]) -> None:
    """Fetch models, and print where they are.

    MODEL is a name of the catalogue (smollm2:135m), or a Hugging Face repository with a quantisation
    (org/repo:Q4_K_M; without one Q4_K_M or the nearest) or with a file (hf:org/repo/file.gguf). What was
    interrupted goes on where it ended.
    """
    references += tuple(repository(repo) for repo in hf_repo)
    if not references:
        raise click.UsageError("no model: name one, as in edgespec pull smollm2:135m")
    console = Console(sys.stderr)
    code = 0
    with Worker(console.draw) as worker:
        worker.goodbyes.append(lambda: _stopped(console))
        for reference in references:
            fetching = _Fetching(reference, worker, console)
            try:
                path = worker.run(fetching.resolve, patience=PATIENCE)
            except Cancelled:
                _stopped(console)
                code = worker.exit_code
                break
            except EdgespecError as error:
                console.done()
                if len(references) == 1:
                    raise
                message, failed = explain(error)
                write_error(message)
                code = code or failed
            else:
                console.done()
                Stdout().write(f"{path}\n")
    if code:
        raise click.exceptions.Exit(code)


def _stopped(console: Console) -> None:
    console.say("stopped: the same command goes on with what is here")


class _Fetching:
    """One reference; its progress is a bar on a terminal, a few lines elsewhere."""

    def __init__(self, reference: str, worker: Worker, console: Console) -> None:
        self._reference, self._worker, self._console = reference, worker, console
        self._moves = has_style(sys.stderr)
        self._told = 0

    def resolve(self) -> Path:
        return hub.resolve(self._reference, progress=self._progress, notify=self._console.say)

    def _progress(self, done: int, total: int, label: str) -> None:
        self._worker.check()
        share = done / total if total else 0.0
        if self._moves:
            self._console.step(label, share)
        elif (reached := int(share * _LINES)) > self._told:
            self._told = reached
            self._console.say(f"{label} ({share:.0%})")
