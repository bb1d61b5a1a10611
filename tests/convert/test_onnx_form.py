"""GGUF files as ONNX folders: the same numbers as llama.cpp, for every family and every type of block."""

import json

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import quantize

from edgespec.backends import llamacpp, onnx
from edgespec.backends.base import LoadOptions
from edgespec.backends.rows import exact_rows
from edgespec.convert.blocks import blocks
from edgespec.convert.onnx import write
from edgespec.convert.weights import Tensor
from edgespec.errors import UnsupportedModelError
from tests.backends.tiny import tiny_mamba, write_gguf
from tests.convert.families import FAMILIES, HEAD, family, metadata, tensors

TOKENS = [5, 90, 17, 300, 44, 260, 101, 7, 33, 250, 61, 12, 9, 9, 31]


def rows(loaded):
    try:
        return loaded.backend.forward(TOKENS).copy()
    finally:
        loaded.backend.close()


def rounded(weights):
    """Weights that 8 bits hold exactly, in the blocks that the converter makes."""
    size = 64 if weights.shape[-1] % 64 == 0 else 32
    apart = weights.reshape(len(weights), -1, size)
    scale = np.abs(apart).max(-1, keepdims=True) / 127
    return (np.rint(apart / scale) * scale).reshape(weights.shape)


def model(path, arch, extra=None, *, tied=False, **changes):
    made = {name: rounded(a) if a.ndim == 2 else a for name, a in tensors(arch, tied=tied).items()}
    facts = metadata(arch) | {f"{arch}.{key.replace('__', '.')}": value for key, value in changes.items()}
    return write_gguf(path, facts, made | (extra or {}))


def converted(path, folder):
    notes = []
    folder.mkdir()
    write(path, folder, notes.append, lambda share: None)
    return notes


def same_as_llamacpp(path, folder):
    precise = LoadOptions(n_ctx=64, n_threads=1, type_k="f32", type_v="f32", flash_attn=False)
    expected = rows(llamacpp.load(path, precise))
    found = rows(onnx.load(folder, LoadOptions(n_ctx=64, n_threads=1), float32=True))
    assert expected.std() > 0.3
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("arch", FAMILIES)
def test_a_family_computes_what_llamacpp_computes(arch, tied, tmp_path):
    path = model(tmp_path / "tiny.gguf", arch, tied=tied)
    converted(path, tmp_path / "folder")
    same_as_llamacpp(path, tmp_path / "folder")


def test_linear_scaling_of_positions(tmp_path):
    changes = {"rope__scaling__type": "linear", "rope__scaling__factor": 4.0}
    path = model(tmp_path / "tiny.gguf", "qwen2", **changes)
    converted(path, tmp_path / "folder")
    same_as_llamacpp(path, tmp_path / "folder")


def test_scaling_of_positions_as_in_llama_3(tmp_path):
    factors = np.linspace(1, 8, HEAD // 2)
    path = model(tmp_path / "tiny.gguf", "llama", {"rope_freqs.weight": factors})
    converted(path, tmp_path / "folder")
    same_as_llamacpp(path, tmp_path / "folder")


@pytest.mark.parametrize("arch", FAMILIES)
def test_every_row_count_is_exact(arch, tmp_path):
    path = family(tmp_path / "tiny.gguf", arch)
    notes = converted(path, tmp_path / "folder")
    assert len(notes) == 2  # the tokenizer, the rounding
    assert "rounded to 8 bits: relative error at most" in notes[-1]
    loaded = onnx.load(tmp_path / "folder", LoadOptions(n_ctx=128, n_threads=1))
    counts = (2, 3, 4, 5, 8, 16)
    assert exact_rows(loaded.backend, TOKENS * 3, counts) == {1, *counts}
    loaded.backend.close()


def _weights(found):
    """Float32 from the blocks of the graph."""
    if found.bits == 8:
        quants = found.quants.astype(np.float32) - 128
    else:
        quants = np.stack([found.quants & 15, found.quants >> 4], -1).reshape(*found.scales.shape, -1) - 8.0
    values = quants * found.scales[..., None]
    return (values if found.offsets is None else values + found.offsets[..., None]).reshape(len(values), -1)


def _tensor(kind, n_rows=24, n=512):
    generator = np.random.default_rng(5)
    if kind in ("Q4_K", "Q5_K", "Q6_K"):  # the library only reads these
        size = {"Q4_K": 144, "Q5_K": 176, "Q6_K": 210}[kind]
        data = generator.integers(0, 256, (n_rows, n // 256, size), dtype=np.uint8)
        at = slice(208, 210) if kind == "Q6_K" else slice(0, 4)
        halves = generator.uniform(-0.01, 0.01, (n_rows, n // 256, (at.stop - at.start) // 2))
        data[..., at] = halves.astype("<f2").view(np.uint8)
        return Tensor("x", kind, (n_rows, n), data.reshape(n_rows, -1))
    values = generator.standard_normal((n_rows, n)).astype(np.float32)
    data = {"F32": values, "F16": values.astype("<f2")}.get(kind)
    if data is None:
        data = quantize(values, GGMLQuantizationType[kind])
    return Tensor("x", kind, (n_rows, n), data.view(np.uint8).reshape(n_rows, -1))


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q8_0"])
def test_blocks_are_copied_without_loss(kind):
    tensor = _tensor(kind)
    found = blocks(tensor)
    assert found.error == 0
    np.testing.assert_allclose(_weights(found), tensor.float32(), atol=1e-6)


@pytest.mark.parametrize("kind", ["Q5_1", "Q5_K", "Q6_K", "F16", "BF16", "F32"])
def test_the_error_of_rounding_is_the_one_that_is_told(kind):
    tensor = _tensor(kind)
    found, exact = blocks(tensor), tensor.float32()
    difference = np.sqrt(np.mean((_weights(found) - exact) ** 2) / np.mean(exact**2))
    assert found.error == pytest.approx(difference, rel=1e-3)
    assert 0 < found.error < 0.02


def test_what_other_programs_read(tmp_path):
    converted(family(tmp_path / "tiny.gguf", "qwen3"), tmp_path / "folder")
    decoder = json.loads((tmp_path / "folder" / "genai_config.json").read_text())["model"]["decoder"]
    assert decoder["filename"] == "model.onnx"
    assert decoder["num_key_value_heads"] == 2
    assert decoder["head_size"] == HEAD


def test_architectures_that_are_unknown(tmp_path):
    folder = tmp_path / "folder"
    with pytest.raises(UnsupportedModelError, match="'mamba' cannot be converted yet"):
        converted(tiny_mamba(tmp_path / "mamba.gguf"), folder)
    path = family(tmp_path / "y.gguf", "llama", llama__rope__scaling__type="yarn")
    folder.rmdir()
    with pytest.raises(UnsupportedModelError, match="'yarn'"):
        converted(path, folder)
