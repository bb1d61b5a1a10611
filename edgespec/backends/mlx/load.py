"""Open a model with MLX: a GGUF file or a model folder of mlx-lm."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgespec.backends.base import LoadedModel, LoadOptions, ModelInfo, Vocabulary
from edgespec.backends.device import cpu_name
from edgespec.backends.llama.opening import sizes
from edgespec.backends.mlx.refusal import refuses
from edgespec.backends.mlx.thread import OnLane, lane
from edgespec.errors import BackendError, UnsupportedModelError, UsageError

if TYPE_CHECKING:
    import mlx.core as mx

_CPU_CHUNK = 32
"""Tokens of a prompt between two looks at whether to stop; on a CPU more at a time are no cheaper."""
_ROOM_TO_MEASURE = 512
"""Contexts from here on measure alike."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A model of mlx-lm with its weights in memory, and what its file or folder says."""

    model: Any
    config: dict[str, Any]
    vocabulary: Vocabulary
    chat_template: str | None
    name: str
    quantization: str
    n_params: int


def load(path: Path | str, options: LoadOptions) -> LoadedModel:
    """Load a model and make a cache for one sequence.

    Raises ModelFileError, UnsupportedModelError, UsageError, BackendError, or Cancelled when `progress`
    returned False.
    """
    path = Path(path)
    if options.type_k or options.type_v:
        raise UsageError("MLX keeps its cache as the model computes: leave the cache types away")
    if reason := refuses(path):
        raise UnsupportedModelError(reason)
    return lane().run(lambda: _load(path, options))


def _load(path: Path, options: LoadOptions) -> LoadedModel:
    import mlx.core as mx

    from edgespec.backends.mlx import memory, opening

    on_gpu = mx.metal.is_available() and options.n_gpu_layers != 0
    limits = memory.limits(mx.device_info()) if on_gpu else None
    if limits is not None:
        memory.check(opening.size(path), limits, path.name, options.notify)
        memory.hold(limits)
    device = mx.gpu if on_gpu else mx.cpu
    try:
        with mx.stream(device):
            opened = opening.folder(path, options, on_gpu) if path.is_dir() else opening.gguf(path, options)
            return _loaded(path, opened, options, device)
    except (RuntimeError, ValueError, MemoryError, KeyError, TypeError) as error:
        raise BackendError(f"{path.name}: MLX could not load it: {_line(error)}") from error


def _loaded(path: Path, opened: Opened, options: LoadOptions, device: mx.DeviceType) -> LoadedModel:
    import mlx.core as mx
    from mlx.utils import tree_flatten

    from edgespec.backends.mlx.backend import MlxBackend

    arrays = [array for _, array in tree_flatten(opened.model.parameters())]
    mx.eval(arrays)  # what is still to be computed could only be computed in this thread
    n_ctx_train = int(opened.config.get("max_position_embeddings") or 0)
    wanted = sizes(options, n_ctx_train)
    backend = MlxBackend(
        opened.model,
        n_vocab=opened.vocabulary.n_vocab,
        n_ctx=wanted.n_ctx,
        max_rows=wanted.max_rows,
        n_batch=wanted.n_ubatch if device == mx.gpu else min(wanted.n_ubatch, _CPU_CHUNK),
        device=device,
    )
    name = str(mx.device_info().get("device_name", "GPU")) if device == mx.gpu else cpu_name()
    info = ModelInfo(
        path=str(path),
        name=opened.name,
        architecture=str(opened.config["model_type"]),
        quantization=opened.quantization,
        n_params=opened.n_params,
        size_bytes=sum(array.nbytes for array in arrays),
        n_ctx_train=n_ctx_train,
        backend="mlx",
        device=name,
        chat_template=opened.chat_template,
        settings={
            "library": f"MLX {version('mlx')}, mlx-lm {version('mlx-lm')}",
            "device": name,
            "max_rows": wanted.max_rows,
            "n_ctx": min(wanted.n_ctx, _ROOM_TO_MEASURE),
            "type": str(_type(arrays)).removeprefix("mlx.core."),
        },
    )
    return LoadedModel(OnLane(backend), opened.vocabulary, info)


def _type(arrays: list[Any]) -> Any:
    """The element type that everything is computed in."""
    import mlx.core as mx

    return next((array.dtype for array in arrays if mx.issubdtype(array.dtype, mx.floating)), mx.float32)


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
