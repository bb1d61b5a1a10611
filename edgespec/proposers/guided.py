"""One draft from two sources: a model token by token, and copying where the way ahead is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from edgespec.proposers.suffix import Match
from edgespec.sampling import Sampler
from edgespec.types import NO_DRAFT, Draft, Evidence, FloatArray, Plan, Source, Tokens


class Guide(Protocol):
    """What copying knows of a text."""

    def begin(self, history: Tokens) -> None: ...

    def match(self, history: Tokens) -> Match: ...


Draw = Callable[[list[int]], tuple[int, float]]
"""Drafted path -> (the model's token after it, its top probability). Takes the model's time."""


Beside = Callable[[list[int]], Sequence[tuple[int, float]]]
"""Drafted path -> what else the model finds likely after it, and the share of each in what is left by those
before. Asked right after `Draw` with the same path: it costs no pass."""

_CLEAR = 0.95
"""Where the model is as sure as this, its other tokens are not looked for."""


def others(
    sampler: Sampler, row: FloatArray, history: Tokens, path: Tokens, width: int, top: float
) -> Sequence[tuple[int, float]]:
    """What `Beside` tells of a row: at most `width` - 1 tokens. `top`: the row's confidence."""
    unsure = width > 1 and top < _CLEAR
    return sampler.choices(row, history, path, width, top)[1:] if unsure else ()


def guided(
    draw: Draw,
    guide: Match | None,
    plan: Plan,
    most: int,
    *,
    whole: bool = False,
    beside: Beside | None = None,
) -> Draft:
    """Draft until `plan.choose` says stop, or to copy to the end.

    `whole`: every token must be verified, so the draft stops only at an allowed row count; to drop a
    sampled token for what came after it would bias the text. `beside`: where the model is in doubt, its other
    tokens become leaves beside the one it goes on from.
    """
    path: list[int] = []
    drawn: list[Evidence] = []
    nodes: list[tuple[int, int, Evidence, Source]] = []
    end = -1

    def add(parent: int, token: int, why: Evidence, source: Source) -> int:
        nodes.append((token, parent, why, source))
        return len(nodes) - 1

    while len(path) < most:
        copied: tuple[list[int], list[Evidence]] = ([], [])
        if guide is not None:
            copied = guide.run(most - len(path))
        choice = plan.choose(drawn, copied[1])
        if choice == "copy":
            for token, why in zip(*copied, strict=True):
                end = add(end, token, why, "suffix")
            break
        if choice == "stop" and not (whole and path and plan.fit(len(path)) != len(path)):
            break
        token, top = draw(path)

        def agrees(token: int, copied: list[int] = copied[0]) -> float:
            return 0.0 if not copied else 1.0 if copied[0] == token else -1.0

        others = beside(path) if beside is not None and top < _CLEAR else ()
        parent, why = end, (top, agrees(token))
        end = add(parent, token, why, "draft")
        for other, share in others:
            add(parent, other, (share, agrees(other)), "draft")
        path.append(token)
        drawn.append(why)
        if guide is not None:
            guide.advance(token)
    if not nodes:
        return NO_DRAFT
    tokens, parents, evidence, sources = zip(*nodes, strict=True)
    return Draft(tokens, parents, evidence, sources)
