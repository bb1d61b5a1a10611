"""Tiny random models, written as GGUF: recurrent and hybrid ones without a download."""

import struct
from pathlib import Path

import numpy as np

N_VOCAB, N_EMBD, N_LAYER = 320, 64, 2
D_CONV, D_STATE, DT_RANK = 4, 16, 4
D_INNER = 2 * N_EMBD
_UINT32, _FLOAT32, _BOOL, _STRING, _ARRAY, _INT32 = 4, 6, 7, 8, 9, 5
_ALIGNMENT = 32


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _string(value)
    kind = {int: _INT32, float: _FLOAT32, str: _STRING}[type(value[0])]
    code = {_INT32: "<i", _FLOAT32: "<f"}.get(kind)
    items = b"".join(_string(x) if code is None else struct.pack(code, x) for x in value)
    return struct.pack("<IIQ", _ARRAY, kind, len(value)) + items


def write_gguf(path: Path, metadata: dict, tensors: dict[str, np.ndarray]) -> Path:
    """Float32 tensors; shapes are numpy's, so that the last axis is the file's first."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    head += b"".join(_string(key) + _value(value) for key, value in metadata.items())
    body = b""
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]
        head += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(body))
        data = tensor.astype("<f4").tobytes()
        body += data + bytes(-len(data) % _ALIGNMENT)
    path.write_bytes(head + bytes(-len(head) % _ALIGNMENT) + body)
    return path


def _tokenizer() -> dict:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    kinds = [2, 3, 3, *[6] * 256]
    while len(tokens) < N_VOCAB:
        tokens.append(f"w{len(tokens)}")
        kinds.append(1)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [-float(i) for i in range(N_VOCAB)],
        "tokenizer.ggml.token_type": kinds,
    }


def _mamba_layer(draw, i: int) -> dict[str, np.ndarray]:
    return {
        f"blk.{i}.attn_norm.weight": np.ones(N_EMBD),
        f"blk.{i}.ssm_in.weight": draw(2 * D_INNER, N_EMBD),
        f"blk.{i}.ssm_conv1d.weight": draw(D_INNER, D_CONV),
        f"blk.{i}.ssm_conv1d.bias": draw(D_INNER),
        f"blk.{i}.ssm_x.weight": draw(DT_RANK + 2 * D_STATE, D_INNER),
        f"blk.{i}.ssm_dt.weight": draw(D_INNER, DT_RANK),
        f"blk.{i}.ssm_dt.bias": draw(D_INNER),
        f"blk.{i}.ssm_a": -np.abs(draw(D_INNER, D_STATE)) - 0.05,
        f"blk.{i}.ssm_d": draw(D_INNER),
        f"blk.{i}.ssm_out.weight": draw(N_EMBD, D_INNER),
    }


def _recurrent(arch: str) -> dict:
    return {
        "general.architecture": arch,
        f"{arch}.context_length": 512,
        f"{arch}.embedding_length": N_EMBD,
        f"{arch}.block_count": N_LAYER,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{arch}.ssm.conv_kernel": D_CONV,
        f"{arch}.ssm.inner_size": D_INNER,
        f"{arch}.ssm.state_size": D_STATE,
        f"{arch}.ssm.time_step_rank": DT_RANK,
        f"{arch}.vocab_size": N_VOCAB,
        **_tokenizer(),
    }


def _frame(draw) -> dict[str, np.ndarray]:
    return {
        "token_embd.weight": draw(N_VOCAB, N_EMBD),
        "output_norm.weight": np.ones(N_EMBD),
        "output.weight": draw(N_VOCAB, N_EMBD),
    }


def _drawing():
    generator = np.random.default_rng(7)
    return lambda *shape: generator.normal(0, 0.3, shape)


def tiny_mamba(path: Path) -> Path:
    """A recurrent model: its state cannot be cut, only restored."""
    draw = _drawing()
    tensors = _frame(draw)
    for i in range(N_LAYER):
        tensors |= _mamba_layer(draw, i)
    metadata = _recurrent("mamba") | {"mamba.feed_forward_length": 0, "mamba.attention.head_count": 0}
    return write_gguf(path, metadata, tensors)


def tiny_jamba(path: Path) -> Path:
    """A hybrid model: one recurrent layer, one with attention."""
    draw = _drawing()
    n_ff, heads = 96, 2
    tensors = _frame(draw) | _mamba_layer(draw, 0)
    tensors |= {
        "blk.0.ssm_dt_norm.weight": np.ones(DT_RANK),
        "blk.0.ssm_b_norm.weight": np.ones(D_STATE),
        "blk.0.ssm_c_norm.weight": np.ones(D_STATE),
        "blk.1.attn_norm.weight": np.ones(N_EMBD),
        "blk.1.attn_q.weight": draw(N_EMBD, N_EMBD),
        "blk.1.attn_k.weight": draw(N_EMBD, N_EMBD),
        "blk.1.attn_v.weight": draw(N_EMBD, N_EMBD),
        "blk.1.attn_output.weight": draw(N_EMBD, N_EMBD),
    }
    for i in range(2):
        tensors |= {
            f"blk.{i}.ffn_norm.weight": np.ones(N_EMBD),
            f"blk.{i}.ffn_gate.weight": draw(n_ff, N_EMBD),
            f"blk.{i}.ffn_up.weight": draw(n_ff, N_EMBD),
            f"blk.{i}.ffn_down.weight": draw(N_EMBD, n_ff),
        }
    metadata = _recurrent("jamba") | {
        "jamba.feed_forward_length": n_ff,
        "jamba.attention.head_count": heads,
        "jamba.attention.head_count_kv": [0, heads],
    }
    return write_gguf(path, metadata, tensors)
