"""The real controller and proposers over recorded outputs, under a given cost curve, with no model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from edgespec.backends.base import Capabilities
from edgespec.bench.traces import Curve, Record
from edgespec.control import Calibration, Controller, CostModel
from edgespec.engine.step import Decoder, Run
from edgespec.engine.teaching import Teaching
from edgespec.proposers import Proposer, RecyclingProposer, SuffixProposer
from edgespec.proposers.branching import Child, branched
from edgespec.proposers.guided import guided
from edgespec.proposers.suffix import Match
from edgespec.types import Draft, FloatArray, Grow, Plan, Source, Tokens, Verdict
from edgespec.verify import verify_coupled

CALIBRATED_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
_MOST_ROWS = 65
_END, _NEVER = -1, -2
SPEC: tuple[Source, ...] = ("suffix", "recycling", "draft")
"""Those that can be replayed, in the order in which they are asked."""


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
    """The draft model as recorded: right where it matched, given that all before was right.

    What it would find behind a wrong token is not recorded, and cannot be accepted: it finds something else
    that is wrong, as surely as it is of what it finds at that place of the answer.
    """

    name: Source = "draft"

    def __init__(self, record: Record, curve: Curve, time: _Time, guide: SuffixProposer) -> None:
        self._record, self._curve, self._time, self._guide = record, curve, time, guide
        self._cached = len(record.prompt)

    def begin(self, history: Tokens) -> None:
        pass

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        r, guide = self._record, self._guide.match(history)
        start = len(history) - len(r.prompt)
        most = min(plan.max_draft, len(r.match) - start)
        if plan.grow is not None and r.top:
            return self._tree(history, start, guide, plan.grow, most)

        def draw(path: list[int]) -> tuple[int, float]:
            self._time.now += self._curve.draft
            at = start + len(path)
            return (r.output[at] if r.match[at] else _NEVER), r.p[at]

        def beside(path: list[int]) -> list[tuple[int, float]]:
            return [(token, share) for token, share, _ in self._children(path, start)[1:]]

        return guided(draw, guide, plan, most, beside=beside if plan.tree and r.top else None)

    def _tree(self, history: Tokens, start: int, guide: Match, grow: Grow, most: int) -> Draft:
        def look(tree: Draft, ends: Sequence[int]) -> list[list[Child]]:
            self._pass(len(tree) or len(history) - self._cached)
            self._cached = len(history)
            return [self._children(tree.path(end), start) for end in ends]

        return branched(look, guide, grow, most)

    def _pass(self, rows: int) -> None:
        self._time.now += self._curve.draft * (1.0 + self._curve.row * (rows - 1))

    def _children(self, path: Sequence[int], start: int) -> list[Child]:
        r, at = self._record, start + len(path)
        if at >= len(r.top):
            return []
        known = tuple(path) == r.output[start:at]
        children, left = [], 1.0
        for rank, (token, p) in enumerate(r.top[at]):
            share = min(1.0, p / max(left, p, 1e-9))
            children.append((token if known else _NEVER - rank, share, share))
            left -= p
        return children

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


class _RecordedRecycling:
    """Token recycling that learns from the rows of the answer itself: of others nothing is recorded."""

    name: Source = "recycling"

    def __init__(self, record: Record, recycling: RecyclingProposer) -> None:
        self._record, self._known = record, len(record.prompt)
        self._recycling = recycling

    def begin(self, history: Tokens) -> None:
        self._recycling.begin(history)

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        r = self._record
        for at in range(self._known, len(history) - 1):
            i = at + 1 - len(r.prompt)
            self._recycling.learn(history[at], np.array(r.best[i] if r.best else r.output[i : i + 1]))
        self._known = len(history) - 1
        return self._recycling.propose(history, plan)

    def observe(self, verdict: Verdict) -> None:
        self._recycling.observe(verdict)


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What lasts from answer to answer."""

    calibration: Calibration = field(default_factory=Calibration)
    recycling: RecyclingProposer = field(default_factory=RecyclingProposer)


def calibrate(curve: Curve, *, draft: bool) -> CostModel:
    """What is measured when a model is loaded, before the first token: some row counts, the draft."""
    seconds = {n: curve.verify(n) for n in CALIBRATED_ROWS}
    return CostModel(seconds, {"draft": curve.draft}, curve.row) if draft else CostModel(seconds)


def replay(
    records: Iterable[Record],
    curves: Mapping[str, Curve],
    *,
    spec: Sequence[Source] = SPEC,
    warm: bool = False,
    trees: bool = True,
) -> Iterator[Replayed]:
    """Each record under each curve. Every one starts cold, unless `warm` keeps what was learnt.

    `spec`: who may propose, of SPEC. `trees`: drafts may branch; the draft model's where its likeliest tokens
    are recorded.
    """
    records = list(records)
    for name, curve in curves.items():
        kept = _Learnt()
        for record in records:
            yield _replay_one(record, name, curve, spec, trees, kept if warm else _Learnt())


def _replay_one(
    record: Record, name: str, curve: Curve, spec: Sequence[Source], trees: bool, learnt: _Learnt
) -> Replayed:
    time = _Time()
    sources = tuple(source for source in SPEC if source in spec and (source != "draft" or any(record.p)))
    cost = calibrate(curve, draft="draft" in sources)
    if not record.top:
        cost.draft_row = None
    controller = Controller(sources, cost, learnt.calibration, trees=trees)
    suffix = SuffixProposer()
    proposers: dict[Source, Proposer] = {
        "suffix": suffix,
        "recycling": _RecordedRecycling(record, learnt.recycling),
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
