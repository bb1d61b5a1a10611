"""What a decoder graph takes and gives, read from the graph itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from edgespec.errors import UnsupportedModelError

ATTENTION = "GroupQueryAttention"
_ELEMENTS: dict[int, type[np.floating[Any]]] = {
    TensorProto.FLOAT: np.float32,
    TensorProto.FLOAT16: np.float16,
}
_LAYER = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True, slots=True)
class CacheTensor:
    """Keys or values of one layer, `[1, heads, positions, size]`, by their input and output name."""

    past: str
    present: str
    heads: int
    size: int


@dataclass(frozen=True, slots=True)
class Signature:
    """Names in the graph. `shared`: past and present may be one buffer, longer than what it holds.

    `cached` and `computed`: element types of the cache and of the logits. `mask` and `positions` are None
    where the graph does not take them.
    """

    ids: str
    mask: str | None
    positions: str | None
    logits: str
    caches: tuple[CacheTensor, ...]
    shared: bool
    cached: type[np.floating[Any]]
    computed: type[np.floating[Any]]
    n_vocab: int


def attentions(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    return (node for node in graph.node if node.op_type == ATTENTION)


def signature(graph: onnx.GraphProto, file: str) -> Signature:
    """Raises UnsupportedModelError where this is no decoder with a cache."""
    constants = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value for value in graph.input if value.name not in constants}
    outputs = {value.name: value for value in graph.output}
    pairs = list(_fused(graph, inputs, outputs)) or list(_by_name(inputs, outputs))
    if not pairs:
        raise UnsupportedModelError(
            f"{file}: the graph has no cache of keys and values: export it with a past (optimum: with_past)"
        )
    if "input_ids" not in inputs or "logits" not in outputs:
        raise UnsupportedModelError(f"{file}: the graph does not map input_ids to logits, it is no decoder")
    known = {"input_ids", "attention_mask", "position_ids", *(past for past, _ in pairs)}
    if unknown := sorted(inputs.keys() - known):
        raise UnsupportedModelError(f"{file}: the graph wants {unknown[0]}, which is unknown here")
    caches = []
    for past, present in pairs:
        shape = [dim.dim_value for dim in inputs[past].type.tensor_type.shape.dim]
        if len(shape) != 4 or not shape[1] or not shape[3]:
            raise UnsupportedModelError(f"{file}: {past} does not say its heads and their size")
        caches.append(CacheTensor(past, present, shape[1], shape[3]))
    n_vocab = [dim.dim_value for dim in outputs["logits"].type.tensor_type.shape.dim][-1]
    if not n_vocab:
        raise UnsupportedModelError(f"{file}: logits do not say the size of the vocabulary")
    return Signature(
        ids="input_ids",
        mask="attention_mask" if "attention_mask" in inputs else None,
        positions="position_ids" if "position_ids" in inputs else None,
        logits="logits",
        caches=tuple(caches),
        shared=2 * sum(1 for _ in attentions(graph)) == len(caches),
        cached=_element(inputs[caches[0].past], file),
        computed=_element(outputs["logits"], file),
        n_vocab=n_vocab,
    )


def _element(value: onnx.ValueInfoProto, file: str) -> type[np.floating[Any]]:
    kind = value.type.tensor_type.elem_type
    if kind not in _ELEMENTS:
        raise UnsupportedModelError(f"{file}: {value.name} has elements of an unknown type")
    return _ELEMENTS[kind]


def _fused(
    graph: onnx.GraphProto, inputs: dict[str, Any], outputs: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    for node in attentions(graph):
        for past, present in zip(node.input[3:5], node.output[1:3], strict=True):
            if past in inputs and present in outputs:
                yield past, present


def _by_name(inputs: dict[str, Any], outputs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """past_key_values.3.key and present.3.key, or past.3.key; matched by layer and part."""

    def key(name: str) -> tuple[int, bool] | None:
        match = _LAYER.search(name)
        return (int(match[1]), "value" in name.rsplit(match[1], 1)[1]) if match else None

    presents = {key(name): name for name in outputs if "present" in name}
    for name in inputs:
        if "past" in name and key(name) in presents:
            yield name, presents[key(name)]
