"""Weights and configuration into a model of mlx-lm. Needs MLX when imported."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map
from mlx_lm.utils import _get_classes, get_total_parameters, load_config, load_model

from edgespec.backends.base import LoadOptions
from edgespec.backends.mlx.load import Opened
from edgespec.backends.vocabulary import read_vocabulary
from edgespec.convert import mlx_form
from edgespec.convert.affine import GROUP
from edgespec.convert.weights import Weights
from edgespec.errors import Cancelled, ModelFileError, UnsupportedModelError


def size(path: Path) -> int:
    """Bytes of the weights on the disk."""
    files = path.glob("model*.safetensors") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files)


def gguf(path: Path, options: LoadOptions) -> Opened:
    """Every block as it is, computed in float32: float16 scales are very slow on a CPU, and K-quants lose."""
    weights = Weights(path)
    config, bits = mlx_form.config(weights), mlx_form.layout(weights)
    model_class, arguments = _get_classes(config)
    model = model_class(arguments.from_dict(config))

    def quantised(path: str, _: Any) -> bool | dict[str, int]:
        return {"group_size": GROUP, "bits": bits[path]} if path in bits else False

    nn.quantize(model, class_predicate=quantised)
    loaded: list[tuple[str, mx.array]] = []
    total = sum(1 for _ in weights)
    for parameter in mlx_form.parameters(weights):
        loaded += [(f"{parameter.path}.{key}", _widened(value)) for key, value in parameter.arrays.items()]
        _tell(options, len(loaded) / (total * 3), path)
    model.eval()
    model.load_weights(loaded)
    vocabulary, template = read_vocabulary(path)
    return Opened(
        model=model,
        config=config,
        vocabulary=vocabulary,
        chat_template=template,
        name=str(weights.facts.get("general.name", path.stem)),
        quantization=weights.quantization or "unknown",
        n_params=sum(math.prod(weights[name].shape) for name in weights),
    )


def folder(path: Path, options: LoadOptions, on_gpu: bool) -> Opened:
    """As mlx-lm loads it; on a CPU in float32, elsewhere in the widest type of its weights."""
    try:
        config = load_config(path)
        model, config = load_model(path, lazy=True, model_config=_rope(config))
    except (OSError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{path.name} cannot be loaded: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UnsupportedModelError(f"{path.name}: unsupported by this mlx-lm: {error}") from error
    _one_type(model, mx.float32 if not on_gpu else None)
    arrays = tree_flatten(model.parameters())
    for done, (_, array) in enumerate(arrays, 1):
        mx.eval(array)
        _tell(options, done / len(arrays), path)
    vocabulary, template = read_vocabulary(path, int(config["vocab_size"]))
    return Opened(
        model=model,
        config=config,
        vocabulary=vocabulary,
        chat_template=template,
        name=str(config.get("edgespec", {}).get("name", path.name)),
        quantization=_quantization(config),
        n_params=int(get_total_parameters(model)),
    )


def _rope(config: dict[str, Any]) -> dict[str, Any]:
    """Newer tools nest what most model classes of mlx-lm look for at the top, and they have defaults."""
    nested = config.get("rope_parameters")
    if not isinstance(nested, dict) or "rope_theta" not in nested:
        return {}
    found = {"rope_theta": nested["rope_theta"]} if "rope_theta" not in config else {}
    if config.get("rope_scaling") is None and nested.get("rope_type", "default") != "default":
        found["rope_scaling"] = nested
    return found


def _one_type(model: Any, wanted: Any) -> None:
    """Mixed types would be widened anew in every pass."""
    floating = {array.dtype for _, array in tree_flatten(model.parameters()) if _is_floating(array)}
    if wanted is None:
        if len(floating) < 2:
            return
        wanted = mx.float32
    model.update(
        tree_map(lambda array: array.astype(wanted) if _is_floating(array) else array, model.parameters())
    )


def _is_floating(array: mx.array) -> bool:
    return bool(mx.issubdtype(array.dtype, mx.floating))


def _widened(array: Any) -> mx.array:
    made = mx.array(array)
    return made.astype(mx.float32) if _is_floating(made) else made


def _quantization(config: dict[str, Any]) -> str:
    found = config.get("quantization")
    return (
        f"{found['bits']}-bit" if found else str(config.get("torch_dtype") or config.get("dtype") or "float")
    )


def _tell(options: LoadOptions, share: float, path: Path) -> None:
    if options.progress is not None and not options.progress(min(share, 1.0)):
        raise Cancelled(f"loading {path.name} was cancelled")
