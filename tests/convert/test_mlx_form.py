"""GGUF files as models of mlx-lm: the same numbers as llama.cpp, as a file and as a folder."""

import json

import mlx.core as mx
import mlx_lm
import numpy as np
import pytest
from mlx_lm.models.rope_utils import Llama3RoPE

from edgespec.backends import llamacpp, mlx
from edgespec.backends.base import LoadOptions
from edgespec.convert.mlx import write
from edgespec.convert.mlx_form import config, layout, obstacle
from edgespec.convert.weights import Weights
from edgespec.errors import EdgespecError, UnsupportedModelError
from tests.backends.tiny import write_gguf
from tests.convert.families import FAMILIES, HEAD, family, metadata, tensors

TOKENS = [5, 90, 17, 300, 44, 260, 101, 7, 33, 250, 61, 12, 9, 9, 31]


def rows(loaded):
    try:
        return loaded.backend.forward(TOKENS).copy()
    finally:
        loaded.backend.close()


def nothing(_):
    pass


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("arch", FAMILIES)
def test_a_family_computes_what_llamacpp_computes(arch, tied, tmp_path):
    path = family(tmp_path / "tiny.gguf", arch, tied=tied)
    options = LoadOptions(n_ctx=64)
    precise = LoadOptions(n_ctx=64, n_threads=1, type_k="f32", type_v="f32", flash_attn=False)
    expected = rows(llamacpp.load(path, precise))
    found = rows(mlx.load(path, options))
    assert expected.std() > 0.3
    np.testing.assert_allclose(found, expected, atol=1e-3)
    folder = tmp_path / "folder"
    folder.mkdir()
    write(path, folder, nothing, nothing)
    assert np.array_equal(rows(mlx.load(folder, options)), found)


def test_positions_are_rotated_by_the_files_own_base(tmp_path):
    """mlx-lm's classes have a default that would be taken in silence."""
    bases = {}
    for base in (5000.0, 10000.0):
        path = family(tmp_path / f"{base}.gguf", "llama", llama__rope__freq_base=base)
        bases[base] = rows(mlx.load(path, LoadOptions(n_ctx=64)))
    assert np.abs(bases[5000.0] - bases[10000.0]).max() > 0.01


def test_newer_folders_nest_the_base(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    write(family(tmp_path / "tiny.gguf", "llama"), folder, nothing, nothing)
    expected = rows(mlx.load(folder, LoadOptions(n_ctx=64)))
    described = json.loads((folder / "config.json").read_text())
    nested = {"rope_type": "default", "rope_theta": described.pop("rope_theta")}
    (folder / "config.json").write_text(json.dumps(described | {"rope_parameters": nested}))
    assert np.array_equal(rows(mlx.load(folder, LoadOptions(n_ctx=64))), expected)


def test_llama_3_scaling_is_recognised(tmp_path):
    given = {
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    scaled = np.array(Llama3RoPE(HEAD, base=5000.0, scaling_config=given)._freqs)
    factors = scaled / 5000.0 ** (np.arange(0, HEAD, 2) / HEAD)
    path = write_gguf(
        tmp_path / "a.gguf", metadata("llama"), {**tensors("llama"), "rope_freqs.weight": factors}
    )
    found = config(Weights(path))["rope_scaling"]
    assert found == {"rope_type": "llama3", **given, "factor": pytest.approx(32)}
    strange = np.linspace(1, 3, HEAD // 2)
    path = write_gguf(
        tmp_path / "b.gguf", metadata("llama"), {**tensors("llama"), "rope_freqs.weight": strange}
    )
    with pytest.raises(EdgespecError, match="rope_freqs"):
        config(Weights(path))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"llama__expert_count": 8}, "expert_count"),
        ({"llama__attention__sliding_window": 128}, "sliding_window"),
        ({"llama__rope__dimension_count": 8}, "dimension_count"),
        ({"llama__rope__scaling__type": "longrope", "llama__rope__scaling__factor": 2.0}, "longrope"),
        ({"llama__embedding_length": None}, "embedding_length"),
    ],
)
def test_what_would_be_computed_wrongly_is_refused(changes, reason, tmp_path):
    path = family(tmp_path / "tiny.gguf", "llama", **changes)
    refusal = mlx.refuses(path)
    assert reason in refusal
    assert "\n" not in refusal
    with pytest.raises(UnsupportedModelError, match=reason):
        mlx.load(path, LoadOptions())
    with pytest.raises(EdgespecError, match=reason):
        write(path, tmp_path, nothing, nothing)


def test_tensors_that_are_not_known_are_refused(tmp_path):
    extra = {**tensors("llama"), "blk.0.attn_sinks.weight": np.ones(4)}
    path = write_gguf(tmp_path / "tiny.gguf", metadata("llama"), extra)
    assert "blk.0.attn_sinks.weight" in obstacle(Weights(path))


@pytest.mark.model
def test_a_converted_folder_is_one_for_mlx_lm_too(smollm2_path, tmp_path):
    notes, shares = [], []
    write(smollm2_path, tmp_path, notes.append, shares.append)
    assert not notes, "every block of this file has an exact form"
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert set(layout(Weights(smollm2_path)).values()) == {4, 8}
    model, tokenizer = mlx_lm.load(str(tmp_path))
    model.set_dtype(mx.float32)  # float16 is very slow on a CPU
    prompt = "The capital of France is"
    tokens = tokenizer.encode(prompt, add_special_tokens=False)
    loaded = mlx.load(tmp_path, LoadOptions(n_ctx=64))
    assert tokens == loaded.vocabulary.tokenize(prompt, special=False)
    assert tokenizer.decode([int(model(mx.array([tokens]))[0, -1].argmax())]) == " Paris"
    assert tokenizer.eos_token_ids == {loaded.vocabulary.eos}
    shown = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert "<|im_start|>user\nhi<|im_end|>" in shown
    assert loaded.info.chat_template == (tmp_path / "chat_template.jinja").read_text()
    loaded.backend.close()
