"""A Llama in float32 with numpy, from a GGUF file's dequantised weights: what backends are compared with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgespec.convert.weights import Weights

FORCED_START, FORCED = 16, 48
"""Tokens of each prompt, and of the text behind it that is compared."""


class Reference:
    """Whole sequences at once; no cache. The llama architecture, with the rows of q and k in pairs."""

    def __init__(self, path: Path):
        weights = Weights(path)
        self._arrays = {name: weights[name].float32() for name in weights}
        self._layers = int(weights.number("block_count"))
        self._heads = int(weights.number("attention.head_count"))
        self._kv_heads = int(weights.number("attention.head_count_kv"))
        self._eps = weights.number("attention.layer_norm_rms_epsilon")
        self._base = weights.number("rope.freq_base")

    def logits(self, sequences) -> np.ndarray:
        """Of sequences of one length n: `[sequences, n, n_vocab]` float32."""
        x = self._arrays["token_embd.weight"][np.array(sequences)]
        n = x.shape[1]
        mask = np.triu(np.full((n, n), -np.inf, np.float32), 1)
        for i in range(self._layers):
            x = x + self._attention(i, self._norm(x, f"blk.{i}.attn_norm.weight"), mask)
            y = self._norm(x, f"blk.{i}.ffn_norm.weight")
            gate, up = self._linear(y, f"blk.{i}.ffn_gate"), self._linear(y, f"blk.{i}.ffn_up")
            x = x + self._linear(gate / (1 + np.exp(-gate)) * up, f"blk.{i}.ffn_down")
        head = "output" if "output.weight" in self._arrays else "token_embd"
        return self._linear(self._norm(x, "output_norm.weight"), head)

    def _linear(self, x, name):
        weight = self._arrays[f"{name}.weight"]
        return (x.reshape(-1, x.shape[-1]) @ weight.T).reshape(*x.shape[:-1], -1)

    def _norm(self, x, name):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + np.float32(self._eps)) * self._arrays[name]

    def _attention(self, i, x, mask):
        shape = x.shape[:2]
        q = self._rotate(self._linear(x, f"blk.{i}.attn_q").reshape(*shape, self._heads, -1))
        k = self._rotate(self._linear(x, f"blk.{i}.attn_k").reshape(*shape, self._kv_heads, -1))
        v = self._linear(x, f"blk.{i}.attn_v").reshape(*shape, self._kv_heads, -1)
        k, v = (np.repeat(a, self._heads // self._kv_heads, axis=2) for a in (k, v))
        q, k, v = (a.swapaxes(1, 2) for a in (q, k, v))  # [sequence, head, position, size]
        scores = q @ k.swapaxes(2, 3) / np.float32(np.sqrt(q.shape[-1])) + mask
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = scores / scores.sum(-1, keepdims=True) @ v
        return self._linear(mixed.swapaxes(1, 2).reshape(*shape, -1), f"blk.{i}.attn_output")

    def _rotate(self, x):
        half = x.shape[-1] // 2
        angles = np.arange(x.shape[1])[:, None] * self._base ** (-np.arange(half) / half)
        cos, sin = (f(angles).astype(np.float32)[:, None, :] for f in (np.cos, np.sin))
        even, odd = x[..., ::2], x[..., 1::2]
        return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Over all rows: share with the same best token, mean KL divergence in nats, largest logit difference."""

    top1: float
    kl: float
    largest: float

    def __str__(self):
        return f"top-1 {self.top1:.3f}, KL {self.kl:.1e}, largest logit difference {self.largest:.1e}"


def agreement(reference, rows) -> Agreement:
    """How far `rows` are from the reference, both `[n, n_vocab]` logits."""
    p, q = _log_softmax(reference), _log_softmax(rows)
    return Agreement(
        top1=float(np.mean(p.argmax(-1) == q.argmax(-1))),
        kl=float(np.mean(np.sum(np.exp(p) * (p - q), -1))),
        largest=float(np.abs(reference - rows).max()),
    )


def _log_softmax(logits):
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(-1, keepdims=True))


def forced(backend, sequences) -> np.ndarray:
    """Teacher-forced logits of one token a pass, behind the first `FORCED_START` tokens of all sequences."""
    rows = []
    for tokens in sequences:
        backend.truncate(0)
        backend.forward(tokens[:FORCED_START], rows="none")
        backend.commit(range(FORCED_START))
        for token in tokens[FORCED_START:]:
            rows.append(backend.forward([token])[0].copy())
            backend.commit([0])
    backend.truncate(0)
    return np.stack(rows)
