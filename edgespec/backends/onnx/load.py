"""Open a folder with a decoder graph: edits, execution providers, limits, and what the folder says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgespec.backends.base import LoadedModel, LoadOptions, ModelInfo
from edgespec.backends.device import cpu_name, usable_cores
from edgespec.backends.onnx.folder import Folder, description
from edgespec.backends.vocabulary import read_vocabulary
from edgespec.errors import Cancelled, UsageError

DEFAULT_CONTEXT = 4096
_ROOM_TO_MEASURE = 512
"""Contexts from here on measure alike."""


def load(path: Path, options: LoadOptions, *, float32: bool = False) -> LoadedModel:
    """Load a folder that holds an ONNX decoder, and make a cache for one sequence.

    `float32` keeps activations as they are, which is slow, instead of rounding them to 8 bits.
    Raises ModelFileError, UnsupportedModelError, UsageError, BackendError or Cancelled.
    """
    from edgespec.backends.onnx import hugepages, providers
    from edgespec.backends.onnx.backend import OnnxBackend
    from edgespec.backends.onnx.cache import GrowingCache, SharedCache
    from edgespec.backends.onnx.edit import SPARE, edit
    from edgespec.backends.onnx.signature import signature

    runtime = _runtime()
    folder = Folder(Path(path))
    notify = options.notify or _silent
    _report(options, folder, 0.0)
    model = folder.graph()
    data = folder.find_data(model)
    found = signature(model.graph, folder.path.name)
    n_ctx, n_threads = _context(options, folder.n_ctx_train, notify), _threads(options, notify)
    wanted = providers.choose(runtime.get_available_providers(), found, options.n_gpu_layers, notify)
    edits = edit(model.graph, found, pad=wanted == [providers.CPU], float32=float32)
    vocabulary, template = read_vocabulary(folder.root, found.n_vocab)
    quantization, n_params = description(model)
    serialised = model.SerializeToString()

    def make(names: list[str]) -> Any:
        settings = _settings(runtime, data, n_threads)
        return runtime.InferenceSession(serialised, settings, providers=names)

    _report(options, folder, 0.1)
    before = hugepages.regions()
    session = providers.open_session(make, wanted, notify)
    _report(options, folder, 0.7)
    hugepages.use_for_what_is_new(before)
    active = session.get_providers()[0]
    device = providers.DEVICES.get(active, "cpu")
    store = SharedCache(runtime, found, n_ctx + SPARE * edits.padded, device) if found.shared else None
    max_rows = min(options.max_rows, n_ctx)
    backend = OnnxBackend(
        runtime,
        session,
        found,
        edits,
        store or GrowingCache(runtime, found, device),
        n_ctx=n_ctx,
        max_rows=max_rows,
    )
    info = ModelInfo(
        path=str(path),
        name=folder.name,
        architecture=folder.architecture,
        quantization=quantization,
        n_params=n_params,
        size_bytes=folder.size(),
        n_ctx_train=folder.n_ctx_train or 0,
        backend="onnx",
        device=cpu_name() if active == providers.CPU else providers.short(active),
        chat_template=template,
        settings={
            "library": f"onnxruntime {runtime.__version__}",
            "cpu": cpu_name(),
            "provider": providers.short(active),
            "n_threads": n_threads,
            "max_rows": max_rows,
            "n_ctx": min(n_ctx, _ROOM_TO_MEASURE),
            "padded": edits.padded,
            "float32": float32,
        },
    )
    _report(options, folder, 1.0)
    return LoadedModel(backend, vocabulary, info)


def _runtime() -> Any:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    return onnxruntime


def _settings(runtime: Any, data: Path, n_threads: int) -> Any:
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = n_threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 4
    entries = {
        "session.model_external_initializers_file_folder_path": str(data),
        # Long enough from one product to the next; longer takes cores from busy neighbours, and from itself.
        "session.intra_op.spin_duration_us": "100",
    }
    for key, value in entries.items():
        settings.add_session_config_entry(key, value)
    return settings


def _context(options: LoadOptions, trained: int | None, notify: Callable[[str], None]) -> int:
    if min(options.max_rows, 1 if options.n_ctx is None else options.n_ctx) < 1:
        raise UsageError("context and rows must be positive")
    n_ctx = options.n_ctx or min(trained or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
    if trained and n_ctx > trained:
        notify(
            f"a context of {n_ctx} tokens is more than the {trained} this model was made for: it is the limit"
        )
    return min(n_ctx, trained or n_ctx)


def _threads(options: LoadOptions, notify: Callable[[str], None]) -> int:
    cores, asked = usable_cores(), options.n_threads
    if asked is not None and asked > cores:
        notify(f"{asked} threads are more than the {cores} cores here: {cores} are used")
    return min(asked or cores, cores)


def _report(options: LoadOptions, folder: Folder, share: float) -> None:
    if options.progress is not None and not options.progress(share):
        raise Cancelled(f"loading {folder.path.name} was cancelled")


def _silent(_: str) -> None:
    pass
