"""A native library of the family, its log, and what the C library lends it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
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

MAX_SEQUENCES = 256
"""As the library is built."""

_ERROR_LEVEL = 4
_CONTINUE_LEVEL = 5


class Errors:
    """The error lines that a library logged; its log is process-wide, so these are too."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=20)
        self._is_error, self._line = False, ""

    def receive(self, level: int, text: bytes | None, _: object) -> None:
        """The library's log callback. A line may come in parts."""
        if level != _CONTINUE_LEVEL:
            self._is_error, self._line = level == _ERROR_LEVEL, ""
        self._line += (text or b"").decode("utf-8", "replace")
        if self._is_error and self._line.endswith("\n") and self._line.strip():
            self._lines.append(self._line.strip())
            self._line = ""

    def clear(self) -> None:
        self._lines.clear()

    def last(self) -> list[str]:
        """Lines since `clear`, oldest first."""
        return list(self._lines)


@dataclass(frozen=True, slots=True)
class Library:
    """`native` has the functions under llama.cpp's names, `lib` is the shared library itself.

    `backend`: as the registry has it. `title` names the library to people. `is_control(model, vocab, token)`
    asks the library. `tells_abort`: does an interrupted pass return another status than a whole one?
    `branches`: does attention see a row whose neighbours are hidden from it?
    `log`: the callback behind `errors`, which must live as long.
    """

    backend: str
    title: str
    version: str
    native: Any
    lib: ctypes.CDLL
    is_control: Callable[[Any, Any, int], bool]
    errors: Errors
    log: object
    tells_abort: bool = True
    branches: bool = True


def spin_briefly() -> None:
    """Threads of libgomp spin for milliseconds while they wait, and beside one busy process a pass then takes
    seconds. A short spin costs nothing on a quiet machine. Read when the library loads; the user's own wins.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = "1000"


def capture_log(lib: ctypes.CDLL, errors: Errors) -> Callable[..., object]:
    """Send the library's log to `errors`. The result must be kept: a collected one would crash."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    callback = kind(errors.receive)
    lib.llama_log_set.argtypes = [kind, ctypes.c_void_p]
    lib.llama_log_set.restype = None
    lib.llama_log_set(callback, None)
    return callback


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
