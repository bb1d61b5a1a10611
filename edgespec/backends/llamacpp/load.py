"""Open a GGUF file: parameters, errors in one line, and what the file says about itself."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgespec.backends.base import LoadedModel, LoadOptions, ModelInfo, Rollback
from edgespec.backends.llamacpp.amx import amx_is_safe
from edgespec.backends.llamacpp.backend import LlamaBackend
from edgespec.backends.llamacpp.device import cpu_name, usable_cores
from edgespec.backends.llamacpp.library import (
    KV_TYPES,
    LOAD_MODES,
    clear_errors,
    gpu_names,
    last_errors,
    library,
)
from edgespec.backends.llamacpp.vocabulary import LlamaVocabulary
from edgespec.errors import BackendError, Cancelled, ModelFileError, UnsupportedModelError, UsageError

DEFAULT_CONTEXT = 4096
_MAX_SEQUENCES = 256
_ROOM_TO_MEASURE = 512
"""Contexts from here on measure alike."""


def load(path: Path | str, options: LoadOptions, *, repack: bool | None = None) -> LoadedModel:
    """Load a model and make a context for one sequence.

    `repack` lets the library rearrange weights for this CPU; None where that is safe. Raises ModelFileError,
    UnsupportedModelError, UsageError, BackendError, or Cancelled when `progress` returned False.
    """
    path = Path(path)
    _check_file(path)
    native = library()
    if repack is None:
        repack = amx_is_safe()
    model = _load_model(native, path, options, repack)
    try:
        _check_kind(native, model, path)
        return _open(native, model, path, options, repack)
    except BaseException:
        native.llama_model_free(model)
        raise


def _threads(asked: int | None, notify: Callable[[str], None] | None) -> int:
    """More threads than cores only wait for each other, and very many end the process."""
    cores = usable_cores()
    if asked is not None and asked > cores and notify:
        notify(f"{asked} threads are more than the {cores} cores here: {cores} are used")
    return min(asked or cores, cores)


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror or error}") from error
    if magic != b"GGUF":
        raise ModelFileError(f"{path} is not a GGUF file")


def _load_model(native: Any, path: Path, options: LoadOptions, repack: bool) -> Any:
    params = native.llama_model_default_params()
    params.n_gpu_layers = options.n_gpu_layers
    params.load_mode = LOAD_MODES[options.load_mode]
    params.use_extra_bufts = repack
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

    params.progress_callback = native.llama_progress_callback(progress)
    clear_errors()
    model = native.llama_model_load_from_file(os.fsencode(path), params)
    if model:
        return model
    if raised:
        raise raised[0]
    if refused:
        raise Cancelled(f"loading {path.name} was cancelled")
    raise _load_error(path, last_errors())


def _load_error(path: Path, lines: list[str]) -> Exception:
    """The cause in one line, from what the library logged."""
    log = "\n".join(lines)
    if match := re.search(r"unknown (?:model )?architecture:? '?([^'\n]*)'?", log):
        return UnsupportedModelError(
            f"{path.name}: the architecture '{match[1]}' is unsupported by this llama.cpp, not corrupt"
        )
    if match := re.search(r"tensor '([^']+)'.* invalid ggml type (\d+)", log):
        return UnsupportedModelError(
            f"{path.name}: quantisation type {match[2]} (tensor {match[1]}) is unsupported by this llama.cpp"
        )
    if match := re.search(r"unknown pre-tokenizer type: '([^']*)'", log):
        return UnsupportedModelError(
            f"{path.name}: the tokenizer '{match[1]}' is unsupported by this llama.cpp"
        )
    cause = next((line for line in lines if "error loading model" in line), lines[0] if lines else "")
    cause = re.sub(r"^\w+: (error loading model: )?", "", cause) or "llama.cpp gave no reason"
    if "alloc" in log.lower() or "memory" in log.lower():
        return BackendError(f"{path.name}: {cause}")
    return ModelFileError(f"{path.name} cannot be loaded: {cause}")


def _check_kind(native: Any, model: Any, path: Path) -> None:
    if native.llama_model_has_encoder(model) or not native.llama_model_has_decoder(model):
        raise UnsupportedModelError(f"{path.name}: unsupported, it is not a decoder-only model")
    if native.llama_model_is_diffusion(model):
        raise UnsupportedModelError(
            f"{path.name}: unsupported, a diffusion model does not decode token by token"
        )
    if native.llama_vocab_n_tokens(native.llama_model_get_vocab(model)) <= 0:
        raise UnsupportedModelError(f"{path.name}: unsupported, the file has no vocabulary")


def _cache_types(options: LoadOptions, flash_on_cpu: bool) -> tuple[str, str]:
    """On a CPU equal types would send single rows over 256 tokens down another kernel than several rows."""
    kinds = (options.type_k or "f16", options.type_v or ("bf16" if flash_on_cpu else "f16"))
    for kind in kinds:
        if kind not in KV_TYPES:
            raise UsageError(f"unknown cache type {kind!r}: use one of {', '.join(KV_TYPES)}")
    return kinds


def _open(native: Any, model: Any, path: Path, options: LoadOptions, repack: bool) -> LoadedModel:
    gpus = gpu_names() if options.n_gpu_layers else ()
    flash = options.flash_attn is not False
    type_k, type_v = _cache_types(options, flash and not gpus)
    if not flash and type_v not in ("f16", "f32", "bf16"):
        raise UsageError(f"a cache of values in {type_v} needs flash attention")
    if (
        min(
            options.n_batch, options.n_ubatch, options.max_rows, 1 if options.n_ctx is None else options.n_ctx
        )
        < 1
    ):
        raise UsageError("context, batch sizes and rows must be positive")
    n_ctx_train = native.llama_model_n_ctx_train(model)
    n_ctx = options.n_ctx or min(n_ctx_train or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
    if options.notify and n_ctx_train and n_ctx > n_ctx_train:
        options.notify(
            f"a context of {n_ctx} tokens is more than the {n_ctx_train} this model was trained on"
        )
    recurrent = bool(native.llama_model_is_recurrent(model) or native.llama_model_is_hybrid(model))
    n_batch = min(options.n_batch, n_ctx)
    n_ubatch = min(options.n_ubatch, n_batch)
    max_rows = min(options.max_rows, n_ubatch)
    n_threads = _threads(options.n_threads, options.notify)
    n_threads_batch = _threads(options.n_threads_batch or options.n_threads, None)

    params = native.llama_context_default_params()
    params.n_ctx = n_ctx
    params.n_batch = n_batch
    params.n_ubatch = n_ubatch
    params.n_seq_max = 1 if recurrent else min(max_rows, _MAX_SEQUENCES)
    params.n_outputs_max = max_rows
    params.n_threads = n_threads
    params.n_threads_batch = n_threads_batch
    params.flash_attn_type = int(flash)
    params.type_k, params.type_v = KV_TYPES[type_k], KV_TYPES[type_v]
    params.offload_kqv = True
    params.swa_full = True  # a full-size window cache can be rolled back
    params.kv_unified = True
    params.no_perf = True
    clear_errors()
    context = native.llama_init_from_model(model, params)
    if not context:
        raise BackendError(f"{path.name}: no context of {n_ctx} tokens: {_reason(last_errors())}")
    rollback: Rollback = "checkpoint" if recurrent else "exact"
    backend = LlamaBackend(
        model,
        context,
        n_ctx=min(n_ctx, native.llama_n_ctx_seq(context)),
        max_rows=max_rows,
        rollback=rollback,
    )
    settings: dict[str, str | int | bool] = {
        "library": f"llama.cpp {native.llama_version().decode()}",
        "cpu": cpu_name(),
        "n_threads": n_threads,
        "n_threads_batch": n_threads_batch,
        "max_rows": max_rows,
        "n_ctx": min(n_ctx, _ROOM_TO_MEASURE),
        "n_gpu_layers": options.n_gpu_layers if gpus else 0,
        "load_mode": options.load_mode,
        "type_k": type_k,
        "type_v": type_v,
        "flash_attn": flash,
        "repack": repack,
    }
    info = ModelInfo(
        path=str(path),
        name=_meta(native, model, "general.name") or path.stem,
        architecture=_meta(native, model, "general.architecture") or "unknown",
        quantization=_quantization(native, model),
        n_params=native.llama_model_n_params(model),
        size_bytes=native.llama_model_size(model),
        n_ctx_train=n_ctx_train,
        backend="llamacpp",
        device=" + ".join(gpus) or cpu_name(),
        chat_template=_text(native.llama_model_chat_template(model, None)),
        settings=settings,
    )
    return LoadedModel(backend, LlamaVocabulary(model), info)


def _reason(lines: list[str]) -> str:
    return re.sub(r"^\w+: ", "", lines[-1]) if lines else "llama.cpp gave no reason"


def _text(value: bytes | None) -> str | None:
    return value.decode("utf-8", "replace") if value else None


def _quantization(native: Any, model: Any) -> str:
    name = _text(native.llama_ftype_name(native.llama_model_ftype(model))) or "unknown"
    return name.removesuffix(" - Medium").removesuffix(" - Small").removesuffix(" - Large")


def _meta(native: Any, model: Any, key: str) -> str | None:
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
