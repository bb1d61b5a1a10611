"""The cache of keys and values: one buffer that is past and present at once, or arrays that grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from edgespec.backends.onnx.signature import Signature


class Cache(Protocol):
    """Positions below `length` are committed; a pass writes behind them."""

    def bind(self, binding: Any, length: int) -> None:
        """Before a pass: bind pasts, and presents as the first outputs."""
        ...

    def collect(self, binding: Any) -> None:
        """After a pass."""
        ...

    def keep(self, length: int, rows: Sequence[int]) -> None:
        """Move what these rows of the last pass wrote to the places behind `length`."""
        ...


class SharedCache:
    """A buffer of fixed capacity for each tensor. Cutting costs nothing: a shorter mask does it."""

    def __init__(self, runtime: Any, found: Signature, capacity: int, device: str) -> None:
        self._found, self._bound = found, False
        self._arrays: list[Any] = []
        self._values: list[Any] = []
        for cache in found.caches:
            shape = (1, cache.heads, capacity, cache.size)
            if device == "cpu":
                self._arrays.append(np.zeros(shape, found.cached))
                self._values.append(runtime.OrtValue.ortvalue_from_numpy(self._arrays[-1]))
            else:
                value = runtime.OrtValue.ortvalue_from_shape_and_type(shape, found.cached, device, 0)
                self._values.append(value)

    def bind(self, binding: Any, length: int) -> None:
        if self._bound:
            return
        self._bound = True
        for cache, value in zip(self._found.caches, self._values, strict=True):
            binding.bind_ortvalue_input(cache.past, value)
            binding.bind_ortvalue_output(cache.present, value)

    def collect(self, binding: Any) -> None:
        pass

    def keep(self, length: int, rows: Sequence[int]) -> None:
        if list(rows) == list(range(len(rows))):
            return
        source = [length + row for row in rows]
        for array in self._arrays:
            array[:, :, length : length + len(rows)] = array[:, :, source]


class GrowingCache:
    """For graphs that return the past with the new rows appended: cutting copies it."""

    def __init__(self, runtime: Any, found: Signature, device: str) -> None:
        self._runtime, self._found, self._device = runtime, found, device
        self._values = [
            runtime.OrtValue.ortvalue_from_numpy(np.zeros((1, cache.heads, 0, cache.size), found.cached))
            for cache in found.caches
        ]
        self._held = 0

    def bind(self, binding: Any, length: int) -> None:
        if self._held != length:
            self._cut(slice(length))
        for cache, value in zip(self._found.caches, self._values, strict=True):
            binding.bind_ortvalue_input(cache.past, value)
            binding.bind_output(cache.present, self._device)

    def collect(self, binding: Any) -> None:
        self._values = binding.get_outputs()[: len(self._values)]
        self._held = self._values[0].shape()[2]

    def keep(self, length: int, rows: Sequence[int]) -> None:
        if list(rows) != list(range(len(rows))):
            self._cut([*range(length), *(length + row for row in rows)])

    def _cut(self, positions: Any) -> None:
        arrays = [np.ascontiguousarray(value.numpy()[:, :, positions]) for value in self._values]
        self._values = [self._runtime.OrtValue.ortvalue_from_numpy(array) for array in arrays]
        self._held = arrays[0].shape[2]
