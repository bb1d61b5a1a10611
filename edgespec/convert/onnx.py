"""GGUF to a folder with an ONNX graph of the shape that onnxruntime-genai's model builder gives it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from edgespec.convert import tokenizer
from edgespec.convert.architecture import Architecture, architecture
from edgespec.convert.blocks import Blocks, blocks
from edgespec.convert.onnxgraph import Graph
from edgespec.convert.weights import Weights


def write(
    source: Path, folder: Path, notify: Callable[[str], None], progress: Callable[[float], None]
) -> None:
    """Fill an empty folder. Raises UnsupportedModelError, ModelFileError or OSError."""
    weights = Weights(source)
    model = architecture(weights)
    tokenizer.write(weights, folder, notify)
    with Graph(folder, weights.path.stem) as graph:
        errors = _Decoder(weights, model, graph, progress).build()
        graph.save()
    for name, value in _configurations(weights, model).items():
        (folder / name).write_text(json.dumps(value, indent=2) + "\n", "utf-8")
    for kind, worst in sorted(errors.items()):
        notify(f"{kind} weights were rounded to 8 bits: relative error at most {worst:.1%} in a tensor")


class _Decoder:
    """One graph: embedding, layers, head."""

    def __init__(
        self, weights: Weights, model: Architecture, graph: Graph, progress: Callable[[float], None]
    ) -> None:
        self._weights, self._model, self._graph, self._progress = weights, model, graph, progress
        self._errors: dict[str, float] = {}
        self._share = 0.0

    def build(self) -> dict[str, float]:
        """The largest relative error by kind of weight that had to be rounded."""
        model, graph = self._model, self._graph
        graph.inputs(model)
        embedding = self._blocks("token_embd")
        hidden = graph.embedding(embedding)
        residual, rotary = None, graph.rotary(model)
        for i in range(model.n_layers):
            self._share = (i + 1) / (model.n_layers + 2)
            self._progress(self._share)
            name = f"blk.{i}"
            hidden, residual = graph.norm(hidden, residual, self._array(f"{name}.attn_norm"), model.epsilon)
            mixed = graph.attention(self._qkv(i, hidden), i, model, rotary if model.rotates(i) else None)
            bias = self._bias(f"{name}.attn_output")
            mixed = graph.linear(mixed, self._blocks(f"{name}.attn_output"), bias)
            hidden, residual = graph.norm(mixed, residual, self._array(f"{name}.ffn_norm"), model.epsilon)
            hidden = graph.linear(self._gated(i, hidden), self._blocks(f"{name}.ffn_down"), None)
        hidden, _ = graph.norm(hidden, residual, self._array("output_norm"), model.epsilon)
        head = embedding if model.tied else self._blocks("output")
        graph.linear(hidden, head, None, output="logits")
        self._progress(1.0)
        return self._errors

    def _qkv(self, i: int, hidden: str) -> str:
        """Queries, keys and values side by side, `[1, S, (n_heads + 2 * n_kv_heads) * head_size]`."""
        names = [f"blk.{i}.attn_{part}" for part in "qkv"]
        parts = [self._blocks(name) for name in names]
        biases = [self._bias(name) for name in names]
        if self._model.paired:
            for at in (0, 1):
                order = _unpaired(len(parts[at].scales), self._model.head_size)
                parts[at] = parts[at].rows(order)
                bias = biases[at]
                biases[at] = None if bias is None else bias[order]
        outputs = self._graph.linears(hidden, parts, biases)
        if self._model.qk_norm:
            norms = [self._array(f"blk.{i}.attn_{part}_norm") for part in "qk"]
            widths = [len(part.scales) for part in parts]
            outputs = self._graph.head_norms(outputs, norms, self._model, widths)
        return self._graph.concatenated(outputs)

    def _gated(self, i: int, hidden: str) -> str:
        parts = [self._blocks(f"blk.{i}.ffn_{part}") for part in ("gate", "up")]
        return self._graph.gated(self._graph.linears(hidden, parts, [None, None]), self._model.n_ff)

    def _blocks(self, name: str) -> Blocks:
        tensor = self._weights[f"{name}.weight"]
        found = blocks(tensor, lambda: self._progress(self._share))
        if found.error:
            self._errors[tensor.kind] = max(found.error, self._errors.get(tensor.kind, 0.0))
        return found

    def _array(self, name: str) -> Any:
        return self._weights[f"{name}.weight"].float32()

    def _bias(self, name: str) -> Any:
        key = f"{name}.bias"
        return self._weights[key].float32() if key in self._weights else None


def _unpaired(n_rows: int, head_size: int) -> Any:
    """Rows in pairs to be rotated -> rows in halves."""
    return np.arange(n_rows).reshape(-1, head_size // 2, 2).swapaxes(1, 2).ravel()


def _configurations(weights: Weights, model: Architecture) -> dict[str, dict[str, Any]]:
    facts = weights.facts
    special = {
        f"{name}_token_id": facts.get(f"tokenizer.ggml.{key}_token_id")
        for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }
    decoder = {
        "filename": "model.onnx",
        "head_size": model.head_size,
        "hidden_size": model.n_embd,
        "num_attention_heads": model.n_heads,
        "num_hidden_layers": model.n_layers,
        "num_key_value_heads": model.n_kv_heads,
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
    }
    sizes = {"context_length": model.n_ctx, "vocab_size": model.n_vocab}
    genai = {"model": {"type": model.name, **special, **sizes, "decoder": decoder}, "search": {}}
    described = {
        "model_type": model.name,
        "hidden_size": model.n_embd,
        "intermediate_size": model.n_ff,
        "num_hidden_layers": model.n_layers,
        "num_attention_heads": model.n_heads,
        "num_key_value_heads": model.n_kv_heads,
        "head_dim": model.head_size,
        "max_position_embeddings": model.n_ctx,
        "vocab_size": model.n_vocab,
        "rms_norm_eps": model.epsilon,
        "rope_theta": model.rope_base,
        "tie_word_embeddings": model.tied,
        **special,
        "edgespec": {
            "source": weights.path.name,
            "name": facts.get("general.name", weights.path.stem),
            "kinds": sorted({weights[n].kind for n in weights if len(weights[n].shape) > 1}),
        },
    }
    return {"genai_config.json": genai, "config.json": described}
