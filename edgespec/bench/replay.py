"""The real controller and proposers over recorded outputs, under a given cost curve, with no model."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from edgespec.backends.base import Capabilities
from edgespec.control import Calibration, Controller, CostModel
from edgespec.engine.step import Decoder, Run
from edgespec.engine.teaching import Teaching
from edgespec.errors import UsageError
from edgespec.proposers import Proposer, SuffixProposer
from edgespec.proposers.guided import guided
from edgespec.types import Draft, FloatArray, Plan, Source, Tokens, Verdict
from edgespec.verify import verify_coupled

CALIBRATED_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
_MOST_ROWS = 65
_NEVER, _END = -1, -2


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds of a verify pass by rows, linear between the points, and of one drafted token."""

    rows: tuple[int, ...]
    seconds: tuple[float, ...]
    draft: float

    def verify(self, n: int) -> float:
        rows, seconds = self.rows, self.seconds
        if n >= rows[-1]:
            return seconds[-1] * n / rows[-1]
        j = bisect_right(rows, n) - 1
        return seconds[j] + (seconds[j + 1] - seconds[j]) * (n - rows[j]) / (rows[j + 1] - rows[j])


@dataclass(frozen=True, slots=True)
class Record:
    """A prompt, the target's answer, and what a draft model would have made of each position."""

    id: str
    category: str
    prompt: tuple[int, ...]
    output: tuple[int, ...]
    match: tuple[bool, ...]
    top: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One record under one curve. Times are milliseconds from the first output token."""

    id: str
    category: str
    curve: str
    plain_ms: float
    policy_ms: float
    rounds: int
    draft_n: int
    draft_n_accepted: int


def read_records(path: Path) -> list[Record]:
    """Raises UsageError where a line is not a record."""
    records = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            r: dict[str, Any] = json.loads(line)
            draft = r.get("draft") or {"match": [], "p": []}
            records.append(
                Record(
                    str(r["id"]),
                    str(r.get("category", "")),
                    tuple(map(int, r["prompt"])),
                    tuple(map(int, r["output"])),
                    tuple(map(bool, draft["match"])),
                    tuple(map(float, draft["p"])),
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise UsageError(f"{path}: line {number} is not a trace record: {error!r}") from error
        if len(records[-1].match) != len(records[-1].top):
            raise UsageError(f"{path}: line {number}: match and p of the draft must have the same length")
    return records


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
            whole = all(isinstance(n, int) for n in rows)
            if not whole or rows[:1] != (1,) or len(rows) != len(seconds) or list(rows) != sorted(set(rows)):
                raise ValueError(f"{name}: n must rise from 1 in whole numbers, with one ms for each")
            if not all(0 < s < math.inf for s in seconds) or not 0 <= draft < math.inf:
                raise ValueError(f"{name}: ms must be above 0")
            curves[str(name)] = Curve(rows, seconds, draft)
        return curves
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise UsageError(f"{path} is not a file of cost curves: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error


class _Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class _ReplayedTarget:
    """A backend that takes the time of the curve and computes nothing."""

    n_vocab = 1
    n_ctx = 1 << 30
    capabilities = Capabilities("exact", True, False, _MOST_ROWS)

    def __init__(self, curve: Curve, time: _Time) -> None:
        self._curve, self._time = curve, time
        self._nothing = np.zeros((0, 1), np.float32)
        self.length = 0

    def forward(
        self,
        tokens: Tokens,
        parents: Sequence[int] | None = None,
        *,
        rows: Literal["all", "last", "none"] = "all",
    ) -> FloatArray:
        self._time.now += self._curve.verify(len(tokens))
        return self._nothing

    def commit(self, keep: Sequence[int]) -> None:
        self.length += len(keep)

    def truncate(self, length: int) -> None:
        self.length = length

    def abort(self, on: bool) -> None:
        pass

    def close(self) -> None:
        pass


class _RecordedDraft:
    """The draft model as recorded: right where it matched, given that all before was right."""

    name: Source = "draft"

    def __init__(self, record: Record, curve: Curve, time: _Time, guide: SuffixProposer) -> None:
        self._record, self._curve, self._time, self._guide = record, curve, time, guide

    def begin(self, history: Tokens) -> None:
        pass

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        r = self._record
        start = len(history) - len(r.prompt)

        def draw(path: list[int]) -> tuple[int, float]:
            self._time.now += self._curve.draft
            at = start + len(path)
            return (r.output[at] if r.match[at] else _NEVER), r.top[at]

        most = min(plan.max_draft, len(r.match) - start)
        return guided(draw, self._guide.match(history), plan, most)

    def observe(self, verdict: Verdict) -> None:
        pass


class _RecordedJudge:
    """The target says what it said."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def __call__(self, draft: Draft, rows: FloatArray, history: Sequence[int]) -> Verdict:
        at, output = len(history) - len(self._record.prompt), self._record.output

        def choose(_: int, path: Sequence[int]) -> int:
            i = at + len(path)
            return output[i] if i < len(output) else _END

        return verify_coupled(draft, choose)

    def guess(self, row: FloatArray, history: Sequence[int], path: Sequence[int]) -> int:
        raise NotImplementedError("what the target would have said otherwise is not recorded")


def calibrate(curve: Curve, *, draft: bool) -> CostModel:
    """What is measured when a model is loaded, before the first token: some row counts, the draft."""
    return CostModel({n: curve.verify(n) for n in CALIBRATED_ROWS}, {"draft": curve.draft} if draft else None)


def replay(
    records: Iterable[Record],
    curves: Mapping[str, Curve],
    *,
    draft: bool = True,
    warm: bool = False,
    trees: bool = True,
) -> Iterator[Replayed]:
    """Each record under each curve. Every one starts cold, unless `warm` keeps what was learnt.

    `trees`: copying drafts branch. What else the draft model found likely is not recorded: it drafts chains.
    """
    records = list(records)
    for name, curve in curves.items():
        kept = Calibration()
        for record in records:
            yield _replay_one(record, name, curve, draft, trees, kept if warm else Calibration())


def _replay_one(
    record: Record, name: str, curve: Curve, draft: bool, trees: bool, calibration: Calibration
) -> Replayed:
    time = _Time()
    uses_draft = draft and any(record.top)
    sources: tuple[Source, ...] = ("suffix", "draft") if uses_draft else ("suffix",)
    controller = Controller(sources, calibrate(curve, draft=uses_draft), calibration, trees=trees)
    suffix = SuffixProposer()
    proposers: dict[Source, Proposer] = {
        "suffix": suffix,
        "draft": _RecordedDraft(record, curve, time, suffix),
    }
    decoder = Decoder(
        _ReplayedTarget(curve, time),
        {source: proposers[source] for source in sources},
        controller,
        time,
        Teaching(time),
    )
    output = record.output
    history = [*record.prompt, *output[:1]]
    end = len(record.prompt) + len(output)
    rounds = draft_n = accepted = 0
    controller.begin()
    for source in sources:
        proposers[source].begin(history)

    def take(run: Run) -> tuple[int, int]:
        kept = [token for token, _ in run][: end - len(history)]
        history.extend(kept)
        return len(kept), len(kept)

    def rebuild(why: str) -> None:
        raise AssertionError(why)

    while len(history) < end:
        outcome = decoder.step(history, _MOST_ROWS - 1, _RecordedJudge(record), take, rebuild)
        rounds += 1
        draft_n += len(outcome.draft)
        accepted += outcome.accepted
    plain = max(0, len(output) - 1) * curve.verify(1)
    return Replayed(record.id, record.category, name, plain * 1e3, time.now * 1e3, rounds, draft_n, accepted)
