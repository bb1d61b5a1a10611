"""Unified memory: what a model may take of it. Needs MLX when imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx_lm.utils import maybe_set_recommended_wired_limit

from edgespec.errors import BackendError

_MUCH = 0.9


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes: `recommended` is what the system lets the GPU use without paging, `total` all there is."""

    recommended: int
    total: int


def limits(facts: Mapping[str, Any]) -> Limits | None:
    """From what MLX says of its device; None where the device has no memory limits of its own."""
    recommended, total = facts.get("max_recommended_working_set_size"), facts.get("memory_size")
    if not recommended:
        return None
    return Limits(int(recommended), int(total or recommended))


def check(needed: int, found: Limits, shown: str, notify: Callable[[str], None] | None) -> None:
    """Raises BackendError where weights of `needed` bytes do not fit into the memory at all."""
    if needed > found.total:
        raise BackendError(
            f"{shown} needs {_gigabytes(needed)} and this machine has {_gigabytes(found.total)}: "
            "take a smaller model or quantisation"
        )
    if needed > _MUCH * found.recommended and notify:
        notify(
            f"{shown} takes {_gigabytes(needed)} of the {_gigabytes(found.recommended)} that the GPU may "
            "use: it may be slow"
        )


def hold(found: Limits) -> None:
    """Keep weights in memory while this process runs, and allocations within what the GPU may use."""
    maybe_set_recommended_wired_limit()
    mx.set_memory_limit(found.recommended)


def _gigabytes(n: int) -> str:
    return f"{n / 1e9:.1f} GB"
