"""Garbage collection without long pauses, which a screen full of widgets would otherwise cause."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


def _set_aside(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()


@contextlib.contextmanager
def short_pauses() -> Iterator[None]:
    """Within: what survives a full collection is left out of the next, so each looks at new objects only."""
    gc.collect()
    gc.freeze()
    gc.callbacks.append(_set_aside)
    try:
        yield
    finally:
        gc.callbacks.remove(_set_aside)
        gc.unfreeze()


def look_at_all() -> None:
    """Let the next full collection look at everything: much may have died."""
    gc.unfreeze()
