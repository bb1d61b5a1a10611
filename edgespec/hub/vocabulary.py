"""Two vocabularies compared in their files, without building either."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from edgespec.hub.gguf_reader import Span

FIRST_COMPARED = 5
_CHUNK = 1 << 20
_U64 = struct.Struct("<Q")


def first_difference(a: Path, a_list: Span, b: Path, b_list: Span) -> int | None:
    """The first id from `FIRST_COMPARED` on whose texts differ, among those both have; None if none does."""
    if b_list.count < a_list.count:
        a, a_list, b, b_list = b, b_list, a, a_list
    if a_list.count <= FIRST_COMPARED:
        return None
    with _mapped(a, a_list.end) as one, _mapped(b, b_list.end) as other:
        start, begin = _after(one, a_list.start), _after(other, b_list.start)
        if _same(one, start, other, begin, a_list.end - start):
            return None
        return _walk(one, start, other, begin, a_list.count)


def shared(a: Path, a_list: Span, b: Path, b_list: Span) -> float:
    """The share of b's texts that are also a's."""
    with _mapped(a, a_list.end) as one, _mapped(b, b_list.end) as other:
        known = set(_texts(one, a_list))
        return sum(text in known for text in _texts(other, b_list)) / max(b_list.count, 1)


def _texts(data: mmap.mmap, listed: Span) -> Iterator[bytes]:
    at = listed.start
    for _ in range(listed.count):
        start = at + 8
        at = start + _U64.unpack_from(data, at)[0]
        yield data[start:at]


def _mapped(path: Path, length: int) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)


def _after(data: mmap.mmap, at: int) -> int:
    """Where the first text that is compared begins."""
    for _ in range(FIRST_COMPARED):
        at += 8 + _U64.unpack_from(data, at)[0]
    return at


def _same(one: mmap.mmap, start: int, other: mmap.mmap, begin: int, length: int) -> bool:
    for at in range(0, length, _CHUNK):
        n = min(_CHUNK, length - at)
        if one[start + at : start + at + n] != other[begin + at : begin + at + n]:
            return False
    return True


def _walk(one: mmap.mmap, start: int, other: mmap.mmap, begin: int, count: int) -> int | None:
    for token in range(FIRST_COMPARED, count):
        n = 8 + _U64.unpack_from(one, start)[0]
        if one[start : start + n] != other[begin : begin + n]:
            return token
        start, begin = start + n, begin + n
    return None
