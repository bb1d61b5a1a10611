"""The native library: one lazy import, its log, and the few functions its Python package leaves unbound."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

KV_TYPES = {
    "f32": 0,
    "f16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q5_0": 6,
    "q5_1": 7,
    "q8_0": 8,
    "iq4_nl": 20,
    "bf16": 30,
}
"""Cache element types by name, as ggml numbers them."""

LOAD_MODES = {"auto": -1, "none": 0, "mmap": 1, "mlock": 2}

_ERROR_LEVEL = 4
_CONTINUE_LEVEL = 5
_GPU_DEVICES = (1, 2)

# The native log is process-wide, so its last error lines are too.
_errors: deque[str] = deque(maxlen=20)


def _collector() -> Callable[[int, bytes | None, object], None]:
    error, line = False, ""

    def receive(level: int, text: bytes | None, _: object) -> None:
        nonlocal error, line
        if level != _CONTINUE_LEVEL:
            error, line = level == _ERROR_LEVEL, ""
        line += (text or b"").decode("utf-8", "replace")
        if error and line.endswith("\n") and line.strip():
            _errors.append(line.strip())
            line = ""

    return receive


def _spin_briefly() -> None:
    """Threads of libgomp spin for milliseconds while they wait, and beside one busy process a pass then takes
    seconds. A short spin costs nothing on a quiet machine. Read when the library loads; the user's own wins.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = "1000"


@cache
def library() -> Any:
    """The module `llama_cpp.llama_cpp`, initialised, its log captured. The first call takes about 0.4 s."""
    _spin_briefly()
    from llama_cpp import llama_cpp as native

    callback = native.llama_log_callback(_collector())
    native._edgespec_log = callback  # a collected callback would crash the process
    native.llama_log_set(callback, ctypes.c_void_p(0))
    native.llama_backend_init()
    return native


def clear_errors() -> None:
    _errors.clear()


def last_errors() -> list[str]:
    """Error lines that the library logged since `clear_errors`, oldest first."""
    return list(_errors)


@cache
def gpu_names() -> tuple[str, ...]:
    """Descriptions of the GPUs that this build of the library can use."""
    library()
    try:
        from llama_cpp._ggml import libggml

        libggml.ggml_backend_dev_count.restype = ctypes.c_size_t
        libggml.ggml_backend_dev_get.restype = ctypes.c_void_p
        libggml.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
        libggml.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
        libggml.ggml_backend_dev_description.argtypes = [ctypes.c_void_p]
        libggml.ggml_backend_dev_description.restype = ctypes.c_char_p
        devices = [libggml.ggml_backend_dev_get(i) for i in range(libggml.ggml_backend_dev_count())]
        return tuple(
            libggml.ggml_backend_dev_description(device).decode("utf-8", "replace")
            for device in devices
            if libggml.ggml_backend_dev_type(device) in _GPU_DEVICES
        )
    except (ImportError, AttributeError, OSError):
        return ()


@cache
def native_flag_test() -> int | None:
    """Address of a C function that tells whether a C string is empty: an abort test that needs no Python.

    None where the C library cannot be reached.
    """
    try:
        libc = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
        return ctypes.cast(libc.strlen, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


@cache
def has_amx() -> bool:
    """Was this library built to use the matrix unit of this processor?"""
    library()
    try:
        from llama_cpp._ggml import libggml

        return bool(libggml.ggml_cpu_has_amx_int8())
    except (ImportError, AttributeError, OSError):
        return False
