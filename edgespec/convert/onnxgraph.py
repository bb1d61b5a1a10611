"""The nodes of a decoder, and its weights in a file beside the graph, written as they come."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgespec.convert.architecture import Architecture
from edgespec.convert.blocks import Blocks, joined
from edgespec.types import FloatArray

_MICROSOFT = "com.microsoft"
_ALIGNMENT = 4096
_SMALL = 1024
INT8_ACTIVATIONS = 4


class Graph:
    """Methods add nodes and return the name of what they compute. Hidden states are `[1, S, n]` float32."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path, self._name = folder / "model.onnx", name
        self._data = (folder / "model.onnx.data").open("wb")
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._numbers = itertools.count()
        self._table: tuple[Blocks, onnx.TensorProto, str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._data.close()

    def save(self) -> None:
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="edgespec")
        self._data.flush()
        self._path.write_bytes(model.SerializeToString())

    def inputs(self, model: Architecture) -> None:
        """Ids, mask and caches in; logits and caches out; the lengths that attention asks for."""
        for name, width in (("input_ids", "S"), ("attention_mask", "T")):
            self._inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, [1, width]))
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "S", model.n_vocab])
        self._outputs.append(logits)
        for i in range(model.n_layers):
            for part in ("key", "value"):
                for name, length, into in (
                    (f"past_key_values.{i}.{part}", "P", self._inputs),
                    (f"present.{i}.{part}", "C", self._outputs),
                ):
                    shape: list[str | int | None] = [1, model.n_kv_heads, length, model.head_size]
                    into.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        total = self._node("ReduceSum", ["attention_mask", self._int64([1])], keepdims=0)
        past = self._node("Sub", [total, self._int64([1])])
        self._node("Cast", [past], output="seqlens_k", to=TensorProto.INT32)
        width = self._node("Gather", [self._node("Shape", ["attention_mask"]), self._int64(1)], axis=0)
        self._node("Cast", [width], output="total_sequence_length", to=TensorProto.INT32)

    def embedding(self, table: Blocks) -> str:
        """Rows of the table by id. Offsets are added to them, block by block."""
        n_rows, n = table.scales.shape
        flat = self._external(table.quants, [n_rows, n * table.quants.shape[2]])
        scales = self._external(table.scales, [n_rows, n]).name
        self._table = table, flat, scales
        rows = self._node(
            "GatherBlockQuantized",
            [flat.name, "input_ids", scales],
            domain=_MICROSOFT,
            bits=table.bits,
            block_size=table.size,
            gather_axis=0,
            quantize_axis=1,
        )
        if table.offsets is None:
            return rows
        offsets = self._node("Gather", [self._constant(table.offsets), "input_ids"], axis=0)
        apart = self._node("Reshape", [rows, self._int64([1, -1, n, table.size])])
        shifted = self._node("Add", [apart, self._node("Unsqueeze", [offsets, self._int64([-1])])])
        return self._node("Reshape", [shifted, self._int64([1, -1, n * table.size])])

    def norm(self, x: str, residual: str | None, scale: FloatArray, epsilon: float) -> tuple[str, str]:
        """The normalised sum of both, and the sum."""
        gamma = self._constant(scale)
        if residual is None:
            return self._node("SimplifiedLayerNormalization", [x, gamma], axis=-1, epsilon=epsilon), x
        outputs = [self._fresh("norm"), "", "", self._fresh("sum")]
        node = helper.make_node(
            "SkipSimplifiedLayerNormalization",
            [residual, x, gamma],
            outputs,
            domain=_MICROSOFT,
            name=outputs[0],
            epsilon=epsilon,
        )
        self._nodes.append(node)
        return outputs[0], outputs[3]

    def linear(self, x: str, weights: Blocks, bias: FloatArray | None, output: str | None = None) -> str:
        n, n_blocks = weights.scales.shape
        inputs = [x, *self._stored(weights)]
        if bias is not None:
            inputs += ["", "", self._constant(bias)]
        shifted = weights.offsets is not None
        product = self._node(
            "MatMulNBits",
            inputs,
            domain=_MICROSOFT,
            output=None if shifted else output,
            K=n_blocks * weights.size,
            N=n,
            bits=weights.bits,
            block_size=weights.size,
            accuracy_level=INT8_ACTIVATIONS,
        )
        if weights.offsets is None:
            return product
        sums = self._block_sums(x, n_blocks, weights.size)
        offsets = self._constant(np.ascontiguousarray(weights.offsets.T))
        return self._node("Add", [product, self._node("MatMul", [sums, offsets])], output=output)

    def linears(self, x: str, parts: list[Blocks], biases: list[FloatArray | None]) -> list[str]:
        """Several products with one input; a single one, for the whole, where all have the same form."""
        if len({part.form for part in parts}) > 1:
            return [self.linear(x, part, bias) for part, bias in zip(parts, biases, strict=True)]
        bias = None if biases[0] is None else np.concatenate([b for b in biases if b is not None])
        return [self.linear(x, joined(parts), bias)]

    def concatenated(self, outputs: list[str]) -> str:
        return outputs[0] if len(outputs) == 1 else self._node("Concat", outputs, axis=-1)

    def head_norms(
        self, outputs: list[str], norms: list[FloatArray], model: Architecture, widths: list[int]
    ) -> list[str]:
        """Queries and keys normalised head by head."""
        if len(outputs) == 1:
            outputs = self._split(outputs[0], widths)
        normal = []
        for x, scale, width in zip(outputs, norms, widths, strict=False):
            shape = [1, -1, width // model.head_size, model.head_size]
            heads = self._node("Reshape", [x, self._int64(shape)])
            inputs = [heads, self._constant(scale)]
            heads = self._node("SimplifiedLayerNormalization", inputs, axis=-1, epsilon=model.epsilon)
            normal.append(self._node("Reshape", [heads, self._int64([1, -1, width])]))
        return [*normal, outputs[2]]

    def gated(self, outputs: list[str], width: int) -> str:
        """silu(gate) * up."""
        gate, up = outputs if len(outputs) == 2 else self._split(outputs[0], [width, width])
        return self._node("Mul", [self._node("QuickGelu", [gate], domain=_MICROSOFT, alpha=1.0), up])

    def rotary(self, model: Architecture) -> tuple[str, str]:
        """Cosines and sines of every position, `[n_ctx, head_size / 2]`."""
        angles = np.arange(model.n_ctx, dtype=np.float64)[:, None] * model.angles
        return self._constant(np.cos(angles)), self._constant(np.sin(angles))

    def attention(self, qkv: str, layer: int, model: Architecture, rotary: tuple[str, str] | None) -> str:
        pasts = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        presents = [f"present.{layer}.{part}" for part in ("key", "value")]
        output = self._fresh("attention")
        node = helper.make_node(
            "GroupQueryAttention",
            [qkv, "", "", *pasts, "seqlens_k", "total_sequence_length", *(rotary or ())],
            [output, *presents],
            domain=_MICROSOFT,
            name=output,
            num_heads=model.n_heads,
            kv_num_heads=model.n_kv_heads,
            do_rotary=int(rotary is not None),
            rotary_interleaved=0,
        )
        self._nodes.append(node)
        return output

    def _block_sums(self, x: str, n_blocks: int, size: int) -> str:
        apart = self._node("Reshape", [x, self._int64([1, -1, n_blocks, size])])
        return self._node("ReduceSum", [apart, self._int64([-1])], keepdims=0)

    def _split(self, x: str, widths: list[int]) -> list[str]:
        outputs = [self._fresh("part") for _ in widths]
        node = helper.make_node("Split", [x, self._int64(widths)], outputs, name=outputs[0], axis=-1)
        self._nodes.append(node)
        return outputs

    def _stored(self, weights: Blocks) -> list[str]:
        """Names of quants and scales; a tied head shares the bytes of the embedding."""
        n, n_blocks = weights.scales.shape
        shape = list(weights.quants.shape)
        if self._table is None or self._table[0] is not weights:
            quants = self._external(weights.quants, shape)
            return [quants.name, self._external(weights.scales, [n, n_blocks]).name]
        _, flat, scales = self._table
        quants = onnx.TensorProto()
        quants.CopyFrom(flat)
        quants.name, quants.dims[:] = f"{flat.name}_head", shape
        self._constants.append(quants)
        return [quants.name, scales]

    def _node(
        self, kind: str, inputs: list[str], *, domain: str = "", output: str | None = None, **attributes: Any
    ) -> str:
        output = output or self._fresh(kind)
        self._nodes.append(helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def _fresh(self, kind: str) -> str:
        return f"{kind}_{next(self._numbers)}"

    def _int64(self, values: Any) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, array: Any) -> str:
        array = np.asarray(array)
        array = array.astype(np.float32) if array.dtype.kind == "f" else array
        if array.nbytes > _SMALL:
            return str(self._external(array, list(array.shape)).name)
        tensor = numpy_helper.from_array(array, f"constant_{len(self._constants)}")
        self._constants.append(tensor)
        return tensor.name

    def _external(self, array: Any, shape: list[int]) -> onnx.TensorProto:
        self._data.write(bytes(-self._data.tell() % _ALIGNMENT))
        tensor = onnx.TensorProto(name=f"weight_{len(self._constants)}", dims=shape)
        tensor.data_type = TensorProto.UINT8 if array.dtype == np.uint8 else TensorProto.FLOAT
        tensor.data_location = TensorProto.EXTERNAL
        values = {"location": "model.onnx.data", "offset": self._data.tell(), "length": array.nbytes}
        for key, value in values.items():
            tensor.external_data.add(key=key, value=str(value))
        self._data.write(np.ascontiguousarray(array).data)
        self._constants.append(tensor)
        return tensor
