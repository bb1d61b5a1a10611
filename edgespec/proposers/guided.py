"""One draft from two sources: a model token by token, and copying where the way ahead is known."""

from __future__ import annotations

from collections.abc import Callable

from edgespec.proposers.suffix import Match
from edgespec.types import NO_DRAFT, Draft, Evidence, Plan, Source, chain

Draw = Callable[[list[int]], tuple[int, float]]
"""Drafted path -> (the model's token after it, its top probability). Takes the model's time."""


def guided(draw: Draw, guide: Match | None, plan: Plan, most: int, *, whole: bool = False) -> Draft:
    """Draft until `plan.choose` says stop, or to copy to the end.

    `whole`: every token must be verified, so the draft stops only at an allowed row count; to drop a
    sampled token for what came after it would bias the text.
    """
    path: list[int] = []
    sources: list[Source] = []
    evidence: list[Evidence] = []
    while len(path) < most:
        copied: tuple[list[int], list[Evidence]] = ([], [])
        if guide is not None:
            copied = guide.run(most - len(path))
        choice = plan.choose(evidence, copied[1])
        if choice == "copy":
            path += copied[0]
            evidence += copied[1]
            sources += ["suffix"] * len(copied[0])
            break
        if choice == "stop" and not (whole and path and plan.fit(len(path)) != len(path)):
            break
        token, top = draw(path)
        agrees = 0.0 if not copied[0] else 1.0 if copied[0][0] == token else -1.0
        path.append(token)
        sources.append("draft")
        evidence.append((top, agrees))
        if guide is not None:
            guide.advance(token)
    return chain(path, sources, evidence) if path else NO_DRAFT
