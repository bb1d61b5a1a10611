"""Open a GGUF file: sizes, errors in one line, and what the file says about itself."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgespec.backends.base import LoadedModel, LoadOptions, ModelInfo, Rollback
from edgespec.backends.device import usable_cores
from edgespec.backends.llama.backend import LlamaBackend
from edgespec.backends.llama.library import KV_TYPES, Library
from edgespec.backends.llama.vocabulary import LlamaVocabulary
from edgespec.errors import BackendError, Cancelled, ModelFileError, UnsupportedModelError, UsageError

DEFAULT_CONTEXT = 4096
_ROOM_TO_MEASURE = 512
"""Contexts from here on measure alike."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of the context, a call, a computation; rows of logits; threads for one row and for several."""

    n_ctx: int
    n_batch: int
    n_ubatch: int
    max_rows: int
    n_threads: int
    n_threads_batch: int


def check_file(path: Path) -> None:
    """Raises ModelFileError unless the file is there and begins as GGUF does."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror or error}") from error
    if magic != b"GGUF":
        raise ModelFileError(f"{path} is not a GGUF file")


def load_model(library: Library, path: Path, params: Any, options: LoadOptions) -> Any:
    """A native model. Raises what `Adapter.load` does."""
    raised: list[BaseException] = []
    refused = False

    def progress(fraction: float, _: object) -> bool:
        nonlocal refused
        try:
            refused = options.progress is not None and not options.progress(fraction)
        except BaseException as error:
            raised.append(error)
            refused = True
        return not refused

    params.progress_callback = library.native.llama_progress_callback(progress)
    library.errors.clear()
    model = library.native.llama_model_load_from_file(os.fsencode(path), params)
    if model:
        return model
    if raised:
        raise raised[0]
    if refused:
        raise Cancelled(f"loading {path.name} was cancelled")
    raise _load_error(library.title, path, library.errors.last())


def _load_error(title: str, path: Path, lines: list[str]) -> Exception:
    """The cause in one line, from what the library logged."""
    log = "\n".join(lines)
    if match := re.search(r"unknown (?:model )?architecture:? '?([^'\n]*)'?", log):
        return UnsupportedModelError(
            f"{path.name}: the architecture '{match[1]}' is unsupported by this {title}, not corrupt"
        )
    if match := re.search(r"tensor '([^']+)'.* invalid ggml type (\d+)", log):
        return UnsupportedModelError(
            f"{path.name}: quantisation type {match[2]} (tensor {match[1]}) is unsupported by this {title}"
        )
    if match := re.search(r"unknown pre-tokenizer type: '([^']*)'", log):
        return UnsupportedModelError(
            f"{path.name}: the tokenizer '{match[1]}' is unsupported by this {title}"
        )
    cause = next((line for line in lines if "error loading model" in line), lines[0] if lines else "")
    cause = re.sub(r"^\w+: (error loading model: )?", "", cause) or f"{title} gave no reason"
    if "alloc" in log.lower() or "memory" in log.lower():
        return BackendError(f"{path.name}: {cause}")
    return ModelFileError(f"{path.name} cannot be loaded: {cause}")


def sizes(options: LoadOptions, n_ctx_train: int) -> Sizes:
    """What was asked for, within what is possible. Raises UsageError."""
    asked = (
        options.n_batch,
        options.n_ubatch,
        options.max_rows,
        1 if options.n_ctx is None else options.n_ctx,
    )
    if min(asked) < 1:
        raise UsageError("context, batch sizes and rows must be positive")
    n_ctx = options.n_ctx or min(n_ctx_train or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
    if options.notify and n_ctx_train and n_ctx > n_ctx_train:
        options.notify(
            f"a context of {n_ctx} tokens is more than the {n_ctx_train} this model was trained on"
        )
    n_batch = min(options.n_batch, n_ctx)
    n_ubatch = min(options.n_ubatch, n_batch)
    return Sizes(
        n_ctx,
        n_batch,
        n_ubatch,
        min(options.max_rows, n_ubatch),
        _threads(options.n_threads, options.notify),
        _threads(options.n_threads_batch or options.n_threads, None),
    )


def _threads(asked: int | None, notify: Callable[[str], None] | None) -> int:
    """More threads than cores only wait for each other, and very many end the process."""
    cores = usable_cores()
    if asked is not None and asked > cores and notify:
        notify(f"{asked} threads are more than the {cores} cores here: {cores} are used")
    return min(asked or cores, cores)


def check_cache_types(flash: bool, *kinds: str) -> None:
    """`kinds`: of keys and of values. Raises UsageError."""
    for kind in kinds:
        if kind not in KV_TYPES:
            raise UsageError(f"unknown cache type {kind!r}: use one of {', '.join(KV_TYPES)}")
    if not flash and kinds[-1] not in ("f16", "f32", "bf16"):
        raise UsageError(f"a cache of values in {kinds[-1]} needs flash attention")


def set_sizes(params: Any, s: Sizes) -> None:
    """Into the fields that all libraries of the family have."""
    params.n_ctx = s.n_ctx
    params.n_batch = s.n_batch
    params.n_ubatch = s.n_ubatch
    params.n_threads = s.n_threads
    params.n_threads_batch = s.n_threads_batch


def make_context(library: Library, model: Any, path: Path, params: Any) -> Any:
    """A native context. Raises BackendError."""
    library.errors.clear()
    context = library.native.llama_init_from_model(model, params)
    if not context:
        lines = library.errors.last()
        reason = re.sub(r"^\w+: ", "", lines[-1]) if lines else f"{library.title} gave no reason"
        raise BackendError(f"{path.name}: no context of {params.n_ctx} tokens: {reason}")
    return context


def opened(
    library: Library,
    model: Any,
    context: Any,
    path: Path,
    s: Sizes,
    *,
    rollback: Rollback,
    quantization: str,
    device: str,
    settings: dict[str, str | int | bool],
) -> LoadedModel:
    """The model with its facts; `settings` are those that only this library has."""
    native = library.native
    backend = LlamaBackend(library, model, context, n_ctx=s.n_ctx, max_rows=s.max_rows, rollback=rollback)
    info = ModelInfo(
        path=str(path),
        name=meta(native, model, "general.name") or path.stem,
        architecture=meta(native, model, "general.architecture") or "unknown",
        quantization=quantization,
        n_params=native.llama_model_n_params(model),
        size_bytes=native.llama_model_size(model),
        n_ctx_train=native.llama_model_n_ctx_train(model),
        backend=library.backend,
        device=device,
        chat_template=text(native.llama_model_chat_template(model, None)),
        settings={
            "library": f"{library.title} {library.version}",
            "n_threads": s.n_threads,
            "n_threads_batch": s.n_threads_batch,
            "max_rows": s.max_rows,
            "n_ctx": min(s.n_ctx, _ROOM_TO_MEASURE),
            **settings,
        },
    )
    return LoadedModel(backend, LlamaVocabulary(library, model), info)


def text(value: bytes | None) -> str | None:
    return value.decode("utf-8", "replace") if value else None


def meta(native: Any, model: Any, key: str) -> str | None:
    """A metadata value as text, None where the file has none."""
    size = 256
    while True:
        buffer = ctypes.create_string_buffer(size)
        n: int = native.llama_model_meta_val_str(model, key.encode(), buffer, size)
        if n < 0:
            return None
        if n < size:
            return buffer.value.decode("utf-8", "replace")
        size = n + 1
