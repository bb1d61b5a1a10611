import numpy as np
import pytest
from scipy import stats

from edgespec.sampling.noise import ACCEPT, CHOICE, DRAFT, RESIDUAL, _key, gumbel, uniform

IDS = np.arange(50_000, dtype=np.int64)
_MASK = (1 << 64) - 1


def test_the_same_key_gives_the_same_numbers_in_any_company():
    whole = uniform(7, 100, CHOICE, IDS)
    assert np.array_equal(whole, uniform(7, 100, CHOICE, IDS))
    some = np.array([49_999, 3, 17])
    assert np.array_equal(uniform(7, 100, CHOICE, some), whole[some])


@pytest.mark.parametrize(("seed", "position"), [(0, 0), (1, 0), (0, 1), (2**63, 4096), (-1, 10)])
def test_numbers_are_uniform(seed, position):
    assert stats.kstest(uniform(seed, position, CHOICE, IDS), "uniform").pvalue > 0.01


def test_numbers_along_the_positions_are_uniform():
    along = np.array([uniform(5, position, CHOICE, np.array([42]))[0] for position in range(5_000)])
    assert stats.kstest(along, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(along[:-1], along[1:])[0, 1]) < 0.05


@pytest.mark.parametrize(
    "other", [(8, 100, CHOICE), (7, 101, CHOICE), (7, 100, DRAFT), (7, 100, ACCEPT), (7, 100, RESIDUAL)]
)
def test_another_seed_position_or_stream_is_independent(other):
    a, b = uniform(7, 100, CHOICE, IDS), uniform(*other, IDS)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.02
    table = np.histogram2d(a, b, bins=8, range=[[0, 1], [0, 1]])[0]
    assert stats.chi2_contingency(table).pvalue > 0.01


def test_seed_and_position_do_not_trade_places():
    assert not np.array_equal(uniform(3, 4, CHOICE, IDS), uniform(4, 3, CHOICE, IDS))


def test_gumbel_numbers_are_gumbel():
    assert stats.kstest(gumbel(11, 5, CHOICE, IDS), "gumbel_r").pvalue > 0.01


@pytest.mark.parametrize("extreme", [0, _MASK])
def test_the_most_extreme_hash_stays_inside_the_open_interval(extreme):
    token = _id_that_hashes_to(extreme, seed=1, position=2)
    u = uniform(1, 2, CHOICE, token)[0]
    assert 0.0 < u < 1.0
    assert np.isfinite(gumbel(1, 2, CHOICE, token)[0])


def _id_that_hashes_to(value: int, seed: int, position: int) -> np.ndarray:
    """Undoes the finaliser, whose steps are all invertible."""
    x = _unshift(value, 31)
    x = _unshift(x * pow(0x94D049BB133111EB, -1, 1 << 64) & _MASK, 27)
    x = _unshift(x * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & _MASK, 30)
    token = (x - _key(seed, position, CHOICE)) * pow(0x9E3779B97F4A7C15, -1, 1 << 64) & _MASK
    return np.array([token], np.uint64).view(np.int64)


def _unshift(x: int, n: int) -> int:
    """The y with y ^ (y >> n) == x."""
    y = x
    for _ in range(64 // n + 1):
        y = x ^ (y >> n)
    return y
