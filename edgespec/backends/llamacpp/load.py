"""Open a GGUF file with llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgespec.backends.base import LoadedModel, LoadOptions, Rollback
from edgespec.backends.device import cpu_name
from edgespec.backends.llama import opening
from edgespec.backends.llama.library import KV_TYPES, MAX_SEQUENCES, Library
from edgespec.backends.llamacpp.amx import amx_is_safe
from edgespec.backends.llamacpp.library import LOAD_MODES, gpu_names, library
from edgespec.errors import UnsupportedModelError


def load(path: Path | str, options: LoadOptions, *, repack: bool | None = None) -> LoadedModel:
    """Load a model and make a context for one sequence.

    `repack` lets the library rearrange weights for this CPU; None where that is safe. Raises ModelFileError,
    UnsupportedModelError, UsageError, BackendError, or Cancelled when `progress` returned False.
    """
    path = Path(path)
    opening.check_file(path)
    lib = library()
    if repack is None:
        repack = amx_is_safe()
    params = lib.native.llama_model_default_params()
    params.n_gpu_layers = options.n_gpu_layers
    params.load_mode = LOAD_MODES[options.load_mode]
    params.use_extra_bufts = repack
    model = opening.load_model(lib, path, params, options)
    try:
        _check_kind(lib.native, model, path)
        return _open(lib, model, path, options, repack)
    except BaseException:
        lib.native.llama_model_free(model)
        raise


def _check_kind(native: Any, model: Any, path: Path) -> None:
    if native.llama_model_has_encoder(model) or not native.llama_model_has_decoder(model):
        raise UnsupportedModelError(f"{path.name}: unsupported, it is not a decoder-only model")
    if native.llama_model_is_diffusion(model):
        raise UnsupportedModelError(
            f"{path.name}: unsupported, a diffusion model does not decode token by token"
        )
    if native.llama_vocab_n_tokens(native.llama_model_get_vocab(model)) <= 0:
        raise UnsupportedModelError(f"{path.name}: unsupported, the file has no vocabulary")


def _open(lib: Library, model: Any, path: Path, options: LoadOptions, repack: bool) -> LoadedModel:
    native = lib.native
    gpus = gpu_names() if options.n_gpu_layers else ()
    flash = options.flash_attn is not False
    type_k = options.type_k or "f16"
    # On a CPU equal types would send single rows over 256 tokens down another kernel than several rows.
    type_v = options.type_v or ("bf16" if flash and not gpus else "f16")
    opening.check_cache_types(flash, type_k, type_v)
    sizes = opening.sizes(options, native.llama_model_n_ctx_train(model))
    recurrent = bool(native.llama_model_is_recurrent(model) or native.llama_model_is_hybrid(model))

    params = native.llama_context_default_params()
    opening.set_sizes(params, sizes)
    params.n_seq_max = 1 if recurrent else min(sizes.max_rows + 1, MAX_SEQUENCES)
    params.n_outputs_max = max(sizes.max_rows, params.n_seq_max)
    params.flash_attn_type = int(flash)
    params.type_k, params.type_v = KV_TYPES[type_k], KV_TYPES[type_v]
    params.offload_kqv = True
    params.swa_full = True  # a full-size window cache can be rolled back
    params.kv_unified = True
    params.no_perf = True
    context = opening.make_context(lib, model, path, params)
    rollback: Rollback = "checkpoint" if recurrent else "exact"
    return opening.opened(
        lib,
        model,
        context,
        path,
        sizes,
        rollback=rollback,
        quantization=_quantization(native, model),
        device=" + ".join(gpus) or cpu_name(),
        settings={
            "cpu": cpu_name(),
            "n_gpu_layers": options.n_gpu_layers if gpus else 0,
            "load_mode": options.load_mode,
            "type_k": type_k,
            "type_v": type_v,
            "flash_attn": flash,
            "repack": repack,
        },
    )


def _quantization(native: Any, model: Any) -> str:
    name = opening.text(native.llama_ftype_name(native.llama_model_ftype(model))) or "unknown"
    return name.removesuffix(" - Medium").removesuffix(" - Small").removesuffix(" - Large")
