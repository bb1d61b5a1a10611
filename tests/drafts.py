"""A real little model with the vocabulary of another: a draft in all but sense."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from edgespec.hub.gguf import layout

WIDTH, FEED, HEADS, KV_HEADS = 64, 128, 2, 1
_FACTS = {
    "block_count": 1,
    "embedding_length": WIDTH,
    "feed_forward_length": FEED,
    "attention.head_count": HEADS,
    "attention.head_count_kv": KV_HEADS,
    "rope.dimension_count": WIDTH // HEADS,
}


def little_draft(target: Path, path: Path, *, weights: bool = True) -> Path:
    """One layer of random float16 weights under the target's metadata; without `weights` nothing loads it."""
    found = layout(target)
    with target.open("rb") as file:
        file.seek(found.metadata.start)
        pairs = bytearray(file.read(found.metadata.stop - found.metadata.start))
    for key, value in _FACTS.items():
        at = pairs.index(f"llama.{key}".encode() + struct.pack("<I", 4)) + len(f"llama.{key}") + 4
        pairs[at : at + 4] = struct.pack("<I", value)
    n_vocab = found.header.lists["tokenizer.ggml.tokens"].count
    head, body = b"", b""
    tensors = _tensors(n_vocab) if weights else {"token_embd.weight": np.zeros((8, 32), np.float16)}
    for name, values in tensors.items():
        shape = values.shape[::-1]
        kind = 1 if values.dtype == np.float16 else 0
        head += struct.pack("<Q", len(name)) + name.encode()
        head += struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(body))
        body += values.tobytes() + bytes(-values.nbytes % 32)
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), found.n_pairs) + bytes(pairs) + head
    path.write_bytes(start + bytes(-len(start) % 32) + body)
    return path


def _tensors(n_vocab: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)

    def draw(*shape: int) -> np.ndarray:
        return (generator.normal(size=shape) * 0.05).astype(np.float16)

    ones, kv = np.ones(WIDTH, np.float32), WIDTH // HEADS * KV_HEADS
    layer = {
        "attn_norm": ones,
        "attn_q": draw(WIDTH, WIDTH),
        "attn_k": draw(kv, WIDTH),
        "attn_v": draw(kv, WIDTH),
        "attn_output": draw(WIDTH, WIDTH),
        "ffn_norm": ones,
        "ffn_gate": draw(FEED, WIDTH),
        "ffn_up": draw(FEED, WIDTH),
        "ffn_down": draw(WIDTH, FEED),
    }
    return {
        "token_embd.weight": draw(n_vocab, WIDTH),
        "output_norm.weight": ones,
        **{f"blk.0.{name}.weight": values for name, values in layer.items()},
    }
