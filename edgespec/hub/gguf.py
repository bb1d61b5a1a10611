"""A check of a GGUF file's header before anything loads it.

It reads lengths and skips what they cover; nothing is allocated that the file merely asks for.
"""

from __future__ import annotations

import mmap
import stat
import struct
from dataclasses import dataclass, replace
from pathlib import Path

from edgespec.errors import ModelFileError, UnsupportedModelError
from edgespec.hub.ggml_types import BLOCKS, FILE_TYPES
from edgespec.hub.reference import visible

_VERSIONS = (2, 3)
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
_SIZES = {kind: struct.calcsize(form) for kind, form in _SCALARS.items()}
_STRING, _ARRAY = 8, 9
_MAX_STRINGS = 1 << 24  # in all lists together: far above any vocabulary, and bounds the time taken
_MAX_TEXT = 1 << 10
_MAX_TENSORS = 1 << 20
_MAX_PAIRS = 1 << 16
_MAX_DIMENSIONS = 4

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Header:
    """What a sound file says of itself. `size`: bytes up to the end of the last tensor.

    `file_type` is the number in the file and `quantization` its name, None where the file has none.
    """

    version: int
    architecture: str
    name: str | None
    file_type: int | None
    quantization: str | None
    context: int | None
    n_tensors: int
    size: int


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
class Layout:
    """`facts`: the metadata without its arrays. `metadata`: where its `n_pairs` pairs lie in the file."""

    header: Header
    facts: dict[str, str | int | float]
    n_pairs: int
    metadata: slice
    tensors: tuple[TensorInfo, ...]


def check(path: Path) -> Header:
    """The header of a whole GGUF file; tensor data is not read.

    Raises ModelFileError when the file is missing, damaged or something else, UnsupportedModelError when
    its version or a tensor type is unknown here.
    """
    return layout(path).header


def layout(path: Path) -> Layout:
    """As `check`, with all that the header says."""
    shown = visible(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ModelFileError(f"{shown} is a folder: give the path of a .gguf file")
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{shown} is not a regular file: give the path of a .gguf file")
        if status.st_size == 0:
            raise ModelFileError(f"{shown} is empty: download it again")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _recognise(data[:64], shown)
            return _Reader(data, shown).layout()
    except FileNotFoundError:
        raise ModelFileError(f"{shown}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise ModelFileError(
            f"{shown} cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from None


def _recognise(start: bytes, shown: str) -> None:
    """Say what the file is when it is not a GGUF file that can be read here."""
    if start[:4] == b"GGUF" and len(start) >= 8:
        little, big = struct.unpack("<I", start[4:8])[0], struct.unpack(">I", start[4:8])[0]
        if little in _VERSIONS:
            return
        if big in (*_VERSIONS, 1):
            raise UnsupportedModelError(f"{shown} is a big-endian GGUF file: get the little-endian one")
        age = "newer" if little > max(_VERSIONS) else "older"
        raise UnsupportedModelError(
            f"{shown} is GGUF version {little}, {age} than the supported {_VERSIONS[0]} and {_VERSIONS[-1]}"
        )
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start[:4] == b"GGUF" or b"GGUF".startswith(start[:4]):
        raise ModelFileError(f"{shown} is cut off inside its header: download it again")
    if start.startswith(b"version https://git-lfs"):
        what, remedy = "a git-lfs pointer, not the model", "run `git lfs pull`, or download the file itself"
    elif text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        what, remedy = "a web page, not a model", "download the file itself, not the page about it"
    elif start.startswith(b"PK\x03\x04"):
        what, remedy = "a zip archive or PyTorch file", "edgespec loads GGUF files"
    elif len(start) > 9 and start[8:9] == b"{" and start[5:8] == b"\0\0\0":
        what, remedy = "a safetensors file", "edgespec loads GGUF files; convert it first"
    elif start[:4] in (b"lmgg", b"fmgg", b"tjgg", b"algg"):
        what, remedy = "an old GGML file from before GGUF", "get the model as GGUF"
    else:
        what, remedy = "not a GGUF file", "edgespec loads GGUF files"
    raise ModelFileError(f"{shown} is {what}: {remedy}")


class _Reader:
    """A position in the mapped file; every step is checked against the file's size first."""

    def __init__(self, data: mmap.mmap, shown: str) -> None:
        self._data, self._shown = data, shown
        self._size = len(data)
        self._at = 4
        self._strings_left = _MAX_STRINGS

    def layout(self) -> Layout:
        version, n_tensors, n_pairs = self._u32(), self._u64(), self._u64()
        if n_tensors > _MAX_TENSORS:
            raise self._damaged(f"claims {n_tensors:,} tensors")
        if n_pairs > _MAX_PAIRS:
            raise self._damaged(f"claims {n_pairs:,} entries")
        if n_tensors == 0:
            raise ModelFileError(f"{self._shown} holds no weights: it is a vocabulary, not a model")
        metadata = self._at
        facts: dict[str, str | int | float] = {}
        for _ in range(n_pairs):
            key, kind = self._text(), self._u32()
            value = self._value(kind)
            if value is not None:
                facts[key] = value
        pairs = slice(metadata, self._at)
        architecture = facts.get("general.architecture")
        if not isinstance(architecture, str) or not architecture:
            raise self._damaged("names no architecture")
        alignment = facts.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
            raise self._damaged(f"has alignment {alignment}")
        infos = [self._tensor() for _ in range(n_tensors)]
        start = _padded(self._at, alignment)
        tensors = tuple(replace(info, offset=start + info.offset) for info in infos)
        size = max(info.offset + info.size for info in tensors)
        if self._size < size:
            raise ModelFileError(
                f"{self._shown} needs {size:,} bytes, has {self._size:,}: it is cut off, download it again"
            )
        if self._size > _padded(size, alignment):
            raise ModelFileError(
                f"{self._shown} needs {size:,} bytes, has {self._size:,}: "
                "something was added to it, download it again"
            )
        file_type = _whole(facts.get("general.file_type"))
        name = facts.get("general.name")
        header = Header(
            version=version,
            architecture=visible(architecture),
            name=visible(name) if isinstance(name, str) else None,
            file_type=file_type,
            quantization=None if file_type is None else FILE_TYPES.get(file_type),
            context=_whole(facts.get(f"{architecture}.context_length")),
            n_tensors=n_tensors,
            size=size,
        )
        return Layout(header, facts, n_pairs, pairs, tensors)

    def _tensor(self) -> TensorInfo:
        """The next tensor in the list; its offset is from the start of the tensor data."""
        name, n_dimensions = self._text(), self._u32()
        if n_dimensions > _MAX_DIMENSIONS:
            raise self._damaged(f"has a tensor of {n_dimensions:,} dimensions")
        shape = [self._u64() for _ in range(n_dimensions)]
        kind, offset = self._u32(), self._u64()
        if kind not in BLOCKS:
            raise UnsupportedModelError(
                f"{self._shown} has tensors of unsupported type {kind} ({visible(name)}): "
                "get another quantization"
            )
        values, block_bytes = BLOCKS[kind]
        if shape and shape[0] % values:
            raise self._damaged(f"has tensor {visible(name)} with rows of {shape[0]:,} values")
        count = 1
        for extent in shape:
            count *= extent
        return TensorInfo(name, kind, tuple(reversed(shape)), offset, count // values * block_bytes)

    def _value(self, kind: int) -> str | int | float | None:
        """The next metadata value; None for arrays, which are stepped over."""
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            self._skip_array()
            return None
        if kind not in _SCALARS:
            raise self._damaged(f"has metadata of unknown type {kind}")
        value: int | float = struct.unpack_from(_SCALARS[kind], self._data, self._take(_SIZES[kind]))[0]
        return value

    def _skip_array(self) -> None:
        kind, count = self._u32(), self._u64()
        if kind in _SIZES:
            self._take(_SIZES[kind] * count)
        elif kind != _STRING:
            raise self._damaged(f"has an array of type {kind}")
        elif count > self._strings_left:
            raise self._damaged(f"claims a list of {count:,} texts")
        else:
            self._skip_strings(count)

    def _skip_strings(self, count: int) -> None:
        self._strings_left -= count
        data, at, last, read = self._data, self._at, self._size - 8, _U64.unpack_from
        for _ in range(count):
            if at > last:
                at += 8
                break
            at += 8 + read(data, at)[0]
        self._at = 0
        self._take(at)

    def _text(self) -> str:
        """The next string, cut after the first `_MAX_TEXT` bytes."""
        length = self._u64()
        at = self._take(length)
        return self._data[at : at + min(length, _MAX_TEXT)].decode("utf-8", "replace")

    def _u32(self) -> int:
        value: int = _U32.unpack_from(self._data, self._take(4))[0]
        return value

    def _u64(self) -> int:
        value: int = _U64.unpack_from(self._data, self._take(8))[0]
        return value

    def _take(self, n: int) -> int:
        """Step over n bytes; where they begin."""
        at = self._at
        if n > self._size - at:
            raise ModelFileError(
                f"{self._shown} needs at least {at + n:,} bytes, has {self._size:,}: "
                "it is cut off inside its header, download it again"
            )
        self._at = at + n
        return at

    def _damaged(self, what: str) -> ModelFileError:
        return ModelFileError(f"{self._shown} is damaged: its header {what}; download it again")


def _padded(n: int, alignment: int) -> int:
    return (n + alignment - 1) // alignment * alignment


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
