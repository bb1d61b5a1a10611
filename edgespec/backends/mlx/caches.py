"""The caches of mlx-lm's models: what can be dropped from them, and how. Needs MLX when imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.models.cache import KVCache, _BaseCache, make_prompt_cache

from edgespec.backends.base import Rollback
from edgespec.errors import RollbackError


@dataclass(slots=True)
class Pass:
    """What the layers must know of the pass that is being computed.

    `seen`: `[rows, rows]`, the rows that each row of a tree sees; None for a chain. `depths`: `[rows]`, its
    distance from the end of the cache. `poll` is called after every layer and may raise to stop.
    """

    seen: mx.array | None = None
    depths: mx.array | None = None
    poll: Callable[[], None] | None = None


class LayerCache(KVCache):  # type: ignore[misc]
    """One layer's keys and values, which a pass may branch in and can be stopped at."""

    def __init__(self, now: Pass) -> None:
        super().__init__()
        self._pass = now

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> Any:
        fetched = super().update_and_fetch(keys, values)
        if self._pass.poll is not None:
            mx.eval(self.keys, self.values)
            self._pass.poll()
        return fetched

    def make_mask(self, N: int, **how: Any) -> Any:
        seen = self._pass.seen
        if seen is None:
            return super().make_mask(N, **how)
        return mx.concatenate([mx.ones((N, self.offset), mx.bool_), seen], axis=1)

    def keep(self, start: int, rows: mx.array) -> None:
        """Of what lies behind `start` keep these rows, moved together."""
        end = start + rows.size
        keys, values = self.keys[..., start + rows, :], self.values[..., start + rows, :]
        self.keys[..., start:end, :] = keys
        self.values[..., start:end, :] = values
        self.offset = end


class Caches:
    """All layers' caches. Each is asked anew what it can do."""

    def __init__(self, model: Any, now: Pass) -> None:
        self._model, self._pass = model, now
        self.clear()

    def clear(self) -> None:
        """Empty caches."""
        made = make_prompt_cache(self._model)
        self.layers = [LayerCache(self._pass) if type(cache) is KVCache else cache for cache in made]
        self._saved: list[tuple[Any, Any]] = []
        self._offsets: list[int] = []

    def close(self) -> None:
        self._model, self.layers, self._saved = None, [], []

    @property
    def only_plain(self) -> bool:
        """Is every layer's cache one that rows can branch in?"""
        return all(isinstance(cache, LayerCache) for cache in self.layers)

    def rollback(self, rows: int) -> Rollback:
        """What can be done after a pass of so many rows."""
        if all(_stays_trimmable(cache, rows) for cache in self.layers):
            return "exact"
        return "checkpoint" if all(map(_can_be_saved, self.layers)) else "none"

    def arrays(self) -> list[Any]:
        """What must be computed before the next pass."""
        return [cache.state for cache in self.layers if not cache.empty()]

    def mark(self, rows: int, *, save: bool) -> None:
        """Remember the caches before a pass of so many rows; `save`: copy what cannot be trimmed."""
        self._offsets = [getattr(cache, "offset", 0) for cache in self.layers]
        self._saved = [
            (cache, tree_map(_copied, cache.state) if save else None)
            for cache in self.layers
            if not _stays_trimmable(cache, rows)
        ]

    @property
    def trims(self) -> bool:
        """Can rows behind the mark be dropped by trimming alone?"""
        return not self._saved

    def reset(self) -> None:
        """Back to the mark. Raises RollbackError where a cache neither trims nor was saved."""
        restored = {id(cache) for cache, _ in self._saved}
        for cache, state in self._saved:
            if state is None:
                raise RollbackError("this model's cache cannot drop rows")
            cache.state = state
        for cache, offset in zip(self.layers, self._offsets, strict=True):
            if id(cache) not in restored:
                _trim(cache, cache.offset - offset)
        self._saved = []

    def cut(self, n: int) -> None:
        """Drop the last n tokens of every layer. Raises RollbackError before anything is dropped."""
        if not all(cache.is_trimmable() for cache in self.layers):
            raise RollbackError("this model's cache cannot drop rows now")
        for cache in self.layers:
            _trim(cache, n)

    def keep(self, start: int, rows: list[int]) -> None:
        """Of what lies behind `start` keep these rows; only where `only_plain`."""
        chosen = mx.array(rows, mx.int32)
        for cache in self.layers:
            cache.keep(start, chosen)
        mx.eval(self.arrays())


def _stays_trimmable(cache: Any, rows: int) -> bool:
    """Could these rows still be trimmed after they were appended? A window that is full forgets."""
    if hasattr(cache, "caches"):
        return all(_stays_trimmable(part, rows) for part in cache.caches)
    window = getattr(cache, "max_size", None)
    return bool(cache.is_trimmable()) and (window is None or cache.offset + rows < window)


def _can_be_saved(cache: Any) -> bool:
    return isinstance(cache, _BaseCache) and type(cache).state is not _BaseCache.state


def _copied(leaf: Any) -> Any:
    """Another array on the same memory, which stays as it is when the first is written to."""
    return mx.array(leaf) if isinstance(leaf, mx.array) else leaf


def _trim(cache: Any, n: int) -> None:
    if n and cache.trim(n) != n:
        raise RollbackError(f"a layer's cache did not drop {n} rows")
