"""Draft-model proposer (Leviathan et al. 2023; Chen et al. 2023) with its own cache."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from edgespec.backends.base import Backend, cut
from edgespec.proposers.base import Drawn, Quick
from edgespec.proposers.branching import Child, branched
from edgespec.proposers.guided import Guide, guided, others
from edgespec.sampling import Sampler, confidence
from edgespec.sampling import draw as draw_from
from edgespec.sampling.noise import DRAFT
from edgespec.types import (
    NO_DRAFT,
    Choice,
    Distribution,
    Draft,
    Evidence,
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
_HOPED, _MEMORY = 2.0, 0.7
"""Tokens of a draft that come true, before any was seen; and how long it is remembered."""


class ModelProposer:
    """A small model with the target's vocabulary. It drafts a chain, with leaves beside it where the target
    takes branches, or a tree where `plan.grow` says so.

    `n_shared`: ids from here on exist in one of the two only and are never drafted. In coupled mode it
    picks its tokens with the same noise as the target; in rejection mode it samples and reports q.
    `guide`: its matches confirm what the model drafts and continue it for nothing. `quick`: the chains are
    drafted by speculation in turn.
    """

    name: Source = "draft"

    def __init__(
        self,
        backend: Backend,
        n_shared: int,
        notify: Callable[[str], None],
        guide: Guide | None = None,
        quick: Quick | None = None,
    ) -> None:
        self._guide, self._quick = guide, quick
        self._backend = backend
        self._n_shared = min(n_shared, backend.n_vocab)
        self._notify = notify
        self._cached: list[int] = []
        self._drafted: tuple[int, tuple[int, ...]] = (0, ())
        self._useful = _HOPED
        self._full = False
        self.configure(SamplingSettings(temperature=0.0), "coupled")

    def configure(self, sampling: SamplingSettings, mode: Literal["coupled", "rejection"]) -> None:
        self._sampler = Sampler(sampling)
        self._samples = mode == "rejection" and sampling.temperature > 0
        if self._quick is not None:
            self._quick.configure(sampling, mode)

    def begin(self, history: Tokens) -> None:
        self._full = False
        for helper in (self._guide, self._quick):
            if helper is not None:
                helper.begin(history)
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
        self._recall(history)
        qs: list[Distribution] = []
        ahead: deque[Drawn] = deque()
        said: list[Drawn] = []
        branches = plan.tree and not self._samples

        def draw(path: list[int]) -> tuple[int, float]:
            if not ahead:
                ahead.extend(self._draw(history, path, room - len(path), _WIDTH if branches else 1))
            said.append(drawn := ahead.popleft())
            if drawn.q is not None:
                qs.append(drawn.q)
            return drawn.token, drawn.top

        def choose(drafted: Sequence[Evidence], copied: Sequence[Evidence]) -> Choice:
            """What is drawn already is had for nothing, but a sampled token must not be verified for it."""
            return "draft" if ahead and not self._samples else plan.choose(drafted, copied)

        guide = None if self._guide is None else self._guide.match(history)
        sure = None if self._samples else guide
        beside = (lambda _: said[-1].others) if branches else None
        asked = replace(plan, choose=choose)
        draft = guided(draw, sure, asked, room, whole=self._samples, beside=beside)
        self._drafted = len(history), tuple(drawn.token for drawn in said)
        return replace(draft, q=tuple(qs)) if self._samples else draft

    def _recall(self, history: Tokens) -> None:
        """How many tokens of the last draft came true."""
        start, tokens = self._drafted
        if tokens:
            right = common_prefix(tokens, history[start : start + len(tokens)])
            self._useful += (1.0 - _MEMORY) * (right - self._useful)

    def _draw(self, history: Tokens, path: list[int], most: int, width: int) -> list[Drawn]:
        """The next token after `path`; where the model speculates, as many as may be of use, up to `most`."""
        if self._quick is not None:
            text = [*history, *path]
            self._keep(text)
            drawn = self._quick.draw(text, min(most, 1 + round(2.0 * self._useful)), width)
            self._cached = [*text, *(each.token for each in drawn)][: self._backend.length]
            return drawn
        row = self._forward(path[-1:]) if path else self._catch_up(history)
        (token, q), top = self._pick(row, history, path), confidence(row)
        return [Drawn(token, top, q, others(self._sampler, row, history, path, width, top))]

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
        top = confidence(row)
        found = self._sampler.choices(row, history, path, _WIDTH, top)
        known = [top, *(share for _, share in found[1:])]
        return [(token, share, why) for (token, share), why in zip(found, known, strict=True)]

    def _pick(self, row: FloatArray, history: Tokens, path: list[int]) -> tuple[int, Distribution | None]:
        if not self._samples:
            return self._sampler.choose(row, history, path), None
        q = self._sampler.distribution(row, history, path)
        seed = self._sampler.settings.seed
        return draw_from(q, seed, len(history) + len(path), DRAFT), q

    def _catch_up(self, history: Tokens) -> FloatArray:
        """Bring the cache to exactly `history`; the row after it, over the shared ids."""
        return self._forward(history[self._keep(history) :])

    def _keep(self, text: Tokens) -> int:
        """Cut the cache to what is the beginning of `text`, its last token left out. Returns its length."""
        same = min(common_prefix(self._cached, text), len(text) - 1)
        if same < self._backend.length:
            same = cut(self._backend, same)
        del self._cached[same:]
        return same

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
