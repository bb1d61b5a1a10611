"""A draft model that is drafted for: its own speculation, by the same rounds as the target's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from edgespec.backends.base import Backend, Capabilities
from edgespec.control import CostModel, FixedPolicy, Policy
from edgespec.engine.step import Decoder, ProposerError, Run, VerifyMode
from edgespec.engine.teaching import Teaching
from edgespec.errors import BackendError
from edgespec.proposers.base import Drawn, Proposer, Sampling
from edgespec.proposers.guided import others
from edgespec.sampling import Sampler, confidence
from edgespec.sampling.noise import derived
from edgespec.types import (
    Clock,
    Distribution,
    Draft,
    FloatArray,
    Outcome,
    Plan,
    SamplingSettings,
    Source,
    Status,
    Tokens,
    Verdict,
    Window,
)
from edgespec.verify import verify_coupled, verify_rejection

_LATE = 4
"""Tokens that a pass may begin with because the cache still lacks them; more have a pass of their own."""


class Cascade:
    """The middle of tiny -> mid -> target (Spector and Re 2023, "Staged Speculative Decoding"; Chen et al.
    2023, "Cascade Speculative Drafting"): mid verifies blocks as the target does.

    `backend`: of mid; `n_shared`: ids from here on are not the target's. `proposers` draft for mid, and
    `policy` says whether they do, by mid's own costs. In coupled mode what it draws is what mid alone would
    say. In rejection mode every round has noise of its own, since what it drew may stay unused.
    """

    def __init__(
        self,
        backend: Backend,
        n_shared: int,
        proposers: Mapping[Source, Proposer],
        notify: Callable[[str], None],
        clock: Clock = time.perf_counter,
    ) -> None:
        self._mid = _Mid(backend, min(n_shared, backend.n_vocab))
        self._proposers = dict(proposers)
        self._notify, self._clock = notify, clock
        self._can_roll_back = True
        self.verified: dict[Source, list[int]] = {}
        """(right, drafted) tokens of this answer by who proposed them."""
        self.use(FixedPolicy((), 0))
        self.configure(SamplingSettings(temperature=0.0), "coupled")

    def use(self, policy: Policy, cost: CostModel | None = None) -> None:
        """Follow this policy from the next answer on; `cost`: what it knows of mid's passes."""
        self._policy = policy
        told = policy if cost is None else _Fair(policy, cost, self._mid)
        self._decoder = Decoder(self._mid, self._proposers, told, self._clock, Teaching(self._clock))

    def configure(self, sampling: SamplingSettings, mode: VerifyMode) -> None:
        self._sampling, self._mode, self._round = sampling, mode, 0
        self._configure(sampling)

    def _configure(self, sampling: SamplingSettings) -> None:
        self._sampler = Sampler(sampling)
        for proposer in self._proposers.values():
            if isinstance(proposer, Sampling):
                proposer.configure(sampling, self._mode)

    def begin(self, history: Tokens) -> None:
        self.verified = {}
        wanted = self._policy.begin() if history else tuple(self._proposers)
        for name in [name for name in wanted if name in self._proposers]:
            try:
                self._proposers[name].begin(history)
            except BackendError as error:
                self._drop(ProposerError(name, str(error)))

    def draw(self, text: list[int], most: int, width: int) -> list[Drawn]:
        """See `Quick.draw`. Raises what mid's backend raises."""
        self._mid.catch_up(text)
        if self._mode == "rejection":
            self._round += 1
            self._configure(replace(self._sampling, seed=derived(self._sampling.seed, self._round)))
        judge = _Judge(self._sampler, self._mode, width)
        try:
            outcome = self._decoder.step(text, self._limit(most), judge, judge.take, self._rebuild)
        except ProposerError as error:
            self._drop(error)
            return self.draw(text, most, width)
        self._count(outcome)
        return judge.drawn

    def _limit(self, most: int) -> int:
        can = self._mid.capabilities
        able = self._can_roll_back and can.rollback == "exact"
        return max(0, min(most, can.max_rows) - 1) if able else 0

    def _rebuild(self, why: str) -> None:
        self._can_roll_back = False
        self._notify(f"nothing drafts for the draft model any more: {why}")
        self._mid.truncate(0)

    def _drop(self, error: ProposerError) -> None:
        del self._proposers[error.proposer]
        self._notify(f"for the draft model, {error}")

    def _count(self, outcome: Outcome) -> None:
        for i, source in enumerate(outcome.draft.sources):
            counts = self.verified.setdefault(source, [0, 0])
            counts[0] += i < outcome.accepted
            counts[1] += 1


class _Judge:
    """Verification by mid, which notes what mid knew in each place of the path."""

    def __init__(self, sampler: Sampler, mode: VerifyMode, width: int) -> None:
        self._sampler, self._mode, self._width = sampler, mode, width
        self._known: list[tuple[float, Distribution | None, Sequence[tuple[int, float]]]] = []
        self.drawn: list[Drawn] = []

    def __call__(self, draft: Draft, rows: FloatArray, history: Sequence[int]) -> Verdict:
        sampler = self._sampler

        def choose(row: int, path: Sequence[int]) -> int:
            top = confidence(rows[row])
            found = others(sampler, rows[row], history, path, self._width, top)
            self._known.append((top, None, found))
            return sampler.choose(rows[row], history, path)

        def distribution(row: int, path: Sequence[int]) -> Distribution:
            q = sampler.distribution(rows[row], history, path)
            self._known.append((confidence(rows[row]), q, ()))
            return q

        if self._mode == "coupled":
            return verify_coupled(draft, choose)
        return verify_rejection(draft, distribution, sampler.settings.seed, len(history))

    def guess(self, row: FloatArray, history: Sequence[int], path: Sequence[int]) -> int:
        return int(row.argmax())

    def take(self, run: Run) -> tuple[int, int]:
        self.drawn = [Drawn(token, *known) for (token, _), known in zip(run, self._known, strict=True)]
        return len(run), len(run)


class _Mid:
    """Mid as the target of its own speculation: rows over the shared ids. The next pass begins with the
    tokens that the cache lacks before the pending one, and has no rows for them.
    """

    def __init__(self, backend: Backend, n_shared: int) -> None:
        self._backend, self.n_vocab, self.n_ctx = backend, n_shared, backend.n_ctx
        self.late: list[int] = []
        self.led = 0
        """Late tokens of the last pass."""

    def catch_up(self, text: Sequence[int]) -> None:
        """The next pass is on the last token of `text`."""
        self.late = list(text[self._backend.length : -1])
        if len(self.late) > _LATE or len(self.late) >= self._backend.capabilities.max_rows:
            self._backend.forward(self._known(self.late), rows="none")
            self._backend.commit(range(len(self.late)))
            self.late = []

    def _known(self, tokens: Tokens) -> list[int]:
        """Padding of the target's vocabulary means nothing here."""
        return [token if token < self._backend.n_vocab else 0 for token in tokens]

    @property
    def capabilities(self) -> Capabilities:
        able = self._backend.capabilities
        return replace(able, max_rows=able.max_rows - len(self.late))

    @property
    def length(self) -> int:
        return self._backend.length + len(self.late)

    def forward(
        self,
        tokens: Tokens,
        parents: Sequence[int] | None = None,
        *,
        rows: Literal["all", "last", "none"] = "all",
    ) -> FloatArray:
        self.led = n = len(self.late)
        if parents is not None:
            parents = [*range(-1, n - 1), *(parent + n for parent in parents)]
        found = self._backend.forward(self._known([*self.late, *tokens]), parents, rows=rows)
        shared: FloatArray = found[n if rows == "all" else 0 :, : self.n_vocab]
        return shared

    def commit(self, keep: Sequence[int]) -> None:
        n, self.late = len(self.late), []
        self._backend.commit([*range(n), *(i + n for i in keep)])

    def truncate(self, length: int) -> None:
        self.late = []
        self._backend.truncate(length)

    def abort(self, on: bool) -> None:
        self._backend.abort(on)

    def close(self) -> None:
        self._backend.close()


@dataclass(frozen=True, slots=True)
class _Fair:
    """A policy that is told of passes as if they had no late tokens."""

    policy: Policy
    cost: CostModel
    mid: _Mid

    def begin(self) -> tuple[Source, ...]:
        return self.policy.begin()

    def plan(self, limit: int, tree: bool = False) -> Plan:
        return self.policy.plan(limit, tree)

    def trim(self, draft: Draft) -> Draft:
        return self.policy.trim(draft)

    def window(self, draft: Draft) -> Window:
        return self.policy.window(draft)

    def observe(self, outcome: Outcome) -> None:
        n, relative = len(outcome.draft) + 1, self.cost.relative
        alone = float(relative[n] / relative[n + self.mid.led])
        self.policy.observe(replace(outcome, t_verify=outcome.t_verify * alone))

    @property
    def status(self) -> Status:
        return self.policy.status
