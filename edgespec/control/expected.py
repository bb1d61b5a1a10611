"""What a draft is expected to bring, by what its tokens are known for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.control.cost import MOST_ROWS, CostModel
from edgespec.control.ledger import Bets, Branches
from edgespec.control.survival import Calibration, table_of
from edgespec.types import Draft, Evidence, Offer, Source


def chances(
    calibration: Calibration, evidence: Sequence[Evidence], sources: Iterable[Source], most: int
) -> NDArray[np.float64]:
    """Of the first tokens of a chain, each given those before it, `[min(n, most)]`."""
    pairs = zip(evidence[:most], sources, strict=False)
    return np.array([calibration.chance(why, table_of(source, False)) for why, source in pairs])


def bets(calibration: Calibration, draft: Draft, most: int) -> tuple[NDArray[np.int64], Bets]:
    """The nodes from the likeliest to be reached on, parents first, and what is won with so many, `[n]`."""
    if draft.is_chain:
        known = chances(calibration, draft.evidence, draft.sources, most)
        return np.arange(len(known)), Bets(known)
    n, chance = len(draft), calibration.chance
    survival, depth, taken = np.ones(n + 1), np.zeros(n + 1, np.int64), np.zeros(n + 1)
    alone = [chance(why, table_of(s, False)) for why, s in zip(draft.evidence, draft.sources, strict=True)]
    # Of siblings the likeliest first; a draft model has them in order already.
    place = [0.0 if source == "draft" else -c for source, c in zip(draft.sources, alone, strict=True)]
    for i in sorted(range(n), key=lambda i: (draft.parents[i], place[i])):
        parent, here = draft.parents[i], alone[i]
        if taken[parent] > 0.0:
            here = chance(draft.evidence[i], table_of(draft.sources[i], True)) * (1.0 - taken[parent])
        taken[parent] += here
        survival[i] = here * survival[parent]
        depth[i] = depth[parent] + 1
    order = np.argsort(-survival[:n], kind="stable")[:most]
    return order, Branches(survival[order], depth[order])


def reach(calibration: Calibration, draft: Draft, cost: CostModel) -> int:
    """How many tokens of a chain that cost nothing are worth weighing; 0 if it loses at any length.

    Those that are reached less often than half of what a row costs where rows are cheapest are not.
    """
    alive, emitted, pays, relative, least = 1.0, 1.0, False, cost.relative, 0.5 * cost.row
    n = 0
    for n, (why, source) in enumerate(zip(draft.evidence, draft.sources, strict=True), 1):
        alive *= calibration.chance(why, table_of(source, False))
        emitted += alive
        pays = pays or emitted > relative[n + 1]
        if alive < least or n + 1 == MOST_ROWS:
            break
    return n if pays else 0


def learn(calibration: Calibration, offer: Offer) -> None:
    """Count what was told of a draft; of siblings, those behind the right one are not known to be wrong."""
    draft = offer.draft
    before, hit = -2, False
    for node, right in offer.told:
        parent = draft.parents[node]
        beside = parent == before
        if not (beside and hit):
            calibration.learn(draft.evidence[node], right, table_of(draft.sources[node], beside))
        before, hit = parent, right or (beside and hit)
