"""Several branches in one pass: positions by depth, for the model classes where that is all it takes."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from edgespec.backends.mlx.caches import Pass

CLASSES = frozenset(
    f"mlx_lm.models.{name}" for name in ("llama", "qwen2", "qwen3", "gemma", "gemma2", "granite", "olmo2")
)
"""Modules of mlx-lm whose layers learn positions from `self_attn.rope` and order from the mask alone."""


class DepthRope(nn.Module):  # type: ignore[misc]
    """Rotary positions where rows of a tree are as far along as they are deep: siblings share a position."""

    def __init__(self, rope: Any, now: Pass) -> None:
        super().__init__()
        self._rope, self._pass = rope, now

    def __call__(self, x: mx.array, offset: Any = 0) -> Any:
        """`x`: `[1, heads, rows, head size]`."""
        depths = self._pass.depths
        if depths is None:
            return self._rope(x, offset=offset)
        # Offsets go by the first axis, so each row becomes a sequence of its own.
        return self._rope(x.transpose(2, 1, 0, 3), offset=offset + depths).transpose(2, 1, 0, 3)


def allow(model: Any, now: Pass) -> bool:
    """Prepare a model for trees; False where its class is not known to take them."""
    if type(model).__module__ not in CLASSES:
        return False
    for layer in model.layers:
        layer.self_attn.rope = DepthRope(layer.self_attn.rope, now)
    return True
