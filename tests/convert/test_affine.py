"""Blocks of GGUF files in the form of MLX, against how the gguf package and MLX itself dequantise them."""

import mlx.core as mx
import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from edgespec.convert.affine import EXACT, Affine, exact, nearest

ROWS, INPUTS = 6, 512


def random_blocks(kind):
    """Blocks of random bits, their float16 fields made finite."""
    values, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    rng = np.random.default_rng(3)
    blocks = rng.integers(0, 256, (ROWS, INPUTS // values, size), np.uint8)
    halves = {"Q4_1": 2, "Q5_1": 2, "Q4_K": 2, "Q5_K": 2}.get(kind, 1)
    blocks[..., : 2 * halves] = rng.normal(0, 0.1, (*blocks.shape[:2], halves)).astype("<f2").view(np.uint8)
    return blocks.reshape(ROWS, -1)


def in_mlx(affine: Affine):
    arrays = map(mx.array, (affine.words, affine.scales, affine.biases))
    return np.array(mx.dequantize(*arrays, group_size=32, bits=affine.bits))


@pytest.mark.parametrize("kind", sorted(EXACT))
def test_blocks_become_the_same_numbers(kind):
    blocks = random_blocks(kind)
    expected = dequantize(blocks, GGMLQuantizationType[kind])
    affine = exact(kind, blocks)
    assert affine.words.dtype == np.uint32
    rounding = 0 if kind in ("Q4_0", "Q5_0", "Q8_0") else 1e-6 * np.abs(expected).max()
    np.testing.assert_allclose(affine.float32(), expected, rtol=0, atol=rounding)
    np.testing.assert_allclose(in_mlx(affine), expected, rtol=0, atol=rounding)


@pytest.mark.parametrize("bits", [4, 5, 6, 8])
def test_nearest_is_within_half_a_step(bits):
    weight = np.random.default_rng(5).normal(0, 0.02, (ROWS, INPUTS)).astype(np.float32)
    weight[0] = 0.25
    affine = nearest(weight, bits)
    half_step = affine.scales.repeat(32, axis=1) / 2
    assert np.all(np.abs(affine.float32() - weight) <= half_step + 1e-7)
    np.testing.assert_allclose(in_mlx(affine), affine.float32(), rtol=0, atol=1e-7)
    assert np.all(affine.float32()[0] == np.float32(0.25))
