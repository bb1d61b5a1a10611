"""Files that `edgespec replay` reads: recorded answers, and what passes cost."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from edgespec.errors import UsageError

_MOST_IDS = 1 << 22


@dataclass(frozen=True, slots=True)
class Record:
    """A prompt, the target's answer, and what the models made of each position of it.

    `match`, `p`: is the draft model's first choice right, and how likely does it find it? `top`: its
    likeliest (id, probability). `best`: the target's likeliest ids, the answer's own first. All may be empty.
    """

    id: str
    category: str
    prompt: tuple[int, ...]
    output: tuple[int, ...]
    match: tuple[bool, ...] = ()
    p: tuple[float, ...] = ()
    top: tuple[tuple[tuple[int, float], ...], ...] = ()
    best: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds of a verify pass by rows, linear between the points, and of one drafted token.

    `draft_row`: what another row adds to a pass of the draft model, as a share of one row; None where that
    was not measured: then as much as to the target's, of up to 8 rows, since both run on one device.
    """

    rows: tuple[int, ...]
    seconds: tuple[float, ...]
    draft: float
    draft_row: float | None = None

    @property
    def row(self) -> float:
        """What another row adds to a pass of the draft model, as a share of one row."""
        return (self.verify(8) / self.verify(1) - 1.0) / 7 if self.draft_row is None else self.draft_row

    def verify(self, n: int) -> float:
        rows, seconds = self.rows, self.seconds
        if n >= rows[-1]:
            return seconds[-1] * n / rows[-1]
        j = bisect_right(rows, n) - 1
        return seconds[j] + (seconds[j + 1] - seconds[j]) * (n - rows[j]) / (rows[j + 1] - rows[j])


def read_traces(path: Path) -> list[dict[str, Any]]:
    """The records as they are in the file. Raises UsageError where a line is not a record."""
    return [trace for trace, _ in _traces(path)]


def read_records(path: Path) -> list[Record]:
    """Raises UsageError where a line is not a record."""
    return [record for _, record in _traces(path)]


def _traces(path: Path) -> Iterator[tuple[dict[str, Any], Record]]:
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            trace: dict[str, Any] = json.loads(line)
            record = _record(trace)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise UsageError(f"{path}: line {number} is not a trace record: {error!r}") from error
        n = len(record.output)
        if len(record.match) != len(record.p) or len(record.match) not in (0, n):
            raise UsageError(f"{path}: line {number}: match and p must say something of every output token")
        ids = chain(record.prompt, record.output, *record.best, (id for top in record.top for id, _ in top))
        if not all(0 <= token < _MOST_IDS for token in ids):
            raise UsageError(f"{path}: line {number}: ids of tokens lie between 0 and {_MOST_IDS:,}")
        if len(record.best) not in (0, n) or len(record.top) not in (0, n) or not all(record.best):
            raise UsageError(f"{path}: line {number}: best and top must say something of every output token")
        yield trace, record


def _record(trace: dict[str, Any]) -> Record:
    draft = trace.get("draft") or {"match": [], "p": []}
    return Record(
        str(trace["id"]),
        str(trace.get("category", "")),
        tuple(map(int, trace["prompt"])),
        tuple(map(int, trace["output"])),
        tuple(map(bool, draft["match"])),
        tuple(map(float, draft["p"])),
        tuple(tuple((int(token), float(p)) for token, p in found) for found in draft.get("top", ())),
        tuple(tuple(map(int, ids)) for ids in trace.get("best", ())),
    )


def read_curves(path: Path) -> dict[str, Curve]:
    """Raises UsageError where the file is not a table of curves."""
    try:
        curves = {}
        content = json.loads(_text(path))
        if not isinstance(content, dict) or not content:
            raise ValueError("expected {name: {n: [rows], ms: [...], draft_ms: x}}")
        for name, c in content.items():
            if not isinstance(c, dict) or not all(isinstance(c.get(key), list) for key in ("n", "ms")):
                raise ValueError(f"{name}: n and ms must be lists of numbers")
            rows, seconds = tuple(c["n"]), tuple(float(ms) / 1e3 for ms in c["ms"])
            draft = float(c.get("draft_ms", 0.0)) / 1e3
            row = None if c.get("draft_row") is None else float(c["draft_row"])
            whole = all(isinstance(n, int) for n in rows)
            if not whole or rows[:1] != (1,) or len(rows) != len(seconds) or list(rows) != sorted(set(rows)):
                raise ValueError(f"{name}: n must rise from 1 in whole numbers, with one ms for each")
            if not all(0 < s < math.inf for s in seconds) or not 0 <= draft < math.inf:
                raise ValueError(f"{name}: ms must be above 0")
            if row is not None and not 0 <= row < math.inf:
                raise ValueError(f"{name}: draft_row must be at least 0")
            curves[str(name)] = Curve(rows, seconds, draft, row)
        return curves
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise UsageError(f"{path} is not a file of cost curves: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
