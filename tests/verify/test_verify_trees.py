"""Branches under rejection: what comes out is the target's, in fractions and in draws."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from edgespec.sampling import noise
from edgespec.types import Distribution, Draft
from edgespec.verify import rejection, verify_rejection

DRAWS = 20_000
SHAPES = {"fork": (-1, -1, -1), "two levels": (-1, -1, 0, 0), "comb": (-1, -1, 1, 1, 3)}
KINDS = ("point", "with replacement", "without replacement")
ALL = pytest.mark.parametrize("kind", KINDS)
EVERYWHERE = pytest.mark.parametrize("shape", SHAPES)

Probs = dict[int, Fraction]


@dataclass(frozen=True)
class Tree:
    """`q[i]`: what token i was drawn from, None for a point mass."""

    parents: tuple[int, ...]
    tokens: tuple[int, ...]
    q: tuple[Probs | None, ...]

    @property
    def draft(self) -> Draft:
        n = len(self.tokens)
        q = None if self.q[0] is None else tuple(map(distribution, self.q))
        return Draft(self.tokens, self.parents, ((1.0, 0.0),) * n, ("draft",) * n, q)


def distribution(p: Probs) -> Distribution:
    return Distribution(np.array(list(p)), np.array([float(x) for x in p.values()]))


def normalised(p: Probs) -> Probs:
    mass = sum(p.values())
    return {x: weight / mass for x, weight in p.items()} if mass else p


def without(q: Probs, token: int) -> Probs:
    return normalised({x: Fraction(0) if x == token else weight for x, weight in q.items()})


def random_probs(rng, n: int) -> Probs:
    weights = rng.integers(1, 9, n)
    return {x: Fraction(int(w), int(weights.sum())) for x, w in enumerate(weights)}


def trees(kind, parents, point, q):
    """(tree, its probability): all that a draft model may draw. `q(token)`: after this one, None at first."""
    drawn: list[tuple[tuple[int, ...], tuple, Fraction]] = [((), (), Fraction(1))]
    for i, parent in enumerate(parents):
        longer = []
        for tokens, qs, chance in drawn:
            if kind == "point":
                longer.append(((*tokens, point[i]), (*qs, None), chance))
                continue
            mine = q(tokens[parent] if parent >= 0 else None)
            if kind == "without replacement":
                for j in range(i):
                    mine = without(mine, tokens[j]) if parents[j] == parent else mine
            longer += [((*tokens, x), (*qs, mine), chance * p) for x, p in mine.items() if p]
        drawn = longer
    return [(Tree(parents, tokens, qs), chance) for tokens, qs, chance in drawn]


def children(tree, node):
    return [i for i, parent in enumerate(tree.parents) if parent == node]


def judged(p, x, q):
    """(chance to accept x, what is left of p if it is not): the rules, in fractions."""
    if q is None:
        return p[x], without(p, x)
    rest = {y: max(p[y] - q[y], Fraction(0)) for y in p}
    return min(Fraction(1), p[x] / q[x]), normalised(rest) if sum(rest.values()) else p


def emitted(tree, target, node=-1, path=()):
    """(emitted tokens, probability) of every end that verification may come to."""
    p, left = target(path[-1] if path else None), Fraction(1)
    for i in children(tree, node):
        chance, rest = judged(p, tree.tokens[i], tree.q[i])
        for tokens, further in emitted(tree, target, i, (*path, tree.tokens[i])):
            yield tokens, left * chance * further
        left, p = left * (1 - chance), rest
        if not left:
            return
    for x, weight in p.items():
        yield (*path, x), left * weight


def pairs_of(results, target):
    """The first two tokens; where only one was emitted, the target goes on."""
    found = Counter()
    for tokens, chance in results:
        if len(tokens) > 1:
            found[tokens[:2]] += chance
        else:
            for x, weight in target(tokens[0]).items():
                found[tokens[0], x] += chance * weight
    return found


@ALL
@EVERYWHERE
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_rules_are_exact_in_fractions(n, shape, kind):
    parents = SHAPES[shape]
    if n < 3 and kind == "without replacement" and shape == "fork":
        n = 3
    rng = np.random.default_rng([n, len(parents)])
    rows = {x: (random_probs(rng, n), random_probs(rng, n)) for x in (None, *range(n))}
    point = [int(x) for x in rng.permutation(n)[[i % n for i in range(len(parents))]]]
    found = Counter()
    for tree, chance in trees(kind, parents, point, lambda x: rows[x][1]):
        results = [(tokens, chance * p) for tokens, p in emitted(tree, lambda x: rows[x][0])]
        found.update(pairs_of(results, lambda x: rows[x][0]))
    expected = {(a, b): rows[None][0][a] * rows[a][0][b] for a in range(n) for b in range(n)}
    assert {pair: chance for pair, chance in found.items() if chance} == expected


@ALL
@EVERYWHERE
def test_verification_follows_these_rules(shape, kind, monkeypatch):
    """With the same numbers it accepts the same children, and draws from what the rules leave."""
    left = []
    monkeypatch.setattr(rejection, "draw", lambda p, *key: left.append(p) or int(p.ids[p.probs.argmax()]))
    rng = np.random.default_rng(5)
    for position in range(60):
        n = int(rng.integers(3, 6))
        rows = {x: (random_probs(rng, n), random_probs(rng, n)) for x in (None, *range(n))}
        point = [int(x) for x in rng.permutation(n)[[i % n for i in range(len(SHAPES[shape]))]]]
        possible = trees(kind, SHAPES[shape], point, lambda x, rows=rows: rows[x][1])
        tree, _ = possible[int(rng.integers(len(possible)))]
        node, path, p = -1, [], rows[None][0]
        at = position * 10
        while True:
            taken = None
            for i in children(tree, node):
                chance, rest = judged(p, tree.tokens[i], tree.q[i])
                u = float(noise.uniform(3, at + len(path), noise.ACCEPT, np.array([i]))[0])
                if u < chance:
                    taken = i
                    break
                p = rest
            if taken is None:
                break
            node, p = taken, rows[tree.tokens[taken]][0]
            path.append(taken)

        def target(row, tokens, rows=rows):
            return distribution(rows[tokens[-1] if tokens else None][0])

        verdict = verify_rejection(tree.draft, target, 3, at)
        assert list(verdict.path) == path
        assert left[-1].probs == pytest.approx([float(x) for x in p.values()])


def fits(counts, expected):
    ids = sorted(expected)
    assert not set(counts) - set(ids), "an impossible token came out"
    seen = np.array([counts[i] for i in ids], float)
    wanted = np.array([float(expected[i]) for i in ids])
    return stats.chisquare(seen, wanted / wanted.sum() * seen.sum()).pvalue


@ALL
@EVERYWHERE
def test_draws_are_distributed_as_the_target(shape, kind):
    rng = np.random.default_rng(11)
    rows = {x: (random_probs(rng, 4), random_probs(rng, 4)) for x in (None, *range(4))}
    targets = {x: distribution(p) for x, (p, _) in rows.items()}
    possible = trees(kind, SHAPES[shape], (3, 2, 1, 0, 1), lambda x: rows[x][1])
    drafts = [tree.draft for tree, _ in possible]
    which = rng.choice(len(drafts), DRAWS, p=np.array([float(chance) for _, chance in possible]))
    first, pairs, depths = Counter(), Counter(), Counter()
    for i, at in enumerate(which):
        draft = drafts[at]
        verdict = verify_rejection(
            draft, lambda _, path: targets[path[-1] if path else None], seed=8, position=10 * i
        )
        out = [draft.tokens[k] for k in verdict.path] + [verdict.next_token]
        first[out[0]] += 1
        depths[len(verdict.path)] += 1
        if len(out) > 1:
            pairs[out[0], out[1]] += 1
    assert fits(first, rows[None][0]) > 0.001
    for a in range(4):
        after = Counter({b: pairs[a, b] for b in range(4)})
        assert after.total() < 50 or fits(after, rows[a][0]) > 0.001
    assert depths[2] or shape == "fork"


def test_mixing_the_kinds_is_biased():
    """Children drawn without replacement, verified as if they were drawn with it: the test can fail."""
    q = {0: Fraction(1, 2), 1: Fraction(1, 3), 2: Fraction(1, 6)}
    p, found = {0: Fraction(1, 6), 1: Fraction(1, 2), 2: Fraction(1, 3)}, Counter()
    for tree, chance in trees("without replacement", (-1, -1), (), lambda x: q):
        mixed = Tree(tree.parents, tree.tokens, (q, q))
        for tokens, further in emitted(mixed, lambda x: p):
            found[tokens[0]] += chance * further
    assert sum(found.values()) == 1
    assert dict(found) != p
