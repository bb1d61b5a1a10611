"""A draft model's tree, level by level: the likeliest children of what pays so far (SpecInfer; EAGLE-2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgespec.proposers.suffix import Match
from edgespec.types import NO_DRAFT, Draft, Evidence, Grow, Source

Child = tuple[int, float, float]
"""(token, its share of what the likelier ones leave, what the model knew of it)."""

Look = Callable[[Draft, Sequence[int]], Sequence[Sequence[Child]]]
"""A tree and some of its nodes, -1 is the pending token -> their children, the likeliest first. One pass."""


def branched(look: Look, guide: Match | None, grow: Grow, most: int) -> Draft:
    """Add levels of children while `grow` says so, then what copying knows to follow the likeliest leaf.

    `guide`: a match of the history; it tells, too, which children copying agrees with. At most `most` nodes.
    """
    tree, more = grow(NO_DRAFT)
    ends, level = [-1], 0
    while more and ends and len(tree) < most:
        tree, more = grow(_wider(tree, ends, look(tree, ends), guide, most))
        level += 1
        ends = [i for i in range(len(tree)) if len(tree.path(i)) == level]
    return tree if guide is None or not tree.tokens else _copied(tree, guide, most)


def _wider(
    tree: Draft, ends: Sequence[int], found: Sequence[Sequence[Child]], guide: Match | None, most: int
) -> Draft:
    """With the children that are likeliest to be reached, as far as there is room."""
    candidates: list[tuple[float, int, int, Evidence]] = []
    for end, children in zip(ends, found, strict=True):
        left = tree.survival[end] if tree.survival and end >= 0 else 1.0
        copied = None if guide is None else guide.after(tree.path(end)).next()
        for token, share, known in children:
            agrees = 0.0 if copied is None else 1.0 if copied[0] == token else -1.0
            candidates.append((left * share, end, token, (known, agrees)))
            left *= 1.0 - share
    candidates.sort(key=lambda candidate: -candidate[0])
    return _with(tree, [candidate[1:] for candidate in candidates[: most - len(tree)]], "draft")


def _copied(tree: Draft, guide: Match, most: int) -> Draft:
    """The model's tree, and copying behind the leaf that is likeliest to be reached."""
    leaves = [i for i in range(len(tree)) if i not in tree.parents]
    end = max(leaves, key=lambda i: tree.survival[i] if tree.survival else 0.0)
    tokens, evidence = guide.after(tree.path(end)).run(most - len(tree))
    n = len(tree)
    parents = [end, *range(n, n + len(tokens) - 1)][: len(tokens)]
    return _with(tree, list(zip(parents, tokens, evidence, strict=True)), "suffix")


def _with(tree: Draft, nodes: Sequence[tuple[int, int, Evidence]], source: Source) -> Draft:
    """`nodes`: (parent, token, evidence)."""
    return Draft(
        (*tree.tokens, *(token for _, token, _ in nodes)),
        (*tree.parents, *(parent for parent, _, _ in nodes)),
        (*tree.evidence, *(evidence for _, _, evidence in nodes)),
        (*tree.sources, *(source for _ in nodes)),
    )
