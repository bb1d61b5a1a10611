"""Models on MLX. Importing this is cheap; the library is loaded by the first `load`."""

from __future__ import annotations

import importlib.util

from edgespec.backends.mlx.load import load
from edgespec.backends.mlx.refusal import refuses

__all__ = ["load", "missing", "refuses"]


def missing() -> str | None:
    if any(importlib.util.find_spec(name) is None for name in ("mlx", "mlx_lm")):
        return "MLX is not installed: pip install 'edgespec[mlx]' (macOS on Apple silicon, or Linux)"
    return None
