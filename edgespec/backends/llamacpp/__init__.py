"""Models on llama.cpp. Importing this is cheap; the native library is loaded by the first `load`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from edgespec.backends.llamacpp.load import load

__all__ = ["load", "missing", "refuses"]


def missing() -> str | None:
    if importlib.util.find_spec("llama_cpp") is None:
        return "llama-cpp-python is not installed: pip install llama-cpp-python"
    return None


def refuses(path: Path) -> str | None:
    return f"{path.name} is a folder, llama.cpp loads GGUF files" if path.is_dir() else None
