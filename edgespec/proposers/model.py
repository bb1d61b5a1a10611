"""Draft-model proposer (Leviathan et al. 2023; Chen et al. 2023) with its own cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from edgespec.backends.base import Backend
from edgespec.errors import RollbackError
from edgespec.proposers.branching import Child, branched
from edgespec.proposers.guided import guided
from edgespec.proposers.suffix import SuffixProposer
from edgespec.sampling import Sampler, confidence
from edgespec.sampling import draw as draw_from
from edgespec.sampling.noise import DRAFT
from edgespec.types import (
    NO_DRAFT,
    Distribution,
    Draft,
    FloatArray,
    Grow,
    Plan,
    SamplingSettings,
    Source,
    Tokens,
    Verdict,
    common_prefix,
)

_WIDTH = 3
"""Children of a node."""


class ModelProposer:
    """A small model with the target's vocabulary. It drafts a chain, with leaves beside it where the target
    takes branches, or a tree where `plan.grow` says so.

    `n_shared`: ids from here on exist in one of the two only and are never drafted. In coupled mode it
    picks its tokens with the same noise as the target; in rejection mode it samples and reports q.
    `guide`: its matches confirm what the model drafts and continue it for nothing.
    """

    name: Source = "draft"

    def __init__(
        self,
        backend: Backend,
        n_shared: int,
        notify: Callable[[str], None],
        guide: SuffixProposer | None = None,
    ) -> None:
        self._guide = guide
        self._backend = backend
        self._n_shared = min(n_shared, backend.n_vocab)
        self._notify = notify
        self._cached: list[int] = []
        self._full = False
        self.configure(SamplingSettings(temperature=0.0), "coupled")

    def configure(self, sampling: SamplingSettings, mode: Literal["coupled", "rejection"]) -> None:
        self._sampler = Sampler(sampling)
        self._samples = mode == "rejection" and sampling.temperature > 0

    def begin(self, history: Tokens) -> None:
        self._full = False
        if not history:
            self._backend.truncate(0)
            self._cached.clear()
        elif len(history) < self._backend.n_ctx:
            self._catch_up(history)

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        room = min(plan.max_draft, self._backend.n_ctx - len(history))
        if room < 1:
            self._say_full(room)
            return NO_DRAFT
        if plan.grow is not None and not self._samples and self._backend.capabilities.tree:
            return self._tree(history, plan.grow, min(room, self._backend.capabilities.max_rows))
        qs: list[Distribution] = []
        row: FloatArray

        def draw(path: list[int]) -> tuple[int, float]:
            nonlocal row
            row = self._forward(path[-1:]) if path else self._catch_up(history)
            token, q = self._pick(row, history, path)
            if q is not None:
                qs.append(q)
            return token, confidence(row)

        def beside(path: list[int]) -> list[tuple[int, float]]:
            return self._sampler.choices(row, history, path, _WIDTH)[1:]

        guide = None if self._samples or self._guide is None else self._guide.match(history)
        leaves = beside if plan.tree and not self._samples else None
        draft = guided(draw, guide, plan, room, whole=self._samples, beside=leaves)
        return replace(draft, q=tuple(qs)) if self._samples else draft

    def _tree(self, history: Tokens, grow: Grow, most: int) -> Draft:
        """The whole tree goes through every pass: what is not committed is gone with the next one."""

        def look(tree: Draft, ends: Sequence[int]) -> list[list[Child]]:
            if not tree.tokens:
                return [self._children(self._catch_up(history), history, [])]
            rows = self._backend.forward(tree.tokens, tree.parents)
            found = [self._children(rows[end, : self._n_shared], history, tree.path(end)) for end in ends]
            self._backend.commit(())
            return found

        return branched(look, None if self._guide is None else self._guide.match(history), grow, most)

    def _children(self, row: FloatArray, history: Tokens, path: list[int]) -> list[Child]:
        found = self._sampler.choices(row, history, path, _WIDTH)
        known = [confidence(row), *(share for _, share in found[1:])]
        return [(token, share, why) for (token, share), why in zip(found, known, strict=True)]

    def _pick(self, row: FloatArray, history: Tokens, path: list[int]) -> tuple[int, Distribution | None]:
        if not self._samples:
            return self._sampler.choose(row, history, path), None
        q = self._sampler.distribution(row, history, path)
        seed = self._sampler.settings.seed
        return draw_from(q, seed, len(history) + len(path), DRAFT), q

    def _catch_up(self, history: Tokens) -> FloatArray:
        """Bring the cache to exactly `history`; the row after it, over the shared ids."""
        same = min(common_prefix(self._cached, history), len(history) - 1)
        if same < len(self._cached):
            try:
                self._backend.truncate(same)
            except RollbackError:
                same = 0
                self._backend.truncate(0)
            del self._cached[same:]
        return self._forward(history[same:])

    def _forward(self, tokens: Tokens) -> FloatArray:
        n_vocab = self._backend.n_vocab
        # Padding of the target's vocabulary means nothing here.
        known = tokens if max(tokens) < n_vocab else [t if t < n_vocab else 0 for t in tokens]
        row: FloatArray = self._backend.forward(known, rows="last")[0]
        self._backend.commit(range(len(tokens)))
        self._cached += tokens
        shared: FloatArray = row[: self._n_shared]
        return shared

    def _say_full(self, room: int) -> None:
        if room < 1 and not self._full:
            self._full = True
            self._notify(f"the draft model's context of {self._backend.n_ctx} tokens is full: it pauses")

    def observe(self, verdict: Verdict) -> None:
        pass
