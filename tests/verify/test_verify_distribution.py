"""Whatever the draft, what comes out is distributed as the target's own sampling."""

import itertools
from collections import Counter

import numpy as np
import pytest
from naive_sampling import distribution as naive
from scipy import stats

from edgespec.sampling import Sampler, draw
from edgespec.sampling.noise import DRAFT
from edgespec.types import Distribution, Draft, SamplingSettings, chain
from edgespec.verify import verify_coupled, verify_rejection

P, Q = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
DRAWS = 20_000
OPEN = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
MODES = ("coupled", "rejection")


def log(probs):
    return np.log(np.array(probs, np.float32))


def dist(*probs):
    return Distribution(np.arange(len(probs)), np.array(probs))


def fits(counts, expected):
    """The p-value of a chi-square test, 0 where an impossible token came out."""
    ids = sorted(expected)
    if set(counts) - set(ids):
        return 0.0
    if len(ids) == 1:
        return 1.0
    seen = np.array([counts[i] for i in ids], float)
    return stats.chisquare(seen, np.array([expected[i] for i in ids]) * seen.sum()).pvalue


class Decoding:
    """Rounds over rows that do not depend on the context, until enough tokens were emitted."""

    def __init__(self, settings, mode, depth, drafting="sampled"):
        self.sampler = Sampler(settings)
        self.p = self.sampler.distribution(log(P), [0])
        self.q = self.sampler.distribution(log(Q), [0])
        self.mode, self.depth, self.drafting = mode, depth, drafting
        self.tokens = [0]
        self.verified = self.accepted = 0

    def guess(self, position):
        if self.drafting == "point":
            return 2
        if self.mode == "coupled":
            return self.sampler.choose(log(Q), range(position))
        return draw(self.q, self.sampler.settings.seed, position, DRAFT)

    def run(self, draws=DRAWS):
        row = log(P)
        while len(self.tokens) <= draws:
            n = len(self.tokens)
            guesses = [self.guess(n + i) for i in range(self.depth)]
            qs = [self.q] * self.depth if self.drafting == "sampled" and self.mode == "rejection" else None
            draft = chain(guesses, "draft", [(1.0, 0.0)] * self.depth, qs)
            if self.mode == "coupled":
                verdict = verify_coupled(draft, lambda _, path, n=n: self.sampler.choose(row, range(n), path))
            else:
                verdict = verify_rejection(draft, lambda _, path: self.p, self.sampler.settings.seed, n)
            self.tokens += [guesses[i] for i in verdict.path] + [verdict.next_token]
            self.accepted += len(verdict.path)
            self.verified += min(len(verdict.path) + 1, self.depth)
        return Counter(self.tokens[1:])


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("mode", MODES)
def test_tokens_are_distributed_as_the_target_at_every_depth(mode, depth):
    run = Decoding(SamplingSettings(**OPEN, seed=depth), mode, depth)
    assert fits(run.run(), dict(enumerate(P))) > 0.01
    pairs = Counter(itertools.pairwise(run.tokens[1:]))
    expected = {(a, b): P[a] * P[b] for a in range(3) for b in range(3)}
    assert fits(pairs, expected) > 0.001, "neighbours are independent, as the target's are"


@pytest.mark.parametrize(
    ("change", "draws"),
    [
        ({"temperature": 0.6}, 5_000),
        ({"top_k": 2}, 5_000),
        ({"top_p": 0.75}, 5_000),
        ({"min_p": 0.5}, 5_000),
        ({"temperature": 1.7, "top_k": 3, "top_p": 0.97, "min_p": 0.05}, DRAWS),
        ({"temperature": 0.0}, 200),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", MODES)
def test_tokens_are_distributed_as_the_target_after_transforms(mode, change, draws):
    settings = SamplingSettings(**{**OPEN, **change}, seed=5)
    assert fits(Decoding(settings, mode, 2).run(draws), naive(log(P), settings)) > 0.01


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("mode", MODES)
def test_a_point_mass_is_accepted_as_often_as_the_target_says_it(mode, depth):
    run = Decoding(SamplingSettings(**OPEN, seed=9), mode, depth, "point")
    assert fits(run.run(10_000), dict(enumerate(P))) > 0.01
    assert run.accepted / run.verified == pytest.approx(P[2], abs=0.02)


def test_rejection_accepts_the_overlap_of_both_distributions():
    run = Decoding(SamplingSettings(**OPEN, seed=4), "rejection", 4)
    run.run(10_000)
    assert run.accepted / run.verified == pytest.approx(0.70, abs=0.02)


def test_coupling_accepts_at_least_its_bound():
    run = Decoding(SamplingSettings(**OPEN, seed=4), "coupled", 4)
    run.run(10_000)
    assert run.accepted / run.verified > (1 - 0.3) / (1 + 0.3) - 0.02


MARKOV_P = ((0.6, 0.3, 0.1), (0.1, 0.1, 0.8), (0.3, 0.4, 0.3))
MARKOV_Q = ((0.2, 0.2, 0.6), (0.5, 0.3, 0.2), (0.1, 0.8, 0.1))


@pytest.mark.parametrize("mode", MODES)
def test_transitions_are_the_targets_when_rows_depend_on_the_context(mode):
    sampler = Sampler(SamplingSettings(**OPEN, seed=3))
    rows_p, rows_q = [log(r) for r in MARKOV_P], [log(r) for r in MARKOV_Q]
    ps, qs = [dist(*r) for r in MARKOV_P], [dist(*r) for r in MARKOV_Q]
    tokens = [0]
    while len(tokens) < DRAWS // 2:
        n, last = len(tokens), tokens[-1]
        guesses = list[int]()
        for i in range(4):
            before = guesses[-1] if guesses else last
            guesses.append(
                sampler.choose(rows_q[before], range(n + i))
                if mode == "coupled"
                else draw(qs[before], 3, n + i, DRAFT)
            )
        used = None if mode == "coupled" else [qs[before] for before in (last, *guesses[:-1])]
        draft = chain(guesses, "draft", [(1.0, 0.0)] * 4, used)
        if mode == "coupled":
            verdict = verify_coupled(
                draft,
                lambda _, path, n=n, last=last: sampler.choose(
                    rows_p[path[-1] if path else last], range(n), path
                ),
            )
        else:
            verdict = verify_rejection(draft, lambda _, path, last=last: ps[path[-1] if path else last], 3, n)
        tokens += [guesses[i] for i in verdict.path] + [verdict.next_token]
    pairs = Counter(itertools.pairwise(tokens))
    for a in range(3):
        assert fits(Counter({b: pairs[a, b] for b in range(3)}), dict(enumerate(MARKOV_P[a]))) > 0.01


def test_a_tree_under_coupling_gives_the_tokens_of_no_draft_at_all():
    """Two levels of two children each; the second level hangs on the root's first child."""
    sampler = Sampler(SamplingSettings(**OPEN, seed=2))
    row, tokens = log(P), [0]
    for guesses in np.searchsorted(np.cumsum(Q), np.random.default_rng(12).random((2000, 4))):
        draft = Draft(tuple(map(int, guesses)), (-1, -1, 0, 0), ((1.0, 0.0),) * 4, ("draft",) * 4)
        n = len(tokens)
        verdict = verify_coupled(draft, lambda _, path, n=n: sampler.choose(row, range(n), path))
        tokens += [draft.tokens[k] for k in verdict.path] + [verdict.next_token]
    assert tokens[1:] == [sampler.choose(row, range(n)) for n in range(1, len(tokens))]
    assert fits(Counter(tokens[1:]), dict(enumerate(P))) > 0.01
