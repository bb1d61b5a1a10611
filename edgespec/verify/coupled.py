"""Verification by coupled noise: follow the child that equals the target's own token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgespec.types import Draft, Verdict

Choose = Callable[[int, Sequence[int]], int]
"""(row, drafted path to that row) -> the token that plain decoding emits there."""


def verify_coupled(draft: Draft, choose: Choose) -> Verdict:
    """Accept while a drafted token equals what the target chooses. Row 0 is the pending token's.

    The text is that of plain decoding, whatever the draft: shared-noise coupling of draft and target
    (Gumbel-max) reaches p(x) for a point-mass draft and at least (1-TV)/(1+TV) for a sampled one.
    """
    node, path, tokens = -1, list[int](), list[int]()
    while True:
        chosen = choose(node + 1, tokens)
        child = _child(draft, node, chosen)
        if child is None:
            return Verdict(tuple(path), chosen)
        node = child
        path.append(node)
        tokens.append(chosen)


def _child(draft: Draft, node: int, token: int) -> int | None:
    for i in range(node + 1, len(draft.tokens)):
        if draft.parents[i] == node and draft.tokens[i] == token:
            return i
    return None
