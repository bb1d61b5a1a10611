"""What is measured: one answer, and one time to first token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

PLAIN = "plain"
TOGETHER = 0.001
"""Seconds: tokens that come closer than this to each other arrive together."""

Arrivals = tuple[tuple[float, int], ...]
"""(seconds since the request, tokens that came then), in order; the first is the first token's."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One answer as a contender took it. None is what it cannot know.

    `tokens`: ids. `n`: tokens in the answer. `rounds`: that brought some. `joules`: of the whole
    machine, where it tells.
    """

    text: str
    tokens: tuple[int, ...] | None
    n: int
    arrivals: Arrivals
    rounds: int | None = None
    draft_n: int | None = None
    draft_n_accepted: int | None = None
    joules: float | None = None

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens after the first, over the time from its arrival to the end."""
        if self.n < 2 or not self.arrivals:
            return None
        seconds = self.arrivals[-1][0] - self.arrivals[0][0]
        return (self.n - self.arrivals[0][1]) / seconds if seconds > 0 else None

    def pauses(self) -> Iterator[tuple[float, int]]:
        """(seconds since tokens last arrived, tokens that then arrived together), after the first."""
        if not self.arrivals:
            return
        last, n = self.arrivals[0][0], 0
        at = last
        for seconds, tokens in self.arrivals[1:]:
            if n and seconds - at >= TOGETHER:
                yield at - last, n
                last, n = at, 0
            at, n = seconds, n + tokens
        if n:
            yield at - last, n


@dataclass(frozen=True, slots=True)
class Place:
    """Which answer it is; those with the same place but another configuration make a pair."""

    prompt: str
    category: str
    turn: int
    repetition: int


@dataclass(frozen=True, slots=True)
class Answer:
    configuration: str
    place: Place
    taken: Taken

    def as_dict(self) -> dict[str, Any]:
        """For JSON, times to the microsecond."""
        arrivals = [[round(seconds, 6), n] for seconds, n in self.taken.arrivals]
        return {
            "configuration": self.configuration,
            **asdict(self.place),
            **{f.name: getattr(self.taken, f.name) for f in fields(Taken)},
            "arrivals": arrivals,
        }

    @staticmethod
    def from_dict(d: dict[str, Any]) -> Answer:
        """Raises KeyError or TypeError if it is none."""
        taken = {f.name: d[f.name] for f in fields(Taken)}
        taken["arrivals"] = tuple((float(seconds), int(n)) for seconds, n in d["arrivals"])
        taken["tokens"] = None if d["tokens"] is None else tuple(d["tokens"])
        return Answer(d["configuration"], Place(**{f.name: d[f.name] for f in fields(Place)}), Taken(**taken))


@dataclass(frozen=True, slots=True)
class First:
    """Time to the first token of a prompt that nothing had read before."""

    configuration: str
    prompt: str
    category: str
    turn: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Difference:
    """An answer that is not plain's: position of the first different token, or character."""

    configuration: str
    place: Place
    position: int


def differences(answers: Sequence[Answer]) -> list[Difference]:
    """Every answer that differs from the plain one at its place."""
    plain = {a.place: a.taken for a in answers if a.configuration == PLAIN}
    found = []
    for answer in answers:
        base, own = plain.get(answer.place), answer.taken
        if base is None or answer.configuration == PLAIN:
            continue
        ids = base.tokens is not None and own.tokens is not None
        at = _differ(base.tokens or (), own.tokens or ()) if ids else _differ(base.text, own.text)
        if at is not None:
            found.append(Difference(answer.configuration, answer.place, at))
    return found


def _differ(a: Sequence[object], b: Sequence[object]) -> int | None:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return None if len(a) == len(b) else min(len(a), len(b))
