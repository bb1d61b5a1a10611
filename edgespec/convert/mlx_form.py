"""A GGUF file as mlx-lm sees a model: its configuration, and its weights by mlx-lm's names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from edgespec.convert.affine import DENSE, EXACT, GROUP, Affine, exact, nearest
from edgespec.convert.weights import Tensor, Weights
from edgespec.errors import EdgespecError, ModelFileError, UnsupportedModelError
from edgespec.types import FloatArray

FAMILIES: Final = ("llama", "qwen2", "qwen3", "smollm3")
"""Architectures whose tensors map one to one."""

_NAMES: Final = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_PAIRED: Final = ("llama", "smollm3")
"""Rows of q and k lie in pairs that are rotated together."""
_ROPE_FACTORS: Final = "rope_freqs.weight"
_SLICE_VALUES: Final = 1 << 21
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One weight: `path` is that of its module. `error`: root mean square of what requantising changed,
    relative to that of the weight; None where nothing was."""

    path: str
    source: Tensor
    arrays: dict[str, np.ndarray[Any, Any]]
    error: float | None = None


def obstacle(weights: Weights) -> str | None:
    """Why mlx-lm cannot run this file as it is, in one line; None where it can, without loss."""
    try:
        config(weights)
    except EdgespecError as error:
        return str(error)
    inexact = [name for name in weights if weights[name].kind not in (*EXACT, *DENSE)]
    if not inexact:
        return None
    kinds = ", ".join(sorted({weights[name].kind for name in inexact}))
    count = f"{inexact[0]}" + (f" and {len(inexact) - 1} more" if len(inexact) > 1 else "")
    return (
        f"{weights.path.name}: MLX has no exact form for {kinds} ({count}): "
        f"edgespec convert {weights.path.name} --to mlx rounds what has none"
    )


def _unknown(weights: Weights) -> str | None:
    if weights.architecture not in FAMILIES:
        return (
            f"{weights.path.name}: the architecture '{weights.architecture}' has no known form for MLX "
            f"(known: {', '.join(FAMILIES)})"
        )
    strange = [name for name in weights if name != _ROPE_FACTORS and _path(name) is None]
    return f"{weights.path.name}: the tensor {strange[0]} has no known form for MLX" if strange else None


def config(weights: Weights) -> dict[str, Any]:
    """The `config.json` of mlx-lm. Raises UnsupportedModelError or ModelFileError."""
    if reason := _unknown(weights):
        raise UnsupportedModelError(reason)
    _check_plain(weights)
    width, heads = int(weights.number("embedding_length")), int(weights.number("attention.head_count"))
    bias = "blk.0.attn_q.bias" in weights
    made: dict[str, Any] = {
        "model_type": weights.architecture,
        "hidden_size": width,
        "num_hidden_layers": int(weights.number("block_count")),
        "intermediate_size": int(weights.number("feed_forward_length")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(weights.number("attention.head_count_kv", heads)),
        "head_dim": int(weights.number("attention.key_length", width // heads)),
        "rms_norm_eps": weights.number("attention.layer_norm_rms_epsilon"),
        "vocab_size": weights["token_embd.weight"].shape[0],
        "max_position_embeddings": int(weights.number("context_length")),
        # At the top: most of mlx-lm's classes look nowhere else, and have defaults.
        "rope_theta": weights.number("rope.freq_base", 10000.0),
        "rope_traditional": weights.architecture in _PAIRED,
        "tie_word_embeddings": "output.weight" not in weights,
        "attention_bias": bias,
        "mlp_bias": "blk.0.ffn_gate.bias" in weights,
    }
    if scaling := _rope_scaling(weights, made["rope_theta"], made["head_dim"]):
        made["rope_scaling"] = scaling
    for side in ("bos", "eos"):
        token = weights.facts.get(f"tokenizer.ggml.{side}_token_id")
        if token is not None:
            made[f"{side}_token_id"] = token
    return made


def _check_plain(weights: Weights) -> None:
    """What would change the computation without a trace in the tensors."""
    odd = [key for key in ("expert_count", "attention.sliding_window") if weights.number(key, 0)]
    width, heads = weights.number("embedding_length"), weights.number("attention.head_count")
    head_size = weights.number("attention.key_length", width // heads)
    if weights.number("rope.dimension_count", head_size) != head_size:
        odd.append("rope.dimension_count")
    if odd:
        raise UnsupportedModelError(
            f"{weights.path.name}: its {weights.architecture}.{odd[0]} has no known form for MLX"
        )


def bits_of(tensor: Tensor) -> int | None:
    """Bits of a weight in MLX, None for one that stays dense; types without an exact form get more."""
    if tensor.kind in DENSE:
        return None
    if tensor.kind in EXACT:
        return EXACT[tensor.kind]
    stored = tensor.blocks.shape[-1] * 8 / tensor.shape[-1]
    return next(bits for bits in (4, 5, 6, 8) if bits >= stored or bits == 8)


def layout(weights: Weights) -> dict[str, int]:
    """The bits of every module that is quantised, by its path."""
    made = {_path(name): bits_of(weights[name]) for name in weights if name.endswith(".weight")}
    return {path: bits for path, bits in made.items() if path and bits}


def quantization(bits: dict[str, int]) -> dict[str, Any]:
    """A layout as `config.json` has it; the most frequent number of bits is the default."""
    counted = list(bits.values())
    usual = max(set(counted), key=counted.count)
    special = {path: {"group_size": GROUP, "bits": n} for path, n in bits.items() if n != usual}
    return {"group_size": GROUP, "bits": usual, **special}


def parameters(weights: Weights) -> Iterator[Parameter]:
    """All weights in the order of the file, one in memory at a time. Raises UnsupportedModelError."""
    for name in weights:
        path = _path(name)
        if path is None:
            continue
        tensor = weights[name]
        if bits := bits_of(tensor):
            yield _quantised(path, tensor, bits)
        else:
            yield Parameter(path, tensor, {name.rpartition(".")[2]: _dense(tensor)})


def narrow(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Float32 as float16 where that loses nothing."""
    if array.dtype != np.float32:
        return array
    with np.errstate(over="ignore"):
        halves = array.astype(np.float16)
    return halves if np.array_equal(halves, array) else array


def _path(name: str) -> str | None:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj`."""
    parts = name.split(".")
    known = _NAMES.get(parts[-2]) if len(parts) > 1 else None
    if known is None or parts[-1] not in ("weight", "bias"):
        return None
    return f"model.layers.{parts[1]}.{known}" if parts[0] == "blk" else known


def _dense(tensor: Tensor) -> np.ndarray[Any, Any]:
    return tensor.blocks.view("<f2") if tensor.kind == "F16" else tensor.float32()


def _quantised(path: str, tensor: Tensor, bits: int) -> Parameter:
    """Some rows at a time, since the steps between take several times their memory."""
    outputs, inputs = tensor.shape
    if inputs % GROUP:
        raise UnsupportedModelError(f"{tensor.name} has rows of {inputs} values, MLX needs groups of {GROUP}")
    step = max(1, _SLICE_VALUES // inputs)
    slices = [slice(start, start + step) for start in range(0, outputs, step)]
    if tensor.kind in EXACT:
        return Parameter(path, tensor, _joined([exact(tensor.kind, tensor.blocks[rows]) for rows in slices]))
    parts: list[Affine] = []
    changed = total = 0.0
    for rows in slices:
        values = tensor.float32(rows)
        parts.append(nearest(values, bits))
        difference = (parts[-1].float32() - values).ravel()
        changed += float(difference @ difference)
        total += float(values.ravel() @ values.ravel())
    return Parameter(path, tensor, _joined(parts), (changed / total) ** 0.5 if total else 0.0)


def _joined(parts: list[Affine]) -> dict[str, np.ndarray[Any, Any]]:
    return {
        "weight": np.concatenate([part.words for part in parts]),
        "scales": np.concatenate([part.scales for part in parts]),
        "biases": np.concatenate([part.biases for part in parts]),
    }


def _rope_scaling(weights: Weights, base: float, head_dim: int) -> dict[str, Any] | None:
    kind = weights.facts.get(f"{weights.architecture}.rope.scaling.type", "none")
    if _ROPE_FACTORS in weights:
        return _llama3(weights[_ROPE_FACTORS].float32(), base, head_dim, weights.path.name)
    if kind == "none":
        return None
    factor = weights.number("rope.scaling.factor")
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor}
    if kind == "yarn":
        original = int(weights.number("rope.scaling.original_context_length"))
        return {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original}
    raise UnsupportedModelError(f"{weights.path.name}: rope scaling '{kind}' has no known form for MLX")


def _llama3(factors: FloatArray, base: float, head_dim: int, shown: str) -> dict[str, Any]:
    """Which rule gave these divisors of the frequencies. Raises ModelFileError where it is not Llama 3's."""
    factor = float(factors.max())
    periods = 2 * np.pi * base ** (np.arange(0, head_dim, 2) / head_dim)
    ratio = _LLAMA3["original_max_position_embeddings"] / periods
    low, high = _LLAMA3["low_freq_factor"], _LLAMA3["high_freq_factor"]
    smooth = np.clip((ratio - low) / (high - low), 0, 1)
    expected = 1 / ((1 - smooth) / factor + smooth)
    if len(factors) != len(expected) or not np.allclose(expected, factors, rtol=1e-3):
        raise ModelFileError(f"{shown}: its {_ROPE_FACTORS} follows no rule that MLX knows")
    return {"rope_type": "llama3", "factor": factor, **_LLAMA3}
