"""`edgespec doctor`: what this machine makes of a model, and what is set badly."""

from __future__ import annotations

from typing import Any

import click

from edgespec.cli.options import Command, Option, model_options, verbose_option
from edgespec.cli.references import ModelReference, chosen


@click.command(
    "doctor",
    cls=Command,
    context_settings={
        "auto_envvar_prefix": "EDGESPEC",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
)
@click.argument("reference", metavar="[MODEL]", required=False, type=ModelReference())
@model_options
@click.option(
    "--measure",
    cls=Option,
    section="What is measured",
    is_flag=True,
    help="Compare the backends that can load the model anew, for --backend auto.",
)
@click.option(
    "--json", "as_json", cls=Option, section="Output", is_flag=True, help="One JSON object: all sections."
)
@verbose_option
def doctor(reference: str | None, **options: Any) -> None:
    """Look at this machine, measure what passes of a model cost on it, and say what is set badly.

    MODEL is as in edgespec run, and so are the options that it is loaded with, variables included. Nothing is
    fetched: without a model on this machine only the machine is looked at.
    """
    model = chosen(reference, options)
    from edgespec.cli.doctoring import Visit

    code = Visit(model, options).run()
    if code:
        raise click.exceptions.Exit(code)
