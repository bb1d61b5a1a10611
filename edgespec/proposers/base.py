"""What a proposer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from edgespec.types import (
    Distribution,
    Draft,
    Ids,
    Plan,
    SamplingSettings,
    Source,
    Tokens,
    Verdict,
    Window,
)


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


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token of a draft model, its top probability in that place, and in rejection mode its q.

    `others`: what else it finds likely there, and the share of each in what is left by those before.
    """

    token: int
    top: float
    q: Distribution | None = None
    others: Sequence[tuple[int, float]] = ()


class Quick(Protocol):
    """A draft model's own speculation: several of its tokens from one pass."""

    def configure(self, sampling: SamplingSettings, mode: Literal["coupled", "rejection"]) -> None: ...

    def begin(self, history: Tokens) -> None:
        """A new answer to this prompt."""
        ...

    def draw(self, text: list[int], most: int, width: int) -> list[Drawn]:
        """The model's next tokens after `text`, one to `most`, each with up to `width` - 1 others.

        The model's cache holds a beginning of `text`; afterwards of `text` and these tokens.
        """
        ...


@runtime_checkable
class Sampling(Protocol):
    """A proposer that draws its tokens: it needs the target's settings before each answer."""

    def configure(self, sampling: SamplingSettings, mode: Literal["coupled", "rejection"]) -> None: ...
