"""A tiny random decoder of ONNX's own operators, as optimum exports them: the past comes back longer."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

N_VOCAB, N_EMBD, HEADS, SIZE, N_CTX = 40, 16, 2, 8, 64


def decoder(folder):
    """A folder with model.onnx, config.json and tokenizer.json."""
    folder.mkdir()
    graph = _Graph()
    x = graph("Add", graph("Gather", "embd", "input_ids"), graph("Gather", "place", "position_ids"))
    heads = {part: graph.heads(graph("MatMul", x, f"{part}_proj")) for part in "qkv"}
    graph("Concat", "past_key_values.0.key", heads["k"], output="present.0.key", axis=2)
    graph("Concat", "past_key_values.0.value", heads["v"], output="present.0.value", axis=2)
    keys = graph("Transpose", "present.0.key", perm=[0, 1, 3, 2])
    seen = graph(
        "LessOrEqual",
        graph("Range", "zero", graph.total(), "one"),
        graph("Unsqueeze", "position_ids", "last"),
    )
    scores = graph("Where", seen, graph("MatMul", heads["q"], keys), "hidden")
    mixed = graph("MatMul", graph("Softmax", scores, axis=-1), "present.0.value")
    flat = graph("Reshape", graph("Transpose", mixed, perm=[0, 2, 1, 3]), "flat")
    graph("MatMul", graph("Add", x, flat), "head", output="logits")
    onnx.save(graph.model(), folder / "model.onnx")
    config = {"model_type": "tiny", "max_position_embeddings": N_CTX, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config))
    _tokenizer().save(str(folder / "tokenizer.json"))
    return folder


class _Graph:
    def __init__(self):
        draw = np.random.default_rng(3).standard_normal
        arrays = {f"{part}_proj": draw((N_EMBD, HEADS * SIZE)) for part in "qkv"}
        arrays |= {
            "embd": draw((N_VOCAB, N_EMBD)),
            "place": draw((N_CTX, N_EMBD)),
            "head": draw((N_EMBD, N_VOCAB)),
        }
        numbers = {
            "zero": 0,
            "one": 1,
            "last": [-1],
            "split": [1, -1, HEADS, SIZE],
            "flat": [1, -1, HEADS * SIZE],
        }
        self._constants = [numpy_helper.from_array(a.astype(np.float32), name) for name, a in arrays.items()]
        self._constants += [numpy_helper.from_array(np.array(n), name) for name, n in numbers.items()]
        self._constants.append(numpy_helper.from_array(np.array(-1e9, np.float32), "hidden"))
        self._nodes = []

    def __call__(self, kind, *inputs, output=None, **attributes):
        output = output or f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def heads(self, x):
        return self("Transpose", self("Reshape", x, "split"), perm=[0, 2, 1, 3])

    def total(self):
        return self("Gather", self("Shape", "attention_mask"), "one")

    def model(self):
        def value(name, kind, *shape):
            return helper.make_tensor_value_info(name, kind, shape)

        ids = ("input_ids", "attention_mask", "position_ids")
        inputs = [value(name, TensorProto.INT64, 1, f"n_{name}") for name in ids]
        outputs = [value("logits", TensorProto.FLOAT, 1, "S", N_VOCAB)]
        for part in ("key", "value"):
            inputs.append(value(f"past_key_values.0.{part}", TensorProto.FLOAT, 1, HEADS, "P", SIZE))
            outputs.append(value(f"present.0.{part}", TensorProto.FLOAT, 1, HEADS, "T", SIZE))
        graph = helper.make_graph(self._nodes, "tiny", inputs, outputs, self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {f"w{i}": i for i in range(N_VOCAB)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer
