"""Verification by rejection: accept with min(1, p/q), otherwise sample the residual (p-q)+."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from edgespec.sampling import noise
from edgespec.sampling.sampler import draw
from edgespec.types import Distribution, Draft, Verdict

Target = Callable[[int, Sequence[int]], Distribution]
"""(row, drafted path to that row) -> p after every transform."""


def verify_rejection(draft: Draft, target: Target, seed: int, position: int) -> Verdict:
    """Leviathan et al. 2023, on trees as in SpecInfer: siblings are tried in order.

    `position`: index in the sequence of the token that row 0 predicts. Each token's q is the
    distribution it was drawn from, so siblings drawn without replacement carry their own; q=None is a
    point mass, whose residual is p without that token.
    """
    node, path, tokens = -1, list[int](), list[int]()
    while True:
        p = target(node + 1, tokens)
        accepted = None
        for i in (i for i in range(node + 1, len(draft.tokens)) if draft.parents[i] == node):
            x = draft.tokens[i]
            q = None if draft.q is None else draft.q[i]
            u = float(noise.uniform(seed, position, noise.ACCEPT, np.array([i]))[0])
            if u * (1.0 if q is None else prob(q, x)) < prob(p, x):
                accepted = i
                break
            p = residual(p, x, q)
        if accepted is None:
            return Verdict(tuple(path), draw(p, seed, position, noise.RESIDUAL))
        node = accepted
        path.append(node)
        tokens.append(draft.tokens[node])
        position += 1


def prob(p: Distribution, token: int) -> float:
    i = int(np.searchsorted(p.ids, token))
    return float(p.probs[i]) if i < len(p.ids) and p.ids[i] == token else 0.0


def residual(p: Distribution, token: int, q: Distribution | None) -> Distribution:
    """norm((p - q)+), p itself where nothing is left."""
    rest = p.probs.copy()
    if q is None:
        rest[p.ids == token] = 0.0
    else:
        at = np.minimum(np.searchsorted(q.ids, p.ids), len(q.ids) - 1)
        rest = np.maximum(rest - np.where(q.ids[at] == p.ids, q.probs[at], 0.0), 0.0)
    mass = float(rest.sum())
    return Distribution(p.ids, rest / mass) if mass > 1e-12 else p
