"""Frozen data that crosses rooms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
"""Logits: float32, `[rows, n_vocab]`."""

Ids = NDArray[np.int64]
"""Token ids as an array."""

Tokens = Sequence[int]
"""Token ids, oldest first."""


def common_prefix(a: Tokens, b: Tokens) -> int:
    """Length of the longest common beginning, by halving: slices are compared at the speed of C."""
    low, high = 0, min(len(a), len(b))
    if list(a[:high]) == list(b[:high]):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if list(a[low:middle]) == list(b[low:middle]):
            low = middle
        else:
            high = middle
    return low


Clock = Callable[[], float]
"""Seconds since any fixed moment; simulated runs bring their own."""

FinishReason = Literal["stop", "length", "cancelled"]
Source = str
"""Who proposed a token: "target", or the name of a proposer."""
Numerics = Literal["exact", "near"]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A sparse distribution after every transform.

    `ids`: int64 `[k]`, ascending and unique. `probs`: float64 `[k]`, sums to 1.
    """

    ids: NDArray[np.int64]
    probs: NDArray[np.float64]


Evidence = tuple[float, ...]
"""What a proposer knew when it drafted a token. Copying: (match length, share of the continuations seen,
times seen). Draft model: (its top probability, 1 if copying drafts the same token, -1 another, 0 none).
Recycling: (its place among the successors of its token, 0 the surest)."""

Choice = Literal["draft", "copy", "stop"]


@dataclass(frozen=True, slots=True)
class Draft:
    """One guess: a topologically ordered tree, `parents[i] < i`, -1 is the pending token.

    `q[i]` is the distribution that token i was sampled from; `q=None` is a point mass.
    `evidence[i]`: why token i was drafted. `sources[i]`: who proposed it.
    `survival[i]`: estimated probability that it is reached and accepted, filled in by the policy.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    sources: tuple[Source, ...] = ()
    q: tuple[Distribution, ...] | None = None
    survival: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        return self.parents == _CHAIN[: len(self.parents)]

    def path(self, node: int) -> list[int]:
        """The tokens from the root to this node, itself included; none for -1."""
        path: list[int] = []
        while node >= 0:
            path.append(self.tokens[node])
            node = self.parents[node]
        return path[::-1]

    def keep(self, nodes: Sequence[int]) -> Draft:
        """The tree of these nodes, ascending; a node's parent is among them. Raises KeyError."""
        if len(nodes) == len(self.tokens):
            return self
        place = {-1: -1} | {node: i for i, node in enumerate(nodes)}
        return Draft(
            tuple(self.tokens[i] for i in nodes),
            tuple(place[self.parents[i]] for i in nodes),
            tuple(self.evidence[i] for i in nodes),
            tuple(self.sources[i] for i in nodes),
            None if self.q is None else tuple(self.q[i] for i in nodes),
            tuple(self.survival[i] for i in nodes) if self.survival else (),
        )

    def first(self, n: int) -> Draft:
        """The draft cut to its first n tokens."""
        if n >= len(self.tokens):
            return self
        q = None if self.q is None else self.q[:n]
        return Draft(
            self.tokens[:n], self.parents[:n], self.evidence[:n], self.sources[:n], q, self.survival[:n]
        )


_CHAIN = tuple(range(-1, 256))
NO_DRAFT = Draft()


def merge(drafts: Sequence[Draft]) -> Draft:
    """One tree of several drafts that sample nothing; of equal nodes the first draft's stays, or the one
    with the longer match where both copy.
    """
    if len(drafts) < 2:
        return drafts[0] if drafts else NO_DRAFT
    tokens: list[int] = []
    parents: list[int] = []
    evidence: list[Evidence] = []
    sources: list[Source] = []
    survival: list[float] = []
    child: dict[tuple[int, int], int] = {}
    for draft in drafts:
        place = {-1: -1}
        for i, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            under = place[parent]
            node = child.get((under, token))
            if node is None:
                node = child[under, token] = len(tokens)
                tokens.append(token)
                parents.append(under)
                evidence.append(draft.evidence[i])
                sources.append(draft.sources[i])
                survival.append(draft.survival[i] if draft.survival else 0.0)
            elif _is_longer(draft.evidence[i], evidence[node]):
                evidence[node], sources[node] = draft.evidence[i], draft.sources[i]
            place[i] = node
    alive = tuple(survival) if any(draft.survival for draft in drafts) else ()
    return Draft(tuple(tokens), tuple(parents), tuple(evidence), tuple(sources), survival=alive)


def _is_longer(match: Evidence, other: Evidence) -> bool:
    return len(match) == len(other) == 3 and match[0] > other[0]


def chain(
    tokens: Tokens,
    source: Source | Sequence[Source],
    evidence: Sequence[Evidence],
    q: Sequence[Distribution] | None = None,
) -> Draft:
    """A draft without branches."""
    n = len(tokens)
    return Draft(
        tuple(tokens),
        tuple(range(-1, n - 1)),
        tuple(evidence),
        (source,) * n if isinstance(source, str) else tuple(source),
        None if q is None else tuple(q),
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """`path`: draft indices that the target accepted, root first. `next_token`: its own token after them."""

    path: tuple[int, ...]
    next_token: int


Grow = Callable[[Draft], tuple[Draft, bool]]
"""A model's tree so far -> (the part of it that pays, whether another level does)."""


def always_draft(drafted: Sequence[Evidence], copied: Sequence[Evidence]) -> Choice:
    return "draft"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one round may do. No proposers is plain decoding.

    `max_draft`: most tokens in a draft. `row_counts`: the row counts n + 1 that a pass may have,
    ascending; None allows all. `choose(drafted, copied)` asks how a model's draft goes on after tokens
    with the evidence `drafted`, where `copied` could follow for nothing. `tree`: drafts may branch.
    `grow`: a model's draft is a tree that grows by levels; None where it is a chain.
    """

    proposers: tuple[Source, ...] = ()
    max_draft: int = 0
    row_counts: tuple[int, ...] | None = None
    choose: Callable[[Sequence[Evidence], Sequence[Evidence]], Choice] = always_draft
    tree: bool = False
    grow: Grow | None = None

    def fit(self, n: int) -> int:
        """The most drafted tokens, at most n, whose row count n + 1 is allowed."""
        n = min(n, self.max_draft)
        if self.row_counts is None:
            return max(n, 0)
        return max((rows - 1 for rows in self.row_counts if rows <= n + 1), default=0)


@dataclass(frozen=True, slots=True)
class Window:
    """Rows of a pass that refine guesses: `columns` (W), each of up to `levels` - 1 (N - 1) tokens."""

    columns: int = 0
    levels: int = 2

    @property
    def rows(self) -> int:
        return self.columns * (self.levels - 1)


NO_WINDOW = Window()


@dataclass(frozen=True, slots=True)
class Offer:
    """A draft as it was proposed, uncut, and what the target's own tokens `told` of it.

    (node, right or wrong), parents first, as far as the target's tokens go: what would have been,
    verified or not.
    """

    draft: Draft
    told: tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one round did. Times are seconds; `context` is the cache length before the round."""

    draft: Draft
    accepted: int
    emitted: int
    context: int
    t_propose: float
    t_verify: float
    t_other: float
    offers: tuple[Offer, ...] = ()
    plan: Plan | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """Whether speculation is on now, who proposes, how deep, and why. `figures`: what the policy went by."""

    on: bool
    proposer: str
    depth: int
    reason: str
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """Order as in llama.cpp: bias, penalties, top-k, top-p, min-p, temperature last.

    `temperature` 0 is argmax with the lowest id on ties. `top_k` 0, `top_p` 1, `min_p` 0,
    `repeat_penalty` 1 and the other penalties 0 switch a step off. `penalty_last_n`: tokens of the
    history that penalties look at, -1 for all of it.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_last_n: int = 64
    logit_bias: dict[int, float] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One emitted token as text. `text` may be empty: a byte of a character still to come."""

    token: int
    text: str
    source: Source
    position: int
    kind: Literal["answer", "thinking"] = "answer"


@dataclass(frozen=True, slots=True)
class StepEvent:
    """What one round released. `finish` is set on the last event of a generation.

    `sampled`: tokens that the round sampled and kept, also those whose text is still held back.
    """

    pieces: tuple[Piece, ...]
    sampled: int
    outcome: Outcome | None = None
    finish: FinishReason | None = None

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)
