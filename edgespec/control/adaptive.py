"""A simple policy: depth follows acceptance, and speculation rests while it is slower than plain."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.types import Draft, Outcome, Plan, Source, Status

_PLAIN_ROUNDS = 2
_TRIAL_ROUNDS = 4
_FIRST_PAUSE, _LONGEST_PAUSE = 16, 512
_LEAST_SURVIVAL = 0.35


class AdaptivePolicy:
    """Depth doubles on full acceptance and falls to what was accepted otherwise."""

    def __init__(
        self, sources: Sequence[Source], *, draft_max: int = 32, row_counts: Sequence[int] | None = None
    ) -> None:
        self._sources = tuple(sources)
        self._draft_max = draft_max
        self._row_counts = None if row_counts is None else tuple(sorted(row_counts))
        self._depth = min(4, draft_max)
        self._plain_seconds: float | None = None
        self._plain_rounds = 0
        self._rounds, self._tokens, self._seconds = 0, 0.0, 0.0
        self._rest = 0
        self._pause = _FIRST_PAUSE
        self._plan = Plan()
        self._last = "target"

    def begin(self) -> None:
        self._rest = 0

    def plan(self, limit: int) -> Plan:
        rests = self._rest > 0 or self._plain_rounds < _PLAIN_ROUNDS
        most = min(self._depth, limit)
        if rests or not self._sources or most < 1:
            self._plan = Plan()
        else:
            most = Plan((), most, self._row_counts).fit(most)
            self._plan = Plan(self._sources, most, self._row_counts, self._worth) if most else Plan()
        return self._plan

    def _worth(self, drafted: int, survival: float) -> bool:
        return drafted < self._plan.max_draft and survival >= _LEAST_SURVIVAL

    def trim(self, draft: Draft) -> Draft:
        n = len(draft)
        if draft.q is None:
            n = sum(survival >= _LEAST_SURVIVAL for survival in draft.survival)
        return draft.first(self._plan.fit(n))

    def observe(self, outcome: Outcome) -> None:
        seconds = outcome.t_propose + outcome.t_verify + outcome.t_other
        self._rest = max(0, self._rest - outcome.emitted)
        if not len(outcome.draft):
            self._plain_rounds += 1
            old = self._plain_seconds
            self._plain_seconds = seconds if old is None else min(seconds, old + 0.2 * (seconds - old))
            return
        self._last = outcome.draft.sources[0]
        if outcome.accepted == len(outcome.draft):
            self._depth = min(self._draft_max, 2 * max(self._depth, 1))
        else:
            self._depth = min(self._draft_max, max(2, outcome.accepted + 1))
        self._rounds += 1
        self._tokens = 0.9 * self._tokens + outcome.emitted
        self._seconds = 0.9 * self._seconds + seconds
        if self._rounds >= _TRIAL_ROUNDS and not self._pays():
            self._rest, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
            self._rounds, self._tokens, self._seconds = 0, 0.0, 0.0
        elif self._rounds >= 4 * _TRIAL_ROUNDS:
            self._pause = _FIRST_PAUSE

    def _pays(self) -> bool:
        return self._plain_seconds is None or self._tokens * self._plain_seconds >= self._seconds

    @property
    def status(self) -> Status:
        if not self._sources:
            return Status(False, "none", 0, "no proposer is allowed")
        if self._row_counts is not None and max(self._row_counts, default=1) < 2:
            return Status(False, "none", 0, "no row count above 1 is exact on this model")
        if self._rest > 0:
            return Status(False, self._last, 0, f"slower than plain; tried again in {self._rest} tokens")
        return Status(True, self._last, self._depth, "faster than plain or not yet measured")


class FixedPolicy:
    """Always these sources at this depth: for measurements and tests."""

    def __init__(
        self, sources: Sequence[Source], depth: int, *, row_counts: Sequence[int] | None = None
    ) -> None:
        self._sources = tuple(sources)
        self._depth = depth
        self._row_counts = None if row_counts is None else tuple(sorted(row_counts))
        self._plan = Plan()

    def begin(self) -> None:
        pass

    def plan(self, limit: int) -> Plan:
        loose = Plan(self._sources, min(self._depth, limit), self._row_counts)
        self._plan = Plan(self._sources, loose.fit(loose.max_draft), self._row_counts)
        return self._plan if self._plan.max_draft else Plan()

    def trim(self, draft: Draft) -> Draft:
        return draft.first(self._plan.fit(len(draft)))

    def observe(self, outcome: Outcome) -> None:
        pass

    @property
    def status(self) -> Status:
        on = bool(self._sources) and self._depth > 0
        return Status(on, "+".join(self._sources) or "none", self._depth, "fixed")
