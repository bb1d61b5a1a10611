"""Results as text: a table to paste, JSON, JSON lines, CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from edgespec.bench.answers import PLAIN
from edgespec.bench.rows import Row
from edgespec.bench.stats import Ratio

Format = Literal["md", "json", "jsonl", "csv"]
Facts = dict[str, Any]
"""What was measured, with what, on which machine; see `saved.facts`."""


def written(format: Format, facts: Facts, rows: Sequence[Row]) -> str:
    """The whole report, with its last line end."""
    if format == "json":
        return json.dumps({**facts, "rows": [row.as_dict() for row in rows]}, ensure_ascii=False) + "\n"
    if format == "jsonl":
        lines = [{"type": "header", **facts}, *({"type": "row", **row.as_dict()} for row in rows)]
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    if format == "csv":
        return _csv(rows)
    return markdown(facts, rows)


def _csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    records = [row.as_dict() for row in rows]
    writer = csv.DictWriter(out, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def markdown(facts: Facts, rows: Sequence[Row]) -> str:
    """Machine, model and command as a list, then the table, then what the figures mean."""
    return "\n".join([*_head(facts), "", *_table(rows), "", *_foot(facts, rows), ""])


def _head(f: Facts) -> list[str]:
    memory = f["peak_memory"]
    settings = f["settings"]
    lines = [
        f"edgespec {f['versions']['edgespec']} bench, {f['date']}",
        f"model: {f['model']['name']}, {f['model']['quantization']}, file {f['model']['file']}"
        + "".join(f"; {which} {f[which]['file']}" for which in ("draft", "cascade") if f.get(which)),
        f"machine: {f['machine']}; {f['model']['backend']} on {f['model']['device']},"
        f" {f['model']['settings'].get('n_threads', '?')} threads",
        f"command: `{f['command']}`",
        f"prompts: {f['prompts']['name']}, {f['prompts']['count']}; at most {settings['n']} tokens,"
        f" {settings['repetitions']} repetitions, temperature {settings['temperature']:g}",
        f"numerics: {settings['numerics']} ({settings['numerics_reason']})",
    ]
    if memory is not None:
        lines.append(f"peak memory of the process: {memory / 2**20:,.0f} MiB")
    if not f["complete"]:
        lines.append(f"**stopped early**: {f['done']} of {f['planned']} measurements")
    return [f"- {line}" for line in lines]


_Column = tuple[str, Callable[[Row], str]]


def _table(rows: Sequence[Row]) -> list[str]:
    columns: list[_Column] = [
        ("category", lambda r: r.category),
        ("configuration", lambda r: r.configuration),
        ("tok/s", lambda r: number(r.tokens_per_second, ".1f")),
        ("speedup (95%)", lambda r: "1" if r.configuration == PLAIN else ratio(r.speedup)),
        ("first token s", lambda r: number(r.ttft, ".3f")),
        ("ms between tokens p50 / p95 / p99", _between),
        ("pause ms p99", lambda r: number(r.pause_p99, ".1f", 1000)),
        ("accepted", lambda r: number(r.acceptance_rate, ".0%")),
        ("tokens a round", lambda r: number(r.mean_acceptance_length, ".2f")),
        ("J a token", lambda r: number(r.joules_per_token, ".2f")),
        ("differ", lambda r: "" if r.configuration == PLAIN else f"{r.differ} of {r.answers}"),
    ]
    if all(row.joules_per_token is None for row in rows):
        columns = [column for column in columns if column[0] != "J a token"]
    return table([title for title, _ in columns], ([cell(row) for _, cell in columns] for row in rows))


def _between(row: Row) -> str:
    if row.itl_p50 is None:
        return ""
    return " / ".join(number(ms, ".1f", 1000) for ms in (row.itl_p50, row.itl_p95, row.itl_p99))


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A markdown table that also reads well as plain text."""
    cells = [list(titles), *([text.replace("|", "\\|") for text in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def number(value: float | None, spec: str, times: float = 1) -> str:
    return "" if value is None else f"{value * times:{spec}}"


def ratio(r: Ratio | None) -> str:
    if r is None:
        return ""
    interval = "" if r.low is None or r.high is None else f" ({r.low:.2f} to {r.high:.2f})"
    return f"{r.value:.2f}{interval}"


_MEANING = (
    "tok/s: median over answers of tokens after the first / time from it to the end, the prompt being"
    " cached. speedup: ratio of the medians, bootstrap over pairs of prompt and repetition. first token:"
    " from an empty cache. Tokens that arrive together share their pause. accepted: of verified drafted"
    " tokens. tokens a round: emitted tokens / passes, the prompt's included."
)


def _foot(f: Facts, rows: Sequence[Row]) -> list[str]:
    lines = [_MEANING]
    found = f["differences"]
    if found:
        why = _why(f)
        for d in found[:8]:
            place = f"{d['prompt']}, turn {d['turn'] + 1}, repetition {d['repetition'] + 1}"
            reason = why if d["configuration"] in f["configurations"] else "another runtime"
            lines.append(f"- differs: {d['configuration']}, {place}, from {d['position']} on: {reason}")
        if len(found) > 8:
            lines.append(f"- and {len(found) - 8} more that differ")
    elif any(row.configuration != PLAIN for row in rows):
        lines.append("Every answer is the plain one, token for token.")
    return lines


def _why(f: Facts) -> str:
    if f["settings"]["numerics"] == "exact":
        return "this must not happen with exact numerics; please report it"
    return "near numerics: rows computed together differ slightly from rows computed alone"
