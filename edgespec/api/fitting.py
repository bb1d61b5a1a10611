"""The memory that is free here, and what of a target and its draft fits into it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from edgespec import hub
from edgespec.api.fit import Room, fit, usual_context
from edgespec.api.memory import free_memory
from edgespec.api.pairing import Pair
from edgespec.backends.base import LoadOptions
from edgespec.errors import BackendError, DraftError


def fitted(
    target: hub.Opened,
    pair: Pair,
    small: Pair,
    backend: str,
    options: LoadOptions,
    notify: Callable[[str], None],
) -> tuple[LoadOptions, Pair]:
    """Options with which all fit into memory; a draft that nobody asked for is left out if it does not.

    Raises BackendError or DraftError, with the numbers.
    """
    if target.header is None:
        return options, pair
    room = free_room(backend, options)
    if pair.path is not None and not pair.asked:
        whole = replace(options, n_ctx=options.n_ctx or usual_context(target.header))
        try:
            fit(target.header, pair.header, whole, room, lambda _: None)
        except (BackendError, DraftError):
            short = "there is not enough free memory for it beside the model and its context"
            pair = pair.without(f"{pair.path.name} is left out: {short}")
            notify(f"no draft model: {pair.reason}")
    return fit(target.header, pair.header, options, room, notify, small.header), pair


def free_room(backend: str, options: LoadOptions) -> Room:
    """Free memory for this backend. A Mac's GPU has none of its own."""
    host = free_memory()
    if backend != "llamacpp" or options.n_gpu_layers == 0 or sys.platform == "darwin":
        return Room(host)
    from edgespec.backends.llamacpp.library import gpus

    return Room(host, sum(gpu.free for gpu in gpus()))
