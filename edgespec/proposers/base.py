"""What a proposer is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

from edgespec.types import Draft, Ids, Plan, SamplingSettings, Source, Tokens, Verdict, Window


class Proposer(Protocol):
    """Guesses what follows `history`, whose last token is the pending one."""

    name: Source

    def begin(self, history: Tokens) -> None:
        """A new answer to this prompt: reuse what still holds, take in the rest."""
        ...

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        """At most `plan.max_draft` tokens that may follow `history`; `NO_DRAFT` if nothing is known."""
        ...

    def observe(self, verdict: Verdict) -> None:
        """What the target made of the last draft."""
        ...


class Learning(Protocol):
    """A proposer that learns what the target found likely, verified or not; it never sees logits."""

    n_best: int

    def learn(self, token: int, best: Ids) -> None:
        """After `token`, in a place where a pass computed a row, these `n_best` ids were likeliest, the best
        first. Rows may be left out where looking takes too long.
        """
        ...


class Refining(Protocol):
    """A proposer whose guesses the target answers in rows of their own; it sees tokens, never logits."""

    def window(self, history: Tokens, window: Window) -> Draft:
        """Guesses to be verified for what the answers tell, however unlikely: at most `window.rows` nodes."""
        ...

    def refine(self, draft: Draft, verdict: Verdict, answer: Callable[[int], int]) -> None:
        """After each pass. `answer(i)`: what the target says behind node i of what was verified."""
        ...


@runtime_checkable
class Sampling(Protocol):
    """A proposer that draws its tokens: it needs the target's settings before each answer."""

    def configure(self, sampling: SamplingSettings, mode: Literal["coupled", "rejection"]) -> None: ...
