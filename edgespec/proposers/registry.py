"""The proposers that need no model of their own, by name: one line adds one."""

from __future__ import annotations

from collections.abc import Callable

from edgespec.errors import UsageError
from edgespec.proposers.base import Proposer
from edgespec.proposers.lookahead import LookaheadProposer
from edgespec.proposers.ngram import NgramProposer
from edgespec.proposers.recycling import RecyclingProposer
from edgespec.proposers.suffix import SuffixProposer
from edgespec.types import Source

FREE: dict[Source, Callable[[], Proposer]] = {
    "suffix": SuffixProposer,
    "ngram": NgramProposer,
    "recycling": RecyclingProposer,
    "lookahead": LookaheadProposer,
    "jacobi": lambda: LookaheadProposer("jacobi"),
}
AUTO: tuple[Source, ...] = ("suffix", "memory", "recycling", "lookahead", "draft")
"""Those that the policy may choose from when none is named. A suffix match is an n-gram match of any
length, so the index adds nothing beside it.
"""


def named_proposers(spec: str) -> tuple[Source, ...] | None:
    """The proposers that `--spec` names, in the order in which they are asked; None for "auto".

    Raises UsageError.
    """
    names = [name.strip() for name in spec.lower().split(",") if name.strip()]
    known = proposer_names()
    if names in (["auto"], ["off"]):
        return None if names == ["auto"] else ()
    if not names or set(names) - set(known):
        raise UsageError(f"--spec is auto, off, or some of {', '.join(known)} joined by commas; not {spec!r}")
    return tuple(name for name in known if name in names)


def proposer_names() -> tuple[Source, ...]:
    """All proposers, in the order in which they are asked."""
    return ("suffix", "memory", *(name for name in FREE if name != "suffix"), "draft")
