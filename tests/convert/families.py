"""Tiny random models of every family that can be converted, written as GGUF."""

from pathlib import Path

import numpy as np

from tests.backends.tiny import _tokenizer, write_gguf

FAMILIES = ("llama", "qwen2", "qwen3", "smollm3")
N_VOCAB, WIDTH, LAYERS, HEADS, KV_HEADS, HEAD, N_FF = 320, 64, 4, 4, 2, 16, 96


def metadata(arch: str) -> dict:
    return {
        "general.architecture": arch,
        "general.name": f"tiny {arch}",
        f"{arch}.context_length": 512,
        f"{arch}.embedding_length": WIDTH,
        f"{arch}.block_count": LAYERS,
        f"{arch}.feed_forward_length": N_FF,
        f"{arch}.attention.head_count": HEADS,
        f"{arch}.attention.head_count_kv": KV_HEADS,
        f"{arch}.attention.key_length": HEAD,
        f"{arch}.attention.value_length": HEAD,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{arch}.rope.freq_base": 5000.0,
        f"{arch}.rope.dimension_count": HEAD,
        f"{arch}.vocab_size": N_VOCAB,
        **_tokenizer(),
    }


def tensors(arch: str, *, tied: bool = False) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(11)

    def draw(*shape):
        return generator.normal(0, 0.15, shape)

    made = {"token_embd.weight": draw(N_VOCAB, WIDTH), "output_norm.weight": 1 + draw(WIDTH)}
    if not tied:
        made["output.weight"] = draw(N_VOCAB, WIDTH)
    for i in range(LAYERS):
        sizes = {"q": HEADS * HEAD, "k": KV_HEADS * HEAD, "v": KV_HEADS * HEAD}
        for part, size in sizes.items():
            made[f"blk.{i}.attn_{part}.weight"] = draw(size, WIDTH)
            if arch == "qwen2":
                made[f"blk.{i}.attn_{part}.bias"] = draw(size)
        if arch == "qwen3":
            made |= {f"blk.{i}.attn_{part}_norm.weight": 1 + draw(HEAD) for part in "qk"}
        made |= {
            f"blk.{i}.attn_output.weight": draw(WIDTH, HEADS * HEAD),
            f"blk.{i}.attn_norm.weight": 1 + draw(WIDTH),
            f"blk.{i}.ffn_norm.weight": 1 + draw(WIDTH),
            f"blk.{i}.ffn_gate.weight": draw(N_FF, WIDTH),
            f"blk.{i}.ffn_up.weight": draw(N_FF, WIDTH),
            f"blk.{i}.ffn_down.weight": draw(WIDTH, N_FF),
        }
    return made


def family(path: Path, arch: str, *, tied: bool = False, **changes) -> Path:
    """A model that llama.cpp loads; `changes` are metadata with "__" for dots, None leaves one out."""
    found = metadata(arch) | {key.replace("__", "."): value for key, value in changes.items()}
    kept = {key: value for key, value in found.items() if value is not None}
    return write_gguf(path, kept, tensors(arch, tied=tied))
