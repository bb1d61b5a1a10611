"""Which execution providers compute, and why others do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edgespec.backends.onnx.signature import Signature
from edgespec.errors import BackendError

CPU = "CPUExecutionProvider"
_PREFERRED = (
    "CUDAExecutionProvider",
    "ROCMExecutionProvider",
    "DmlExecutionProvider",
    "CoreMLExecutionProvider",
)
DEVICES = {
    "CUDAExecutionProvider": "cuda",
    "ROCMExecutionProvider": "cuda",
    "DmlExecutionProvider": "dml",
}
"""Where a provider keeps its cache; all others share the memory of the processor."""


def choose(
    available: list[str], found: Signature, n_gpu_layers: int, notify: Callable[[str], None]
) -> list[str]:
    """In order of preference, the processor last. Float32 attention has no kernel on GPUs."""
    if n_gpu_layers == 0:
        return [CPU]
    wanted = [name for name in _PREFERRED if name in available]
    if wanted and found.shared and found.cached is np.float32:
        notify(f"{short(wanted[0])} has no attention for the float32 cache of this graph: the CPU is used")
        return [CPU]
    return [*wanted, CPU]


def open_session(make: Callable[[list[str]], Any], names: list[str], notify: Callable[[str], None]) -> Any:
    """A session; where the first provider is refused, or silently left out, this is said.

    Raises BackendError.
    """
    try:
        session = make(names)
    except Exception as error:
        reason = str(error).splitlines()[0]
        if names == [CPU]:
            raise BackendError(f"ONNX Runtime cannot load the graph: {reason}") from error
        notify(f"{short(names[0])} failed ({reason}): the CPU is used")
        return open_session(make, [CPU], notify)
    active = session.get_providers()
    if active[0] != names[0]:
        notify(f"{short(names[0])} is not available here: {short(active[0])} is used")
    return session


def short(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider")
