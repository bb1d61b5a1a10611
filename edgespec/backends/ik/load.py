"""Open a GGUF file with ik_llama.cpp."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgespec.backends.base import LoadedModel, LoadOptions, Rollback
from edgespec.backends.device import cpu_name
from edgespec.backends.ik.library import library
from edgespec.backends.llama import opening
from edgespec.backends.llama.library import KV_TYPES, Library
from edgespec.errors import UnsupportedModelError

_MOST_ROWS = 31
"""From 32 rows on the library computes otherwise: rows differ from single ones, and Q4_1 is wrong."""


def load(path: Path | str, options: LoadOptions) -> LoadedModel:
    """Load a model and make a context for one sequence.

    Where rows need not be exact the weights are rearranged at run time: passes are faster, and a single row
    takes another kernel than several. Raises ModelFileError, UnsupportedModelError, UsageError, BackendError,
    or Cancelled when `progress` returned False.
    """
    path, repack = Path(path), not options.exact
    options = replace(options, n_ubatch=min(options.n_ubatch, _MOST_ROWS))
    opening.check_file(path)
    lib = library()
    params = lib.native.llama_model_default_params()
    params.n_gpu_layers = max(options.n_gpu_layers, 0)
    params.use_mmap = options.load_mode in ("auto", "mmap") and not repack
    params.use_mlock = options.load_mode == "mlock"
    params.repack_tensors = repack
    model = opening.load_model(lib, path, params, options)
    try:
        if lib.native.llama_model_has_encoder(model) or not lib.native.llama_model_has_decoder(model):
            raise UnsupportedModelError(f"{path.name}: unsupported, it is not a decoder-only model")
        return _open(lib, model, path, options, repack)
    except BaseException:
        lib.native.llama_model_free(model)
        raise


def _open(lib: Library, model: Any, path: Path, options: LoadOptions, repack: bool) -> LoadedModel:
    native = lib.native
    flash = options.flash_attn is not False
    type_k, type_v = options.type_k or "f16", options.type_v or "f16"
    opening.check_cache_types(flash, type_k, type_v)
    sizes = opening.sizes(options, native.llama_model_n_ctx_train(model))
    recurrent = bool(native.llama_model_is_recurrent(model) or native.llama_model_is_hybrid(model))

    params = native.llama_context_default_params()
    opening.set_sizes(params, sizes)
    params.n_seq_max = 1
    params.flash_attn = flash
    params.type_k, params.type_v = KV_TYPES[type_k], KV_TYPES[type_v]
    context = opening.make_context(lib, model, path, params)
    rollback: Rollback = "none" if recurrent else "exact"
    return opening.opened(
        lib,
        model,
        context,
        path,
        sizes,
        rollback=rollback,
        quantization=_quantization(native, model),
        device=cpu_name(),
        settings={
            "cpu": cpu_name(),
            "load_mode": options.load_mode,
            "type_k": type_k,
            "type_v": type_v,
            "flash_attn": flash,
            "repack": repack,
        },
    )


def _quantization(native: Any, model: Any) -> str:
    """The description reads: architecture, size, file type."""
    buffer = ctypes.create_string_buffer(256)
    native.llama_model_desc(model, buffer, len(buffer))
    words = buffer.value.decode("utf-8", "replace").split(" ", 2)
    return words[2].split(" - ")[0] if len(words) == 3 else "unknown"
