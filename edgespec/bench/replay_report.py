"""Replayed records as text: JSON for programs, a table for people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from edgespec.bench.replay import Replayed


def as_json(results: Iterable[Replayed]) -> str:
    """One list, a row per record and curve."""
    return json.dumps([asdict(result) for result in results]) + "\n"


def as_table(results: Sequence[Replayed]) -> str:
    """A line per curve and category, and one for all categories of a curve."""
    lines = [
        "| curve | category | records | speedup | worst record | accepted / drafted | tokens a round |",
        "|---|---|---|---|---|---|---|",
    ]
    for curve in dict.fromkeys(r.curve for r in results):
        mine = [r for r in results if r.curve == curve]
        categories = dict.fromkeys(r.category for r in mine)
        lines += [_line(curve, name, [r for r in mine if r.category == name]) for name in categories]
        lines.append(_line(curve, "all", mine))
    lines += [
        "",
        "speedup: time of plain decoding / time with the controller, geometric mean over records, from the"
        " first output token on. accepted / drafted: of the tokens that were verified.",
    ]
    return "\n".join(lines) + "\n"


def _line(curve: str, category: str, results: Sequence[Replayed]) -> str:
    timed = [r for r in results if r.policy_ms > 0]
    drafted, accepted = sum(r.draft_n for r in results), sum(r.draft_n_accepted for r in results)
    rounds = sum(r.rounds for r in results)
    speedup = worst = "-"
    if timed:
        mean = math.exp(sum(math.log(_speedup(r)) for r in timed) / len(timed))
        least = min(timed, key=_speedup)
        speedup, worst = f"{mean:.2f}x", f"{_speedup(least):.2f}x {least.id}"
    each = f"{(rounds + accepted) / rounds:.2f}" if rounds else "-"
    cells = (curve, category or "-", str(len(results)), speedup, worst, f"{accepted} / {drafted}", each)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _speedup(result: Replayed) -> float:
    return result.plain_ms / result.policy_ms
