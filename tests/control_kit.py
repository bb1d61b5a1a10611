"""Drafts, and what became of them, for tests of policies."""

from edgespec.types import Offer, Outcome, chain

SURE, LIKELY, UNLIKELY = (30.0, 1.0, 2.0), (8.0, 1.0, 1.0), (1.0, 0.2, 1.0)


def copied(*evidence):
    return chain(range(len(evidence)), "suffix", evidence)


def drawn(*tops):
    return chain(range(len(tops)), "draft", [(top, 0.0) for top in tops])


def round_of(draft, accepted, t_verify, *, t_propose=0.0, offered=None):
    """What a round did that verified `draft` and found this many right."""
    offered = draft if offered is None else offered
    told = tuple((i, i < accepted) for i in range(min(len(offered), accepted + 1)))
    offers = (Offer(offered, told),) if offered.tokens else ()
    return Outcome(draft, accepted, accepted + 1, 0, t_propose, t_verify, 0.0, offers)
