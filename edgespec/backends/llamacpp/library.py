"""llama.cpp as llama-cpp-python brings it: one lazy import, and the few functions it leaves unbound."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from edgespec.backends.llama.library import Errors, Library, capture_log, spin_briefly

LOAD_MODES = {"auto": -1, "none": 0, "mmap": 1, "mlock": 2}

_GPU_DEVICES = (1, 2)


@cache
def library() -> Library:
    """The library, initialised, its log captured. The first call takes about 0.4 s."""
    spin_briefly()
    from llama_cpp import llama_cpp as native

    def is_control(_: Any, vocab: Any, token: int) -> bool:
        return bool(native.llama_vocab_is_control(vocab, token))

    errors = Errors()
    log = capture_log(native._lib, errors)
    native.llama_backend_init()
    version = native.llama_version().decode()
    return Library("llamacpp", "llama.cpp", version, native, native._lib, is_control, errors, log)


@dataclass(frozen=True, slots=True)
class Gpu:
    """`free`: bytes of its memory that nobody had taken when this was asked."""

    name: str
    free: int


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that this build of the library can use."""
    library()
    try:
        from llama_cpp._ggml import libggml as ggml

        size = ctypes.c_size_t
        ggml.ggml_backend_dev_count.restype = size
        ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
        ggml.ggml_backend_dev_get.argtypes = [size]
        ggml.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
        ggml.ggml_backend_dev_description.argtypes = [ctypes.c_void_p]
        ggml.ggml_backend_dev_description.restype = ctypes.c_char_p
        ggml.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p, ctypes.POINTER(size), ctypes.POINTER(size)]
        ggml.ggml_backend_dev_memory.restype = None
        found: list[Gpu] = []
        for i in range(ggml.ggml_backend_dev_count()):
            device = ggml.ggml_backend_dev_get(i)
            if ggml.ggml_backend_dev_type(device) in _GPU_DEVICES:
                free, total = size(), size()
                ggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
                name = ggml.ggml_backend_dev_description(device).decode("utf-8", "replace")
                found.append(Gpu(name, free.value))
        return tuple(found)
    except (ImportError, AttributeError, OSError):
        return ()


@cache
def gpu_names() -> tuple[str, ...]:
    """Descriptions of these GPUs."""
    return tuple(gpu.name for gpu in gpus())


@cache
def has_amx() -> bool:
    """Was this library built to use the matrix unit of this processor?"""
    library()
    try:
        from llama_cpp._ggml import libggml

        return bool(libggml.ggml_cpu_has_amx_int8())
    except (ImportError, AttributeError, OSError):
        return False
