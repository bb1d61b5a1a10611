"""Models on ONNX Runtime. Importing this is cheap; the native library is loaded by the first `load`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from edgespec.backends.onnx.folder import find_graph, refusal
from edgespec.backends.onnx.load import load

__all__ = ["load", "missing", "refuses"]


def missing() -> str | None:
    for module in ("onnxruntime", "onnx"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: pip install 'edgespec[onnx]'"
    return None


def refuses(path: Path) -> str | None:
    return None if find_graph(path) else refusal(path)
