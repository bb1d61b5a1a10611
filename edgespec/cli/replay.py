"""`edgespec replay`: what the controller would make of recorded answers, with no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from edgespec.cli.options import Command, Option, verbose_option


@click.command(
    "replay",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Traces are written by: edgespec bench --record FILE",
)
@click.argument("traces", metavar="TRACES.jsonl", type=click.Path(path_type=Path))
@click.option(
    "--curve",
    "curves",
    cls=Option,
    required=True,
    type=click.Path(path_type=Path),
    metavar="CURVES.json",
    help="What passes cost: {name: {n: [rows], ms: [...], draft_ms: x, draft_row: y}}.",
)
@click.option(
    "--spec",
    cls=Option,
    metavar="LIST",
    help="Who may propose, joined by commas: suffix, recycling, draft.  [default: all three]",
)
@click.option("--no-draft", cls=Option, is_flag=True, help="Leave the recorded draft model out.")
@click.option("--no-trees", cls=Option, is_flag=True, help="Drafts are chains.")
@click.option("--warm", cls=Option, is_flag=True, help="Keep what was learnt from one record to the next.")
@click.option(
    "-o",
    "--output",
    "form",
    cls=Option,
    type=click.Choice(["md", "json"]),
    default="md",
    help="A table of speedups, or one JSON list of a row per record and curve.",
)
@verbose_option
def replay(traces: Path, curves: Path, form: str, **how: Any) -> None:
    """Drive the controller over recorded answers under given costs of passes.

    Time counts from the first output token on; plain decoding takes one pass of one row a token.
    """
    from edgespec.bench import replay as bench
    from edgespec.bench import traces as files
    from edgespec.bench.replay_report import as_json, as_table
    from edgespec.cli.stdout import Stdout

    spec = bench.SPEC if how["spec"] is None else tuple(how["spec"].lower().split(","))
    if unknown := set(spec) - set(bench.SPEC):
        raise click.UsageError(
            f"--spec takes {', '.join(bench.SPEC)}, joined by commas; not {min(unknown)!r}"
        )
    if how["no_draft"]:
        spec = tuple(name for name in spec if name != "draft")
    records, costs = files.read_records(traces), files.read_curves(curves)
    results = list(bench.replay(records, costs, spec=spec, warm=how["warm"], trees=not how["no_trees"]))
    Stdout().write(as_json(results) if form == "json" else as_table(results))
