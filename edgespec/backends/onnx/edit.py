"""Edits of a decoder graph: rows that do not depend on their number, logits of some rows only, trees.

GroupQueryAttention computes a single row with another kernel than several. One row of zeros behind the
others, cut off again afterwards, keeps it on the same one, for spare slots in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgespec.backends.onnx.signature import ATTENTION, Signature, attentions

FIRST_ROW, BIAS, POSITIONS = "edgespec_first_row", "edgespec_bias", "edgespec_positions"
SPARE = 2
FLOAT32_ACTIVATIONS = 1
_PRODUCTS = ("MatMulNBits", "MatMul", "Gemm", "MatMulBnb4")
_ELEMENTWISE = ("Cast", "Mul", "Div", "Tanh", "Add")
_LENGTH_AT, _TOTAL_AT, _POSITIONS_AT, _BIAS_AT = 5, 6, 9, 10


@dataclass(frozen=True, slots=True)
class Edits:
    """What could be done. `sliced`: the graph takes `FIRST_ROW`, and gives logits from that row on.

    `padded`: every row count is computed alike, and the cache needs `SPARE` slots more than it holds.
    `tree`: the graph takes positions, and `BIAS` for the scores of attention, `[1, 1, S + 1, T + SPARE]`.
    """

    sliced: bool
    padded: bool
    tree: bool


def edit(graph: onnx.GraphProto, found: Signature, *, pad: bool, float32: bool = False) -> Edits:
    """Change the graph in place. `pad` asks for exact rows and trees, `float32` for unrounded activations."""
    if float32:
        _keep_float32(graph)
    editor = _Editor(graph)
    sliced = editor.slice_logits(found.logits)
    padded = pad and found.shared and editor.plain
    tree = padded and editor.branch(found)
    if padded:
        editor.pad()
    editor.apply()
    return Edits(sliced, padded, tree)


def _keep_float32(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "MatMulNBits" and attribute.name == "accuracy_level":
                attribute.i = FLOAT32_ACTIVATIONS


class _Editor:
    """Collects nodes to be put before and after others; `apply` writes them into the graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._attentions = list(attentions(graph))
        self._before: dict[str, list[onnx.NodeProto]] = {}
        self._after: dict[str, list[onnx.NodeProto]] = {}
        self._known: dict[str, str] = {}

    @property
    def plain(self) -> bool:
        """No attention has a bias, a sink or scales of its own."""
        return bool(self._attentions) and all(not any(node.input[_BIAS_AT:]) for node in self._attentions)

    def slice_logits(self, logits: str) -> bool:
        """Multiply only the rows from `FIRST_ROW` on with the head."""
        makers = {name: node for node in self._graph.node for name in node.output}
        node = makers.get(logits)
        while node is not None and node.op_type in _ELEMENTWISE:
            node = makers.get(node.input[0])
        if node is None or node.op_type not in _PRODUCTS or node.input[0] not in makers:
            return False
        hidden, rows = node.input[0], f"{node.input[0]}_sliced"
        for user in self._graph.node:
            user.input[:] = [rows if name == hidden else name for name in user.input]
        inputs = [hidden, FIRST_ROW, self._constant(np.array([np.iinfo(np.int64).max])), self._one()]
        self._after[hidden] = [helper.make_node("Slice", inputs, [rows], name=rows)]
        self._graph.input.append(helper.make_tensor_value_info(FIRST_ROW, TensorProto.INT64, [1]))
        return True

    def branch(self, found: Signature) -> bool:
        """Let the caller say who sees whom, and where each row stands."""
        rotating = [node for node in self._attentions if _attribute(node, "do_rotary")]
        if found.positions is None and not rotating:
            return False
        positions = found.positions or POSITIONS
        for node in self._attentions:
            node.input.extend([""] * (_BIAS_AT + 1 - len(node.input)))
            node.input[_BIAS_AT] = BIAS
        for node in rotating:
            node.input[_POSITIONS_AT] = node.input[_POSITIONS_AT] or positions
        if found.positions is None:
            self._graph.input.append(helper.make_tensor_value_info(POSITIONS, TensorProto.INT64, [1, "S"]))
        kind = TensorProto.FLOAT16 if found.cached is np.float16 else TensorProto.FLOAT
        bias = helper.make_tensor_value_info(BIAS, kind, [1, 1, "S_padded", "T_padded"])
        self._graph.input.append(bias)
        return True

    def pad(self) -> None:
        """A row of zeros behind the last, and everything that counts rows one more."""
        sizes = {value.name: value.type.tensor_type for value in self._graph.input}
        for node in self._attentions:
            past = sizes[node.input[3]]
            width, kind = past.shape.dim[3].dim_value, past.elem_type
            heads, kv_heads = _attribute(node, "num_heads"), _attribute(node, "kv_num_heads")
            packed = not node.input[1]
            parts = [heads + 2 * kv_heads] if packed else [heads, kv_heads, kv_heads]
            for at, count in enumerate(parts):
                zeros = np.zeros((1, 1, count * width), helper.tensor_dtype_to_np_dtype(kind))
                node.input[at] = self._extended(node, node.input[at], zeros)
            node.input[_LENGTH_AT] = self._increased(node, node.input[_LENGTH_AT], 1)
            # A larger total keeps an empty cache from being a special case, in which positions are not read.
            node.input[_TOTAL_AT] = self._increased(node, node.input[_TOTAL_AT], SPARE)
            if len(node.input) > _POSITIONS_AT and node.input[_POSITIONS_AT]:
                zero = np.zeros((1, 1), np.int64)
                node.input[_POSITIONS_AT] = self._extended(node, node.input[_POSITIONS_AT], zero)
            self._shorten(node)

    def apply(self) -> None:
        nodes: list[onnx.NodeProto] = []
        for node in self._graph.node:
            nodes += [*self._before.get(_key(node), []), node]
            for name in node.output:
                nodes += self._after.get(name, [])
        del self._graph.node[:]
        self._graph.node.extend(nodes)

    def _extended(self, node: onnx.NodeProto, name: str, row: Any) -> str:
        """`name` with one row more behind the last; the same for all who ask again."""
        return self._once(node, f"{name}_extended", "Concat", [name, self._constant(row)], axis=1)

    def _increased(self, node: onnx.NodeProto, name: str, by: int) -> str:
        inputs = [name, self._constant(np.array(by, np.int32))]
        return self._once(node, f"{name}_increased_{by}", "Add", inputs)

    def _once(self, node: onnx.NodeProto, name: str, kind: str, inputs: list[str], **attributes: Any) -> str:
        if name not in self._known:
            self._known[name] = name
            made = helper.make_node(kind, inputs, [name], name=name, **attributes)
            self._before.setdefault(_key(node), []).append(made)
        return name

    def _shorten(self, node: onnx.NodeProto) -> None:
        output, whole = node.output[0], f"{node.output[0]}_extended"
        node.output[0] = whole
        inputs = [whole, self._constant(np.array([0])), self._constant(np.array([-1])), self._one()]
        self._after[whole] = [helper.make_node("Slice", inputs, [output], name=f"{output}_shortened")]

    def _one(self) -> str:
        return self._constant(np.array([1]))

    def _constant(self, array: Any) -> str:
        name = f"edgespec_{array.dtype}_{'_'.join(map(str, array.shape))}_{array.ravel()[0]}"
        if name not in self._known:
            self._known[name] = name
            self._graph.initializer.append(numpy_helper.from_array(array, name))
        return name


def _key(node: onnx.NodeProto) -> str:
    """Names of nodes need not be there; those of the cache are unique."""
    return node.output[1] if node.op_type == ATTENTION else ""


def _attribute(node: onnx.NodeProto, name: str) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), 0)
