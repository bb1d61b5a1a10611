"""A cut of a real model: its first layers and its first tokens. Cheap enough for a slow backend."""

from pathlib import Path

import gguf
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter

from edgespec.convert.tokenizer import words
from edgespec.convert.weights import Weights

LAYERS, TOKENS = 2, 4096
_NOT_MERGED = 273  # 17 control tokens and 256 bytes


def cut(
    source: Path, target: Path, *, layers: int = LAYERS, tokens: int = TOKENS, backwards: bool = False
) -> Path:
    """Tokens of byte-pair encoding are ordered by their merges, so that the first of both belong together.

    `backwards`: the last id comes first.
    """
    weights, found = Weights(source), words(Weights(source))
    writer = GGUFWriter(target, weights.architecture)
    ids = [*range(tokens)][:: -1 if backwards else 1]
    lists = {
        "tokenizer.ggml.tokens": ([found.tokens[i] for i in ids], GGUFValueType.STRING),
        "tokenizer.ggml.token_type": ([found.kinds[i] for i in ids], GGUFValueType.INT32),
        "tokenizer.ggml.merges": (found.merges[: tokens - _NOT_MERGED], GGUFValueType.STRING),
    }
    for key, (values, kind) in lists.items():
        writer.add_key_value(key, values, GGUFValueType.ARRAY, kind)
    changed = {f"{weights.architecture}.block_count": layers, f"{weights.architecture}.vocab_size": tokens}
    for key, value in (weights.facts | changed).items():
        if key not in ("general.architecture", "tokenizer.chat_template"):
            new = ids[value] if key.endswith("_token_id") else value
            writer.add_key_value(key, new, _kind(new))
    writer.add_chat_template(found.chat_template)
    for name in weights:
        layer = name.split(".")[1] if name.startswith("blk.") else "0"
        if int(layer) < layers:
            tensor = weights[name]
            kind = GGMLQuantizationType[tensor.kind]
            blocks = tensor.blocks[ids] if name == "token_embd.weight" else tensor.blocks
            writer.add_tensor(name, blocks.view("<f4") if tensor.kind == "F32" else blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def _kind(value) -> gguf.GGUFValueType:
    kinds = {bool: GGUFValueType.BOOL, int: GGUFValueType.UINT32, float: GGUFValueType.FLOAT32}
    return kinds.get(type(value), GGUFValueType.STRING)
