"""Models on ik_llama.cpp. Importing this is cheap; the native library is loaded by the first `load`."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from edgespec.backends.ik.library import PACKAGE, VERSION
from edgespec.backends.ik.load import load

__all__ = ["load", "missing", "refuses"]


def missing() -> str | None:
    """None where the one version that is known here is installed."""
    try:
        found = metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return f"{PACKAGE} is not installed: pip install {PACKAGE}=={VERSION}"
    if found != VERSION:
        return f"{PACKAGE} {found} is not the version that edgespec knows: pip install {PACKAGE}=={VERSION}"
    return None


def refuses(path: Path) -> str | None:
    return f"{path.name} is a folder, ik_llama.cpp loads GGUF files" if path.is_dir() else None
