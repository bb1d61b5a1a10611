"""The proposers that need no model of their own, by name: one line adds one."""

from __future__ import annotations

from collections.abc import Callable

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


def proposer_names() -> tuple[Source, ...]:
    """All proposers, in the order in which they are asked."""
    return ("suffix", "memory", *(name for name in FREE if name != "suffix"), "draft")
