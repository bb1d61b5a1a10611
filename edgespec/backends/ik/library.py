"""ik_llama.cpp as ik-llama-cpp-python brings it: functions under llama.cpp's present names, and a check of
its structures, since the library is built from an older llama.h and does not tell its version.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from types import SimpleNamespace
from typing import Any

from edgespec.backends.llama.library import Errors, Library, capture_log, spin_briefly
from edgespec.errors import BackendError

PACKAGE, VERSION = "ik-llama-cpp-python", "0.1.5"
"""Structures of the library change from version to version, and nothing in it tells which it is."""

_SAME = (
    "llama_model_default_params",
    "llama_context_default_params",
    "llama_model_load_from_file",
    "llama_init_from_model",
    "llama_free",
    "llama_decode",
    "llama_batch",
    "llama_progress_callback",
    "ggml_abort_callback",
)
"""Bound by the package as llama.cpp has them."""

_BOUND: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "llama_model_free": ("llama_free_model", None, (c_void_p,)),
    "llama_model_has_encoder": ("llama_model_has_encoder", c_bool, (c_void_p,)),
    "llama_model_has_decoder": ("llama_model_has_decoder", c_bool, (c_void_p,)),
    "llama_model_is_recurrent": ("llama_model_is_recurrent", c_bool, (c_void_p,)),
    "llama_model_is_hybrid": ("llama_model_is_hybrid", c_bool, (c_void_p,)),
    "llama_model_n_ctx_train": ("llama_n_ctx_train", c_int32, (c_void_p,)),
    "llama_model_n_params": ("llama_model_n_params", c_uint64, (c_void_p,)),
    "llama_model_size": ("llama_model_size", c_uint64, (c_void_p,)),
    "llama_model_desc": ("llama_model_desc", c_int32, (c_void_p, c_char_p, c_size_t)),
    "llama_model_chat_template": ("llama_model_chat_template", c_char_p, (c_void_p, c_char_p)),
    "llama_model_meta_val_str": (
        "llama_model_meta_val_str",
        c_int32,
        (c_void_p, c_char_p, c_char_p, c_size_t),
    ),
    "llama_model_get_vocab": ("llama_model_get_vocab", c_void_p, (c_void_p,)),
    "llama_vocab_n_tokens": ("llama_vocab_n_tokens", c_int32, (c_void_p,)),
    "llama_vocab_type": ("llama_vocab_type", c_int, (c_void_p,)),
    "llama_vocab_bos": ("llama_vocab_bos", c_int32, (c_void_p,)),
    "llama_vocab_eos": ("llama_vocab_eos", c_int32, (c_void_p,)),
    "llama_vocab_get_add_bos": ("llama_vocab_get_add_bos", c_bool, (c_void_p,)),
    "llama_vocab_get_text": ("llama_vocab_get_text", c_char_p, (c_void_p, c_int32)),
    "llama_vocab_is_eog": ("llama_vocab_is_eog", c_bool, (c_void_p, c_int32)),
    "llama_tokenize": (
        "llama_vocab_tokenize",
        c_int32,
        (c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool),
    ),
    "llama_token_to_piece": (
        "llama_token_to_piece_vocab",
        c_int32,
        (c_void_p, c_int32, c_char_p, c_int32, c_int32, c_bool),
    ),
    "llama_n_batch": ("llama_n_batch", c_uint32, (c_void_p,)),
    "llama_n_ctx_seq": ("llama_n_ctx", c_uint32, (c_void_p,)),
    "llama_memory_seq_rm": ("llama_kv_cache_seq_rm", c_bool, (c_void_p, c_int32, c_int32, c_int32)),
    "llama_memory_seq_cp": ("llama_kv_cache_seq_cp", None, (c_void_p, c_int32, c_int32, c_int32, c_int32)),
}
"""llama.cpp's name: the function here, its result and its arguments."""


@cache
def library() -> Library:
    """The library, initialised, its log captured. Raises BackendError where it is another build."""
    spin_briefly()
    try:
        from ik_llama_cpp import _ctypes_api as package

        native = _bind(package)
    except (ImportError, OSError, AttributeError) as error:
        raise BackendError(f"ik_llama.cpp cannot be used: {' '.join(str(error).split())}") from error
    _check_structures(native)
    lib, errors = package._lib, Errors()
    token_is_control = _function(lib, "llama_token_is_control", c_bool, c_void_p, c_int32)

    def is_control(model: Any, _: Any, token: int) -> bool:
        return bool(token_is_control(model, token))

    log = capture_log(lib, errors)
    package.llama_backend_init()
    # Its attention skips 128 rows where the first of them is hidden, as a branch may be.
    return Library(
        "ik",
        "ik_llama.cpp",
        VERSION,
        native,
        lib,
        is_control,
        errors,
        log,
        tells_abort=False,
        branches=False,
    )


def _bind(package: Any) -> SimpleNamespace:
    """Raises AttributeError for a function that this build lacks."""
    native = SimpleNamespace(**{name: getattr(package, name) for name in _SAME})
    for name, (here, result, arguments) in _BOUND.items():
        setattr(native, name, _function(package._lib, here, result, *arguments))
    clear = _function(package._lib, "llama_kv_cache_clear", None, c_void_p)
    native.llama_get_memory = lambda context: context
    native.llama_memory_clear = lambda context, _: clear(context)
    native.llama_set_abort_callback = _function(
        package._lib, "llama_set_abort_callback", None, c_void_p, package.ggml_abort_callback, c_void_p
    )
    return native


def _function(lib: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    """A binding of our own, whatever the package has made of the same function."""
    return ctypes.CFUNCTYPE(result, *arguments)((name, lib))


def _check_structures(native: Any) -> None:
    """Defaults that are where they are expected; in another build these would be other bytes."""
    context, model = native.llama_context_default_params(), native.llama_model_default_params()
    found = (
        (context.n_ctx, context.n_batch, context.n_ubatch, context.n_seq_max, context.defrag_thold),
        (context.type_k, context.n_v_last, context.flash_attn, context.mla_attn, context.min_experts),
        (context.mtp, bool(context.abort_callback), context.abort_callback_data, context.cuda_params),
        (model.split_mode, model.n_ubatch, model.n_v_last, bool(model.progress_callback), model.use_mmap),
        (model.use_mlock, model.repack_tensors, model.dry_run, model.flash_attn),
    )
    expected = (
        (512, 2048, 512, 1, -1.0),
        (1, -1, True, 3, -1),
        (False, False, None, None),
        (1, 512, -1, False, True),
        (False, False, False, True),
    )
    if found != expected:
        raise BackendError(
            f"this ik_llama.cpp is another build than edgespec knows: pip install {PACKAGE}=={VERSION}, "
            "and unset IK_LLAMA_CPP_LIB_PATH"
        )
