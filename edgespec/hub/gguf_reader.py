"""Steps through a mapped GGUF header; every step is checked against the file's size first."""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass

from edgespec.errors import ModelFileError, UnsupportedModelError
from edgespec.hub.ggml_types import BLOCKS, REMOVED
from edgespec.hub.reference import visible

Value = str | int | float | bool | tuple[int | float, ...]
KnownLists = dict[tuple[int, bytes], int]
"""(number of texts, how the list begins) -> its bytes, for lists that were stepped through before."""

_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRUCTS = {kind: struct.Struct(form) for kind, form in _SCALARS.items()}
_STRING, _ARRAY = 8, 9
_MAX_STRINGS = 1 << 22  # in all lists together: far above any vocabulary, and bounds the time taken
_MAX_TENSORS = 1 << 16
_MAX_DIMENSIONS = 4
_MAX_SHORT_LIST = 1 << 10
_MAX_TEXT = 1 << 10
_MAX_TEMPLATE = 1 << 18
_MAX_KEPT = 1 << 20  # bytes of texts and lists in all
_BEGINNING = 512
MOST_MAPPED = 1 << 28
"""Bytes of a file that are mapped to read its header; real ones take a few megabytes."""

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_SHAPES = [struct.Struct(f"<{n}QIQ") for n in range(_MAX_DIMENSIONS + 1)]


@dataclass(frozen=True, slots=True)
class Span:
    """A list of `count` texts in the bytes `start` to `end` of a file, each after its length."""

    count: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies: `offset` bytes from the start of the file.

    `shape` is numpy's: the last axis is contiguous.
    """

    name: str
    kind: int
    shape: tuple[int, ...]
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Tensors:
    """`end`: bytes from the start of the tensor data to the end of the last tensor."""

    n: int
    end: int
    n_params: int
    bytes_by_type: dict[int, int]


class Cursor:
    """A position in the file.

    With `known`, a list of texts that begins like one seen before is taken to be as long, if an entry can
    follow there. That is for listings: a file made to deceive could only misname itself.
    """

    def __init__(self, data: mmap.mmap, shown: str, size: int, known: KnownLists | None = None) -> None:
        """`data`: the first bytes of a file of `size`, `MOST_MAPPED` of them at most."""
        self.shown, self.size = shown, size
        self._end = len(data)
        self.at = 4
        self._data, self._known = data, known
        self._strings_left = _MAX_STRINGS
        self._kept = 0
        self.n_pairs, self.metadata = 0, slice(0, 0)

    def check_tensor_count(self, n: int) -> None:
        if n > _MAX_TENSORS:
            raise self.damaged(f"claims {n:,} tensors")

    def pairs(self, n: int) -> tuple[dict[str, Value], dict[str, Span]]:
        """The metadata: values that are worth keeping, and where the lists of texts are."""
        values: dict[str, Value] = {}
        lists: dict[str, Span] = {}
        start = self.at
        for _ in range(n):
            key = self.text(_MAX_TEXT)
            value = self._value(self.u32(), _MAX_TEMPLATE if "chat_template" in key else _MAX_TEXT)
            if value is None or not self._keep(key, value):
                continue
            if isinstance(value, Span):
                lists[key] = value
            else:
                values[key] = value
        self.n_pairs, self.metadata = n, slice(start, self.at)
        return values, lists

    def _keep(self, key: str, value: Value | Span) -> bool:
        self._kept += len(key) + (8 * len(value) if isinstance(value, tuple) else len(str(value)))
        return self._kept <= _MAX_KEPT

    def tensors(self, n: int) -> Tensors:
        """The list of tensors, none of which is looked at."""
        end = n_params = 0
        sizes: dict[int, int] = {}
        data, at, last = self._data, self.at, self._end
        for _ in range(n):
            self.at = at
            if at + 12 > last or (name := at + 8 + _U64.unpack_from(data, at)[0]) + 4 > last:
                self.text(0)
                self.u32()
            n_dimensions = _U32.unpack_from(data, name)[0]
            if n_dimensions > _MAX_DIMENSIONS:
                raise self.damaged(f"has a tensor of {n_dimensions:,} dimensions")
            form = _SHAPES[n_dimensions]
            at = name + 4 + form.size
            if at > last:
                self.at = name + 4
                self.take(form.size)
            *shape, kind, offset = form.unpack_from(data, name + 4)
            count = 1
            for extent in shape:
                count *= extent
            values, block_bytes = BLOCKS.get(kind) or self._refuse(kind)
            if shape and shape[0] % values:
                raise self.damaged(f"has tensor {self._name()} with rows of {shape[0]:,} values")
            n_bytes = count // values * block_bytes
            n_params += count
            sizes[kind] = sizes.get(kind, 0) + n_bytes
            if offset + n_bytes > end:
                end = offset + n_bytes
        self.at = at
        return Tensors(n, end, n_params, sizes)

    def infos(self, n: int, start: int) -> tuple[TensorInfo, ...]:
        """The same list, tensor by tensor; their data begins at `start`. To be called after `tensors`."""
        self.at = self.metadata.stop
        found: list[TensorInfo] = []
        for _ in range(n):
            name, n_dimensions = self.text(_MAX_TEXT), self.u32()
            form = _SHAPES[n_dimensions]
            *shape, kind, offset = form.unpack_from(self._data, self.take(form.size))
            values, block_bytes = BLOCKS[kind]
            size = math.prod(shape) // values * block_bytes
            found.append(TensorInfo(name, kind, tuple(reversed(shape)), start + offset, size))
        return tuple(found)

    def _refuse(self, kind: int) -> tuple[int, int]:
        known = REMOVED.get(kind)
        what = (
            f"the quantization {known}, which llama.cpp no longer has"
            if known
            else f"unsupported type {kind}"
        )
        raise UnsupportedModelError(
            f"{self.shown} has tensors of {what} ({self._name()}): unsupported here, get another quantization"
        )

    def _name(self) -> str:
        """The tensor's name at the position."""
        return visible(self.text(_MAX_TEXT))

    def _value(self, kind: int, most: int) -> Value | Span | None:
        """The next value; None for long lists of numbers, which are stepped over."""
        if kind == _STRING:
            return self.text(most)
        if kind == _ARRAY:
            return self._list()
        if kind not in _STRUCTS:
            raise self.damaged(f"has metadata of unknown type {kind}")
        form = _STRUCTS[kind]
        value: int | float = form.unpack_from(self._data, self.take(form.size))[0]
        return value

    def _list(self) -> Value | Span | None:
        kind, count = self.u32(), self.u64()
        if kind in _STRUCTS:
            start = self.take(_STRUCTS[kind].size * count)
            if count > _MAX_SHORT_LIST:
                return None
            return struct.unpack_from(f"<{count}{_SCALARS[kind][1]}", self._data, start)
        if kind != _STRING:
            raise self.damaged(f"has an array of type {kind}")
        if count > self._strings_left:
            raise self.damaged(f"claims a list of {count:,} texts")
        start = self.at
        self._skip_strings(count)
        return Span(count, start, self.at)

    def _skip_strings(self, count: int) -> None:
        start = self.at
        if self._known is None:
            self._walk_strings(count)
            return
        beginning = (count, self._data[start : start + _BEGINNING])
        length = self._known.get(beginning)
        if length is not None and self._entry_follows(start + length):
            self.at = start + length
            return
        self._walk_strings(count)
        self._known[beginning] = self.at - start

    def _walk_strings(self, count: int) -> None:
        self._strings_left -= count
        data, at, last, read = self._data, self.at, self._end - 8, _U64.unpack_from
        for _ in range(count):
            if at > last:
                at += 8
                break
            at += 8 + read(data, at)[0]
        self.at = 0
        self.take(at)

    def _entry_follows(self, at: int) -> bool:
        """Is there the name of a metadata entry or of a tensor?"""
        if at + 16 > self._end:
            return False
        length = _U64.unpack_from(self._data, at)[0]
        name = self._data[at + 8 : at + 8 + min(length, 128)]
        return 3 < length <= 128 and b"." in name and name.isascii() and name.decode().isprintable()

    def text(self, most: int) -> str:
        """The next string, cut after the first `most` bytes."""
        length = self.u64()
        at = self.take(length)
        return self._data[at : at + min(length, most)].decode("utf-8", "replace")

    def u32(self) -> int:
        value: int = _U32.unpack_from(self._data, self.take(4))[0]
        return value

    def u64(self) -> int:
        value: int = _U64.unpack_from(self._data, self.take(8))[0]
        return value

    def take(self, n: int) -> int:
        """Step over n bytes; where they begin."""
        at = self.at
        if n > self._end - at:
            if n <= self.size - at:
                raise self.damaged(f"is longer than {MOST_MAPPED:,} bytes")
            raise ModelFileError(
                f"{self.shown} needs at least {at + n:,} bytes, has {self.size:,}: "
                "it is cut off inside its header, download it again"
            )
        self.at = at + n
        return at

    def damaged(self, what: str) -> ModelFileError:
        return ModelFileError(f"{self.shown} is damaged: its header {what}; download it again")


def padded(n: int, alignment: int) -> int:
    return (n + alignment - 1) // alignment * alignment
