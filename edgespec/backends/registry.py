"""The backends by name: packages with the functions of `Adapter`. Only the one that is used is imported."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Protocol, cast

from edgespec.backends.base import LoadedModel, LoadOptions

ADAPTERS = {
    "llamacpp": "edgespec.backends.llamacpp",
    "ik": "edgespec.backends.ik",
    "mlx": "edgespec.backends.mlx",
    "onnx": "edgespec.backends.onnx",
}


class Adapter(Protocol):
    """What a backend's package offers. Only `load` may import the library underneath."""

    def missing(self) -> str | None:
        """None where the library is installed, else one line that says how to install it."""
        ...

    def refuses(self, path: Path) -> str | None:
        """None where the file or folder looks like one it can load, else why not. Reads headers only."""
        ...

    def load(self, path: Path, options: LoadOptions) -> LoadedModel:
        """Raises ModelFileError, UnsupportedModelError, UsageError, BackendError or Cancelled."""
        ...


def adapter(name: str) -> Adapter:
    """The adapter of a name in `ADAPTERS`."""
    return cast(Adapter, importlib.import_module(ADAPTERS[name]))
