import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.types import NO_DRAFT, Distribution, Draft, chain
from edgespec.verify import verify_coupled, verify_rejection
from edgespec.verify.rejection import prob, residual

N = 4


@st.composite
def drafts(draw_):
    n = draw_(st.integers(0, 10))
    tokens = draw_(st.lists(st.integers(0, N - 1), min_size=n, max_size=n))
    parents = [draw_(st.integers(-1, i - 1)) for i in range(n)]
    return Draft(tuple(tokens), tuple(parents), ((1.0, 0.0),) * n, ("draft",) * n)


@st.composite
def distributions(draw_):
    ids = sorted(draw_(st.sets(st.integers(0, N - 1), min_size=1)))
    weights = np.array(draw_(st.lists(st.floats(0.01, 1), min_size=len(ids), max_size=len(ids))))
    return Distribution(np.array(ids), weights / weights.sum())


def is_path(draft, path):
    return all(draft.parents[i] == before for before, i in zip((-1, *path), path, strict=False))


@given(drafts(), st.lists(st.integers(0, N - 1), min_size=12, max_size=12))
def test_coupling_follows_what_the_target_says_and_no_further(draft, says):
    verdict = verify_coupled(draft, lambda row, path: says[len(path)])
    out = [draft.tokens[i] for i in verdict.path] + [verdict.next_token]
    assert is_path(draft, verdict.path)
    assert out == says[: len(out)]
    end = verdict.path[-1] if verdict.path else -1
    children = [draft.tokens[i] for i in range(len(draft)) if draft.parents[i] == end]
    assert verdict.next_token not in children


@given(drafts(), st.lists(st.integers(0, N - 1), min_size=12, max_size=12))
def test_coupling_asks_for_the_row_and_path_of_the_node_it_is_at(draft, says):
    asked = []

    def choose(row, path):
        asked.append((row, list(path)))
        return says[len(path)]

    verdict = verify_coupled(draft, choose)
    rows = [0, *(i + 1 for i in verdict.path)]
    assert [row for row, _ in asked] == rows
    assert [path for _, path in asked] == [
        [draft.tokens[i] for i in verdict.path[:k]] for k in range(len(rows))
    ]


@given(drafts(), distributions(), st.integers(0, 2**63), st.booleans())
def test_rejection_emits_only_what_the_target_could_say(draft, p, seed, sampled):
    if sampled:
        q = Distribution(np.arange(N), np.full(N, 1 / N))
        draft = Draft(draft.tokens, draft.parents, draft.evidence, draft.sources, (q,) * len(draft))
    verdict = verify_rejection(draft, lambda row, path: p, seed, 5)
    assert is_path(draft, verdict.path)
    for token in [draft.tokens[i] for i in verdict.path] + [verdict.next_token]:
        assert prob(p, token) > 0


@given(distributions(), st.integers(0, 2**63))
def test_rejection_accepts_everything_that_was_drawn_from_the_target_itself(p, seed):
    tokens = [int(p.ids[i % len(p.ids)]) for i in range(5)]
    draft = chain(tokens, "draft", [(1.0, 0.0)] * 5, [p] * 5)
    assert verify_rejection(draft, lambda row, path: p, seed, 0).path == (0, 1, 2, 3, 4)


@given(distributions(), distributions(), st.integers(0, N - 1))
def test_a_residual_is_a_distribution_over_the_targets_tokens(p, q, token):
    for guess in (q, None):
        rest = residual(p, token, guess)
        assert rest.ids.tolist() == p.ids.tolist()
        assert rest.probs.sum() == pytest.approx(1.0)
        assert (rest.probs >= 0).all()


def test_a_residual_of_nothing_is_the_target_itself():
    p = Distribution(np.array([1, 3]), np.array([0.25, 0.75]))
    assert residual(p, 1, p) is p


def test_without_a_draft_both_modes_emit_one_token():
    p = Distribution(np.array([3]), np.ones(1))
    assert verify_coupled(NO_DRAFT, lambda row, path: 3).next_token == 3
    verdict = verify_rejection(NO_DRAFT, lambda row, path: p, 1, 1)
    assert (verdict.path, verdict.next_token) == ((), 3)
