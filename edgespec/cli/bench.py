"""`edgespec bench`: measure plain decoding and ways to speculate on the same prompts."""

from __future__ import annotations

from typing import Any

import click

from edgespec.cli.options import Command, Number, Option, model_options, verbose_option
from edgespec.cli.references import ModelReference, chosen


@click.command(
    "bench",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Figures are explained below the table and in docs/benchmarking.md.",
)
@click.argument("reference", metavar="[MODEL]", required=False, type=ModelReference())
@model_options
@click.option(
    "--spec",
    cls=Option,
    section="What is measured",
    metavar="LIST",
    help="Configurations joined by commas: auto, all, or what run --spec takes; a + joins proposers"
    " into one (suffix+draft). all measures each but memory. Plain decoding is always measured."
    "  [default: auto, and draft with -md]",
)
@click.option(
    "--prompts",
    cls=Option,
    section="What is measured",
    type=click.Path(),
    metavar="FILE",
    help="JSON lines of {id, category, turns} or {prompt}, or one prompt a line; else a packaged suite.",
)
@click.option(
    "-n",
    "--predict",
    "--n-predict",
    "predict",
    cls=Option,
    section="What is measured",
    type=click.IntRange(min=2),
    default=128,
    metavar="N",
    help="Most tokens of an answer.",
)
@click.option(
    "-r",
    "--repetitions",
    cls=Option,
    section="What is measured",
    type=click.IntRange(min=1),
    default=3,
    metavar="N",
    help="Answers of each configuration to each prompt.",
)
@click.option(
    "--temp",
    cls=Option,
    section="What is measured",
    type=Number(min=0),
    default=0.0,
    metavar="X",
    help="Temperature; all configurations share the seeds.",
)
@click.option(
    "--draft-max",
    cls=Option,
    section="What is measured",
    type=click.IntRange(min=0),
    default=32,
    metavar="N",
    help="Most drafted tokens a round.",
)
@click.option(
    "--numerics",
    cls=Option,
    section="What is measured",
    type=click.Choice(["auto", "exact", "near"]),
    default="auto",
    help="exact: only passes whose rows equal plain decoding bit for bit.",
)
@click.option(
    "--against",
    cls=Option,
    section="What is measured",
    metavar="URL",
    help="Also measure a server: the base of an OpenAI-compatible API, or llama-server's /completion.",
)
@click.option(
    "--record",
    cls=Option,
    section="What is measured",
    type=click.Path(),
    metavar="FILE",
    help="Do not measure: write the greedy answers as traces for edgespec replay.",
)
@click.option(
    "--extend",
    cls=Option,
    section="What is measured",
    type=click.Path(),
    metavar="TRACES",
    help="With --record: take the answers of these traces, and add what the models make of them.",
)
@click.option(
    "-o",
    "--output",
    "output",
    cls=Option,
    section="Output",
    type=click.Choice(["md", "json", "jsonl", "csv"]),
    default="md",
    help="Form of the report.",
)
@click.option(
    "--accept-if",
    cls=Option,
    section="Output",
    metavar="EXPR",
    help="Such as 'speedup>=1.1 and ttft<=0.5', for the first configuration over all prompts: prints"
    " adopt or do not adopt, exits with 0 or 1.",
)
@click.option(
    "--save",
    cls=Option,
    section="Output",
    is_flag=False,
    flag_value="",
    type=click.Path(),
    metavar="[FILE]",
    show_default=False,
    help="Keep every measurement, in the user's data directory without FILE. Give it last.",
)
@click.option(
    "--compare",
    cls=Option,
    section="Output",
    nargs=2,
    type=click.Path(),
    metavar="A B",
    help="Show what changed between two saved files, instead of measuring.",
)
@click.option(
    "--anyway",
    cls=Option,
    section="Output",
    is_flag=True,
    help="Compare although models, prompts or limits are not the same.",
)
@verbose_option
def bench(reference: str | None, **options: Any) -> None:
    """Measure what speculation brings on this machine, with one loaded model.

    Plain decoding and every configuration take turns on the same prompts. MODEL is as in edgespec run.
    """
    model = chosen(reference, options)
    if options["anyway"] and options["compare"] is None:
        raise click.UsageError("--anyway belongs to --compare A B")
    if options["extend"] and not options["record"]:
        raise click.UsageError("--extend TRACES belongs to --record FILE")
    from edgespec.cli import benching

    if options["compare"] is not None:
        code = benching.compare(*options["compare"], anyway=options["anyway"])
    else:
        code = benching.Bench(model, options).run()
    if code:
        raise click.exceptions.Exit(code)
