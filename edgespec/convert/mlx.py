"""GGUF to a model folder of mlx-lm: blocks as they are where MLX has the same, the others requantised."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from edgespec.convert import tokenizer
from edgespec.convert.mlx_form import Parameter, config, layout, narrow, parameters, quantization
from edgespec.convert.weights import Weights

_SHARD_BYTES: Final = 1 << 28
_CLASSES: Final = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
}
_Arrays = dict[str, np.ndarray[Any, Any]]


def write(
    source: Path, folder: Path, notify: Callable[[str], None], progress: Callable[[float], None]
) -> None:
    """Fill an empty folder; holds a shard of about 256 MB, or the largest weight, in memory.

    Raises UnsupportedModelError, ModelFileError or OSError.
    """
    weights = Weights(source)
    described, bits = config(weights), layout(weights)
    if bits:
        described["quantization"] = described["quantization_config"] = quantization(bits)
    described["architectures"] = [_CLASSES[weights.architecture]]
    described["edgespec"] = {"source": source.name, "name": weights.facts.get("general.name", source.stem)}
    tokenizer.write(weights, folder, notify)
    rounded: dict[str, Rounded] = {}
    _save(_counted(weights, rounded, progress), folder)
    for kind, found in sorted(rounded.items()):
        notify(
            f"{kind} weights were rounded to {found.bits} bits: relative error {found.mean:.2%} on average, "
            f"at most {max(found.errors):.2%} in a tensor"
        )
    # Last: a folder with a configuration is a whole one.
    _write_json(folder / "config.json", described)


@dataclass(slots=True)
class Rounded:
    """What became of the weights of one type."""

    bits: int
    errors: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return sum(self.errors) / len(self.errors)


def _counted(
    weights: Weights, rounded: dict[str, Rounded], progress: Callable[[float], None]
) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Arrays by mlx-lm's names; what was requantised is counted in `rounded`."""
    total = sum(weights[name].blocks.size for name in weights)
    done = 0
    for parameter in parameters(weights):
        for key, array in parameter.arrays.items():
            yield f"{parameter.path}.{key}", np.ascontiguousarray(narrow(array))
        if parameter.error is not None:
            _count(parameter, parameter.error, rounded)
        done += parameter.source.blocks.size
        progress(done / total)


def _count(parameter: Parameter, error: float, rounded: dict[str, Rounded]) -> None:
    inputs = parameter.source.shape[-1]
    bits = parameter.arrays["weight"].shape[-1] * 32 // inputs
    rounded.setdefault(parameter.source.kind, Rounded(bits)).errors.append(error)


def _save_file(arrays: _Arrays, path: Path) -> None:
    """Raises OSError, which the library has only in its text."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(arrays, path, metadata={"format": "mlx"})
    except SafetensorError as error:
        found = re.search(r"os error (\d+)", str(error))
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from error


def _save(arrays: Iterator[tuple[str, np.ndarray[Any, Any]]], folder: Path) -> None:
    """Shards of about `_SHARD_BYTES`, and the index of what is where."""
    shards: list[list[str]] = []
    held: _Arrays = {}
    total = 0

    def flush() -> None:
        if held:
            _save_file(held, folder / f"part-{len(shards)}")
            shards.append(list(held))
            held.clear()

    for name, array in arrays:
        held[name] = array
        total += array.nbytes
        if sum(one.nbytes for one in held.values()) >= _SHARD_BYTES:
            flush()
    flush()
    places: dict[str, str] = {}
    for i, names in enumerate(shards):
        shard = (
            f"model-{i + 1:05}-of-{len(shards):05}.safetensors" if len(shards) > 1 else "model.safetensors"
        )
        (folder / f"part-{i}").chmod(0o644)
        (folder / f"part-{i}").rename(folder / shard)
        places |= dict.fromkeys(names, shard)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
    _write_json(folder / "model.safetensors.index.json", index)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")
