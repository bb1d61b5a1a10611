"""A draft model with another vocabulary, by the text that it drafts.

String-level exact match (Timor et al. 2025, "Accelerating LLM Inference with Lossless Speculative Decoding
Algorithms for Heterogeneous Vocabularies"): the draft goes on in its own tokens, and what they spell is cut
into the target's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from edgespec.backends.base import Backend, cut
from edgespec.proposers.cutting import Reader, Retokenisation, complete
from edgespec.proposers.guided import Guide
from edgespec.proposers.suffix import Match
from edgespec.sampling import Sampler, confidence
from edgespec.types import (
    NO_DRAFT,
    Draft,
    Evidence,
    FloatArray,
    Plan,
    SamplingSettings,
    Source,
    Tokens,
    Verdict,
    chain,
    common_prefix,
)

_TAIL = 8
"""Tokens of the target's that more text may still change, and that what is drafted is cut together with."""
_MOST_DRAWN = 8
"""Of the draft's tokens for one of the target's."""
_JOINED = 3
"""Of the draft's tokens that a longer one may stand for."""


class RetokenisedProposer:
    """A small model that drafts text, in chains. Its guesses are point masses, greedy in rejection mode.

    Its tokens and the target's end in different places: what both have said so far is cut anew from a
    little before its end. A target's token counts as settled if text follows it, or if the draft would have
    said a longer token had it meant one: what more text may change is proposed only where there is no more.
    """

    name: Source = "draft"

    def __init__(
        self,
        backend: Backend,
        pair: Retokenisation,
        notify: Callable[[str], None],
        guide: Guide | None = None,
    ) -> None:
        self._backend = backend
        self._pair = pair
        self._notify = notify
        self._guide = guide
        self._reader = Reader(pair)
        self._cached: list[int] = []
        self._full = False
        self.configure(SamplingSettings(temperature=0.0), "coupled")

    def configure(self, sampling: SamplingSettings, mode: Literal["coupled", "rejection"]) -> None:
        """Penalties are those of the target's tokens, which the draft's are not."""
        self._sampler = Sampler(
            replace(
                sampling,
                temperature=sampling.temperature if mode == "coupled" else 0.0,
                repeat_penalty=1.0,
                frequency_penalty=0.0,
                presence_penalty=0.0,
                logit_bias={},
            )
        )

    def begin(self, history: Tokens) -> None:
        self._full = False
        if not history:
            self._backend.truncate(0)
            self._cached.clear()
        elif 0 < len(read := self._reader(history)) < self._backend.n_ctx:
            self._catch_up(read)

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        text = _Text(self._pair, history, self._reader(history))
        if not 0 < len(text.read) < self._backend.n_ctx:
            self._say_full()
            return NO_DRAFT
        guide = None if self._guide is None else self._guide.match(history)
        idle = 0
        while text.settled < plan.max_draft and idle < _MOST_DRAWN:
            tokens = text.tokens[: text.settled]
            evidence = _evidence(text, guide)[: text.settled]
            copied, why = ([], []) if guide is None else guide.after(tokens).run(plan.max_draft - len(tokens))
            choice = plan.choose(evidence, why)
            if choice == "copy":
                sources = ["draft"] * len(tokens) + ["suffix"] * len(copied)
                return chain([*tokens, *copied], sources, [*evidence, *why])
            if choice == "stop" or text.closed or len(text.read) >= self._backend.n_ctx:
                break
            self._draw(text, history)
            idle = idle + 1 if text.settled <= len(tokens) else 0
        found = chain(text.tokens, self.name, _evidence(text, guide))
        return found.first(min(plan.max_draft, text.settled or len(found)))

    def _draw(self, text: _Text, history: Tokens) -> None:
        """One more of the draft's tokens; at first one in the middle of which the history ends, if any."""
        joined, longer = (0, []) if text.drawn else self._begun(text.read)
        rows = self._catch_up(text.read, joined + 1)
        if joined:
            ids = [text.read[-joined], *longer]
            best = int(rows[0, ids].argmax())
            share = confidence(rows[0, ids])
            if best:
                text.replace(joined, ids[best], share)
                return
            text.doubt = share
        row = rows[-1, : self._pair.draft.n_vocab]
        if text.settled < len(text.tokens):
            token = int(row.argmax())
        else:
            token = self._sampler.choose(row, history, text.tokens, self._pair.first)
        text.add(token, confidence(row))

    def _begun(self, read: Tokens) -> tuple[int, list[int]]:
        """How many of the last tokens may be the beginning of a longer one instead, and of which."""
        found: tuple[int, list[int]] = (0, [])
        begun = b""
        for n in range(1, min(_JOINED + 1, len(read), self._backend.capabilities.max_rows)):
            piece = self._pair.draft.piece(read[-n])
            if not piece:
                break
            begun = piece + begun
            if begun in self._pair.longer:
                found = n, self._pair.longer[begun]
        return found

    def _catch_up(self, read: Tokens, rows: int = 1) -> FloatArray:
        """Bring the cache to exactly these tokens. The rows after the last of them, `[rows, n_vocab]`."""
        same = min(common_prefix(self._cached, read), self._backend.length, len(read) - rows)
        if same < len(self._cached):
            same = cut(self._backend, same)
            del self._cached[same:]
        fresh = read[same:]
        if rows > 1 and len(fresh) > self._backend.capabilities.max_rows:
            self._forward(fresh[:-rows], "none")
            fresh = fresh[-rows:]
        return self._forward(fresh, "all" if rows > 1 else "last")[-rows:]

    def _forward(self, tokens: Tokens, rows: Literal["all", "last", "none"]) -> FloatArray:
        found = self._backend.forward(tokens, rows=rows)
        self._backend.commit(range(len(tokens)))
        self._cached += tokens
        return found

    def _say_full(self) -> None:
        if not self._full:
            self._full = True
            self._notify(f"the draft model's context of {self._backend.n_ctx} tokens is full: it pauses")

    def observe(self, verdict: Verdict) -> None:
        pass


def _evidence(text: _Text, guide: Match | None) -> list[Evidence]:
    """Of each token: the draft's chance, and whether copying agrees."""
    found: list[Evidence] = []
    for token, chance in zip(text.tokens, text.chances, strict=True):
        copied = None if guide is None else guide.next()
        found.append((chance, 0.0 if copied is None else 1.0 if copied[0] == token else -1.0))
        if guide is not None:
            guide = guide.after([token])
    return found


class _Text:
    """What has been drafted behind a history, in the target's tokens."""

    def __init__(self, pair: Retokenisation, history: Tokens, read: Tokens) -> None:
        self._pair = pair
        self.read = list(read)
        """All of it in the draft's tokens."""
        self._before = b""
        for token in reversed(history[-_TAIL:]):
            piece = pair.target.piece(token)
            if not piece:
                break
            self._before = piece + self._before
        self._new = b""
        self.drawn: list[tuple[int, float]] = []
        """Of each of the draft's new tokens: where it ends in the text, and its chance."""
        self.tokens: list[int] = []
        self.chances: list[float] = []
        """Of each token: that of all the draft's tokens that it is made of."""
        self.settled = 0
        """How many tokens will most likely stay as they are."""
        self.doubt = 1.0
        """The chance that the history ends where a token of the draft's does."""
        self.closed = False
        """Is this text at its end?"""

    def add(self, token: int, chance: float) -> None:
        """The draft's next token; a control token spells nothing and ends the text."""
        self._add(token, self._pair.draft.piece(token), chance)

    def replace(self, last: int, token: int, chance: float) -> None:
        """The draft's next token, in which its `last` tokens of the history are the beginning."""
        begun = b"".join(map(self._pair.draft.piece, self.read[-last:]))
        del self.read[-last:]
        self._add(token, self._pair.draft.piece(token)[len(begun) :], chance)

    def _add(self, token: int, piece: bytes, chance: float) -> None:
        self.read.append(token)
        self.closed = not piece
        self._new += piece
        tokens, ends = self._cut()
        self.settled = len(tokens) if self.closed else self._settled(ends)
        end = self._pair.ending(token) if self.closed else None
        if end is not None:
            tokens, ends = [*tokens, end], [*ends, len(self._new) + 1]
            self.settled += 1
        self.drawn.append((len(self._new) + self.closed, chance))
        self.tokens = tokens
        self.chances = [self._chance(begin, end) for begin, end in pairwise([0, *ends])]

    def _cut(self) -> tuple[list[int], list[int]]:
        """The target's tokens of the new text; cut alone where one would reach back over its beginning."""
        size = len(self._before)
        tokens, ends = self._pair.to_target(self._before + self._new)
        first = bisect_right(ends, size)
        if size and (not first or ends[first - 1] != size):
            return self._pair.to_target(self._new)
        return tokens[first:], [end - size for end in ends[first:]]

    def _settled(self, ends: list[int]) -> int:
        whole = complete(self._new)
        n = bisect_right(ends, whole)
        if not n or n < len(ends):
            return n
        last = self._pair.draft.piece(self.read[-1])
        begins = [0, *ends][:n]
        joined = range(1, min(_TAIL, n) + 1)
        return n - max((k for k in joined if self._pair.is_open(self._new[begins[-k] :], last)), default=0)

    def _chance(self, begin: int, end: int) -> float:
        chance, at = 1.0 if begin else self.doubt, 0
        for drawn, share in self.drawn:
            if drawn > begin and at < end:
                chance *= share
            at = drawn
        return chance
