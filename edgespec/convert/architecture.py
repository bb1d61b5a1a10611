"""What a file says of a decoder of the Llama kind: sizes, rotary positions, biases, norms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgespec.convert.weights import Weights
from edgespec.errors import UnsupportedModelError
from edgespec.types import FloatArray

KNOWN = ("llama", "smollm3", "qwen2", "qwen3")
_PAIRED = ("llama", "smollm3")
_ROTARY_SKIPPED = {"smollm3": 4}


@dataclass(frozen=True, slots=True)
class Architecture:
    """`paired`: rows of q and k lie in pairs to be rotated; otherwise in halves, as in Hugging Face models.

    `angles`: radians a position of each pair, `[head_size / 2]`. `tied`: the head is the embedding.
    """

    name: str
    n_layers: int
    n_embd: int
    n_ff: int
    n_heads: int
    n_kv_heads: int
    head_size: int
    n_vocab: int
    n_ctx: int
    epsilon: float
    rope_base: float
    angles: FloatArray
    paired: bool
    tied: bool
    qk_norm: bool

    def rotates(self, layer: int) -> bool:
        """Does this layer use rotary positions?"""
        step = _ROTARY_SKIPPED.get(self.name, 0)
        return not step or (layer + 1) % step != 0


def architecture(weights: Weights) -> Architecture:
    """Raises UnsupportedModelError for any other kind, ModelFileError where the file is incomplete."""
    name, file = weights.architecture, weights.path.name
    if name not in KNOWN:
        raise UnsupportedModelError(
            f"{file}: architecture '{name}' cannot be converted yet, only {', '.join(KNOWN)}: use llama.cpp"
        )
    odd = [key for key in ("expert_count", "attention.sliding_window") if weights.number(key, 0)]
    if odd:
        raise UnsupportedModelError(f"{file}: {name}.{odd[0]} cannot be converted yet: use llama.cpp")
    n_embd, n_heads = int(weights.number("embedding_length")), int(weights.number("attention.head_count"))
    head_size = int(weights.number("attention.key_length", n_embd // n_heads))
    base = weights.number("rope.freq_base", 10000.0)
    return Architecture(
        name=name,
        n_layers=int(weights.number("block_count")),
        n_embd=n_embd,
        n_ff=int(weights.number("feed_forward_length")),
        n_heads=n_heads,
        n_kv_heads=int(weights.number("attention.head_count_kv", n_heads)),
        head_size=head_size,
        n_vocab=weights["token_embd.weight"].shape[0],
        n_ctx=int(weights.number("context_length")),
        epsilon=weights.number("attention.layer_norm_rms_epsilon"),
        rope_base=base,
        angles=_angles(weights, base, head_size),
        paired=name in _PAIRED,
        tied="output.weight" not in weights,
        qk_norm="blk.0.attn_q_norm.weight" in weights,
    )


def _angles(weights: Weights, base: float, head_size: int) -> FloatArray:
    """Llama 3's scaling comes as a tensor of divisors; linear scaling as one number."""
    if int(weights.number("rope.dimension_count", head_size)) != head_size:
        raise UnsupportedModelError(f"{weights.path.name}: partly rotated heads cannot be converted yet")
    angles = base ** (-np.arange(0, head_size, 2, dtype=np.float64) / head_size)
    if "rope_freqs.weight" in weights:
        angles /= weights["rope_freqs.weight"].float32()
    scaling = weights.facts.get(f"{weights.architecture}.rope.scaling.type", "none")
    if scaling == "linear":
        angles /= weights.number("rope.scaling.factor")
    elif scaling != "none":
        raise UnsupportedModelError(
            f"{weights.path.name}: rope scaling '{scaling}' cannot be converted yet: use llama.cpp"
        )
    return angles.astype(np.float32)
