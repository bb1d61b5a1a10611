"""A conversation as it is kept: frozen data, free of any model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from edgespec.rates import Rates

if TYPE_CHECKING:
    from edgespec.metrics import Summary
    from edgespec.types import Piece

Role = Literal["user", "assistant"]
State = Literal["complete", "stopped", "partial"]
"""partial: it is being written, or was when its process was killed."""

TITLE_LENGTH = 80


class Run(NamedTuple):
    """So many characters of an answer that one source proposed."""

    length: int
    source: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class Figures(Rates):
    """Counters of an answer, as in `Summary`; times in seconds."""

    prompt_tokens: int = 0
    tokens: int = 0
    rounds: int = 0
    end_rounds: int = 0
    draft_n: int = 0
    draft_n_accepted: int = 0
    t_first: float = 0.0
    t_decode: float = 0.0

    @classmethod
    def of(cls, stats: Summary) -> Figures:
        return cls(**{field.name: getattr(stats, field.name) for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class Turn:
    """`created`: seconds since 1970. `model`, `finish`, `figures` and `runs` belong to answers;
    the lengths of `runs` add up to the content."""

    role: Role
    content: str
    created: float
    state: State = "complete"
    model: str | None = None
    finish: str | None = None
    figures: Figures | None = None
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A conversation in a list. `title`: given by the user, or the first words of the first message.

    `model`: the reference that loads its last model again. `match`: text around what was searched.
    """

    id: int
    title: str
    model: str | None
    created: float
    updated: float
    turns: int
    match: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A whole conversation. `id` is None, and `title` if nobody gave one, as in `Entry`."""

    turns: tuple[Turn, ...] = ()
    system: str | None = None
    model: str | None = None
    title: str | None = None
    created: float = 0.0
    updated: float = 0.0
    id: int | None = None

    @property
    def name(self) -> str:
        """The title to show."""
        first = next((turn.content for turn in self.turns if turn.role == "user"), "")
        return self.title or shortened(first)


def shortened(text: str) -> str:
    """The beginning of a text on one line, for a title."""
    line = " ".join(text[: 4 * TITLE_LENGTH].split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"


def runs_of(pieces: Iterable[Piece]) -> tuple[Run, ...]:
    """Who proposed which stretch of an answer."""
    runs = groupby((piece for piece in pieces if piece.text), key=lambda piece: (piece.source, piece.kind))
    return tuple(
        Run(sum(len(piece.text) for piece in group), source, kind == "thinking")
        for (source, kind), group in runs
    )
