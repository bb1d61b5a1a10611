"""The decoding step: propose, verify, commit once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from edgespec.backends.base import Backend
from edgespec.control.base import Policy
from edgespec.control.stages import SMALL
from edgespec.engine.teaching import Teaching, refine
from edgespec.errors import BackendError, EdgespecError, RollbackError
from edgespec.proposers.base import Proposer, Refining
from edgespec.sampling import Sampler
from edgespec.types import NO_DRAFT, Clock, Draft, FloatArray, Offer, Outcome, Plan, Source, Verdict, merge
from edgespec.verify import verify_coupled, verify_rejection

VerifyMode = Literal["coupled", "rejection"]

Run = list[tuple[int, Source]]
"""What a round sampled, in order: the accepted drafted tokens, then the target's own."""


class Judging(Protocol):
    """What the target makes of rows of logits, for one answer."""

    def __call__(self, draft: Draft, rows: FloatArray, history: Sequence[int]) -> Verdict:
        """Of a draft, by its rows `[1 + n, n_vocab]`."""
        ...

    def guess(self, row: FloatArray, history: Sequence[int], path: Sequence[int]) -> int:
        """What the target may be expected to say behind a path that it does not take, from its row there."""
        ...


Take = Callable[[Run], tuple[int, int]]
"""A run -> (tokens of it up to where the answer ends, of these emitted)."""


Rebuild = Callable[[str], None]
"""Why rows could not be dropped -> the cache holds what it should, by other means."""


class ProposerError(EdgespecError):
    """A proposer failed; the target was not touched."""

    def __init__(self, proposer: Source, why: str) -> None:
        super().__init__(f"the {proposer} proposer failed and is switched off: {why}")
        self.proposer = proposer


MODELS: tuple[Source, ...] = ("draft", SMALL)
"""Proposers that take a model's time."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """One target, its proposers and the policy that picks among them."""

    backend: Backend
    proposers: Mapping[Source, Proposer]
    policy: Policy
    clock: Clock
    teaching: Teaching

    def step(self, history: list[int], limit: int, judge: Judging, take: Take, rebuild: Rebuild) -> Outcome:
        """One round. `history` ends with the pending token; at most `limit` tokens are drafted.

        The cache holds history without its last token before, and what `take` kept after, the last
        sampled token being pending again. Raises what the backend raises; nothing is lost then.
        """
        started = self.clock()
        plan = self.policy.plan(limit, self.backend.capabilities.tree)
        best, offered = self._propose(history, plan)
        draft = self._widened(best, history, plan)
        proposed = self.clock()
        rows = self.backend.forward([history[-1], *draft.tokens], _parents(draft))
        computed = self.clock()
        verdict = judge(draft, rows, history)
        pupils = [self.proposers[name] for name in plan.proposers if name in self.proposers]
        self.teaching.teach(pupils, history[-1], draft, len(best), rows, verdict, computed - proposed)
        refine(pupils, draft, verdict, lambda node: judge.guess(rows[node + 1], history, draft.path(node)))
        run = _run(draft, verdict)
        sampled, emitted = take(run)
        kept = verdict.path[: sampled - 1]
        context = self.backend.length
        try:
            self.backend.commit([0, *(i + 1 for i in kept)])
        except RollbackError as error:
            rebuild(str(error))
        for proposer in self.proposers.values():
            proposer.observe(verdict)
        outcome = Outcome(
            draft if sampled > len(verdict.path) else _until(draft, verdict.path[:emitted]),
            accepted=min(len(verdict.path), emitted),
            emitted=emitted,
            context=context,
            t_propose=proposed - started,
            t_verify=computed - proposed,
            t_other=self.clock() - computed,
            offers=tuple(_offer(uncut, run) for uncut in offered),
            plan=plan,
        )
        self.policy.observe(outcome)
        return outcome

    def _propose(self, history: Sequence[int], plan: Plan) -> tuple[Draft, list[Draft]]:
        """The draft to verify, and all that was drafted on the way to it.

        What costs nothing comes first, as one tree where the backend takes trees; models are asked when
        that is not worth verifying.
        """
        names = [name for name in plan.proposers if name in self.proposers]
        tree = self.backend.capabilities.tree
        offered: list[Draft] = []

        def ask(name: Source) -> Draft:
            try:
                draft = self.proposers[name].propose(history, plan)
            except BackendError as error:
                raise ProposerError(name, str(error)) from error
            if not draft.tokens or not (tree or draft.is_chain):
                return NO_DRAFT
            offered.append(draft)
            return draft

        free = [draft for name in names if name not in MODELS and (draft := ask(name)).tokens]
        best = _best([self.policy.trim(draft) for draft in ([merge(free)] if plan.tree else free)])
        for name in names:
            if name in MODELS and not best.tokens:
                best = self.policy.trim(ask(name))
        return best, offered

    def _widened(self, draft: Draft, history: Sequence[int], plan: Plan) -> Draft:
        """With guesses that the pass refines, where rows and branches allow; never beside a sampled draft."""
        window = self.policy.window(draft)
        if not window.columns or draft.q is not None:
            return draft
        asked = [self.proposers[name] for name in plan.proposers if name in self.proposers]
        guesses = [cast(Refining, p).window(history, window) for p in asked if hasattr(p, "window")]
        wider = merge([draft, *guesses])
        return wider.first(plan.fit(len(wider))) if plan.tree or wider.is_chain else draft


@dataclass(frozen=True, slots=True)
class Judge:
    """Verification of real rows: by coupled noise or by rejection."""

    sampler: Sampler
    mode: VerifyMode = "coupled"

    def __call__(self, draft: Draft, rows: FloatArray, history: Sequence[int]) -> Verdict:
        sampler = self.sampler
        if self.mode == "coupled" and not draft.tokens:
            return Verdict((), sampler.choose(rows[0], history))
        if self.mode == "coupled":
            return verify_coupled(draft, lambda row, path: sampler.choose(rows[row], history, path))
        return verify_rejection(
            draft,
            lambda row, path: sampler.distribution(rows[row], history, path),
            sampler.settings.seed,
            len(history),
        )

    def guess(self, row: FloatArray, history: Sequence[int], path: Sequence[int]) -> int:
        """With the noise of that place; in rejection mode the likeliest: draws must not be known before."""
        return self.sampler.choose(row, history, path) if self.mode == "coupled" else int(row.argmax())


def _parents(draft: Draft) -> list[int] | None:
    return None if not draft.tokens or draft.is_chain else [-1, *(parent + 1 for parent in draft.parents)]


def _run(draft: Draft, verdict: Verdict) -> Run:
    run: Run = [(draft.tokens[i], draft.sources[i]) for i in verdict.path]
    run.append((verdict.next_token, "target"))
    return run


def _offer(draft: Draft, run: Run) -> Offer:
    return Offer(draft, tuple(_told(draft, run)))


def _told(draft: Draft, run: Run) -> Iterator[tuple[int, bool]]:
    """The children of every node that the target went through, and which of them it took."""
    node = -1
    for token, _ in run:
        taken = node
        for i in range(node + 1, len(draft)):
            if draft.parents[i] == node:
                hit = draft.tokens[i] == token
                yield i, hit
                taken = i if hit else taken
        if taken == node:
            return
        node = taken


def _best(drafts: Sequence[Draft]) -> Draft:
    """The one with most expected tokens, the first among equals."""
    return max(drafts, key=lambda draft: (bool(draft), sum(draft.survival)), default=NO_DRAFT)


def _until(draft: Draft, path: Sequence[int]) -> Draft:
    """The part that counts when the answer ended after this much of the accepted path."""
    return draft.first(path[-1] + 1) if path else NO_DRAFT
