import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_sampling import distribution as naive

from edgespec.errors import BackendError
from edgespec.sampling import Sampler, confidence, draw
from edgespec.sampling.transform import greedy, top_k
from edgespec.types import Distribution, SamplingSettings

OPEN = SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


def naive_top_k(row, k):
    order = sorted(range(len(row)), key=lambda i: (-row[i], i))
    return order[:k] if k > 0 else order


@given(
    row=st.lists(st.integers(-3, 3), min_size=1, max_size=60),
    k=st.integers(0, 70),
)
def test_top_k_of_a_small_row_is_a_sort(row, k):
    assert top_k(np.array(row, np.float32), k).tolist() == naive_top_k(row, k)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(4000, 9000),
    levels=st.integers(1, 3000),
    k=st.integers(1, 1500),
)
def test_top_k_of_a_large_row_with_ties_is_a_sort(seed, size, levels, k):
    row = np.random.default_rng(seed).integers(0, levels, size).astype(np.float32)
    assert top_k(row, k).tolist() == naive_top_k(row.tolist(), k)


def test_greedy_takes_the_lowest_id_among_equals():
    assert greedy(np.array([1, 5, 5, 2], np.float32)) == 1


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("limits", [{"top_k": 40}, {"top_k": 0}, {"top_k": 0, "top_p": 1.0}])
def test_nan_is_an_error_not_a_token(temperature, limits):
    row = np.linspace(0, 1, 100, dtype=np.float32)
    row[63] = math.nan
    with pytest.raises(BackendError, match="NaN"):
        Sampler(SamplingSettings(temperature=temperature, **limits)).choose(row, [1])


@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("limits", [{}, {"top_k": 0}, {"top_k": 0, "top_p": 1.0, "min_p": 0.0}])
def test_a_bias_of_minus_infinity_bans_a_token(temperature, limits):
    row = np.array([9.0, 8.0, 8.0, 1.0], np.float32)
    banned = SamplingSettings(temperature=temperature, logit_bias={0: -math.inf}, **limits)
    sampler = Sampler(banned)
    p = sampler.distribution(row, [1])
    assert 0 not in p.ids[p.probs > 0]
    assert all(sampler.choose(row, [0] * n) != 0 for n in range(1, 300))
    assert row[0] == 9.0, "the caller's logits are left alone"


def test_only_banned_tokens_are_missing():
    row = np.zeros(3, np.float32)
    sampler = Sampler(SamplingSettings(temperature=1.0, top_k=0, min_p=0.0, logit_bias={1: -math.inf}))
    assert {sampler.choose(row, [0] * n) for n in range(1, 100)} == {0, 2}


def test_bias_and_penalties_outside_the_row_are_ignored():
    """A draft model may know fewer ids than the target has already said."""
    row = np.zeros(4, np.float32)
    s = SamplingSettings(
        temperature=0.0, repeat_penalty=1.3, presence_penalty=1.0, logit_bias={9: 5.0, 2: 1.0}
    )
    assert Sampler(s).choose(row, [0, 7, 100]) == 2


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([2, 7, 300, 2200]),
    spread=st.sampled_from([0.1, 2.0, 8.0]),
    s=st.builds(
        SamplingSettings,
        temperature=st.sampled_from([0.0, 0.3, 0.8, 1.0, 2.5]),
        top_k=st.sampled_from([0, 1, 5, 40, 2000]),
        top_p=st.sampled_from([0.1, 0.5, 0.95, 1.0]),
        min_p=st.sampled_from([0.0, 0.05, 0.5]),
        repeat_penalty=st.sampled_from([1.0, 2.0, 0.5]),
        frequency_penalty=st.sampled_from([0.0, 0.5]),
        presence_penalty=st.sampled_from([0.0, -0.75]),
        penalty_last_n=st.sampled_from([-1, 0, 3, 64]),
        logit_bias=st.dictionaries(st.integers(0, 1), st.sampled_from([-4.0, 2.0, -math.inf]), max_size=1),
    ),
    history=st.lists(st.integers(0, 1), min_size=1, max_size=8),
    path=st.lists(st.integers(0, 1), max_size=5),
)
def test_a_distribution_equals_the_plain_computation(seed, size, spread, s, history, path):
    grid = np.round(np.random.default_rng(seed).standard_normal(size) * spread * 64) / 64
    row = grid.astype(np.float32)  # so that float32 computes penalties without rounding
    p = Sampler(s).distribution(row, history, path)
    expected = naive(row, s, [*history, *path])
    got = {int(i): float(x) for i, x in zip(p.ids, p.probs, strict=True) if x > 0}
    assert got.keys() == expected.keys()
    assert got == pytest.approx(expected, rel=1e-4)
    assert p.ids.tolist() == sorted(set(p.ids.tolist()))
    assert p.probs.sum() == pytest.approx(1.0)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32), top_k_=st.sampled_from([0, 1, 40]), top_p=st.sampled_from([0.5, 0.95, 1.0])
)
def test_a_chosen_token_has_survived_every_transform(seed, top_k_, top_p):
    row = np.random.default_rng(seed).standard_normal(500).astype(np.float32)
    sampler = Sampler(SamplingSettings(temperature=1.3, top_k=top_k_, top_p=top_p, seed=seed))
    assert sampler.choose(row, [1, 2, 3]) in sampler.distribution(row, [1, 2, 3]).ids


def test_a_drafted_path_weighs_like_history():
    row = np.array([2.0, 1.9, 1.8, 0.0], np.float32)
    sampler = Sampler(SamplingSettings(temperature=0.0, presence_penalty=1.0))
    assert sampler.choose(row, [3], []) == 0
    assert sampler.choose(row, [3], [0]) == 1
    assert sampler.choose(row, [3, 0, 1]) == sampler.choose(row, [3], [0, 1]) == 2


def test_the_penalty_window_slides_over_history_and_path():
    row = np.array([1.0, 0.9], np.float32)
    sampler = Sampler(SamplingSettings(temperature=0.0, presence_penalty=1.0, penalty_last_n=2))
    assert sampler.choose(row, [0], []) == 1
    assert sampler.choose(row, [0], [1, 1]) == 0


def test_confidence_is_the_best_probability():
    row = np.log(np.array([0.2, 0.7, 0.1], np.float32))
    assert confidence(row) == pytest.approx(0.7, rel=1e-5)


def test_confidence_of_a_row_without_candidates_is_none():
    assert confidence(np.full(3, -math.inf, np.float32)) == 0.0


def test_drawing_never_gives_a_token_without_probability():
    p = Distribution(np.array([2, 5, 9]), np.array([0.5, 0.0, 0.5]))
    assert {draw(p, 1, position, 0) for position in range(500)} == {2, 9}
