"""The header of a GGUF model, checked before anything loads it.

It reads lengths and skips what they cover; nothing is allocated that the file merely asks for.
"""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from edgespec.errors import ModelFileError, UnsupportedModelError
from edgespec.hub.ggml_types import FILE_TYPES, TYPE_NAMES
from edgespec.hub.gguf_reader import MOST_MAPPED, Cursor, KnownLists, Span, TensorInfo, Tensors, Value, padded
from edgespec.hub.magic import recognise
from edgespec.hub.reference import visible
from edgespec.hub.shards import siblings

_MAX_PAIRS = 1 << 15
_NOT_MODELS = {
    "adapter": "a LoRA adapter",
    "mmproj": "a projector for images or sound",
    "clip": "a projector for images or sound",
    "imatrix": "an importance matrix",
    "vocab": "a vocabulary",
}


@dataclass(frozen=True, slots=True)
class Header:
    """What a sound model says of itself; of a sharded one all parts together.

    `size`: bytes up to the end of the last tensor. `file_type` is the number in the file; `quantization` is
    its name, else that of most weights. `metadata` has numbers, texts (cut where long) and short lists of
    numbers; `lists` says where the lists of texts are in the first file.
    """

    version: int
    architecture: str
    name: str | None
    file_type: int | None
    quantization: str | None
    context: int | None
    n_tensors: int
    size: int
    n_params: int
    metadata: Mapping[str, Value]
    lists: Mapping[str, Span]

    def fact(self, key: str) -> Value | None:
        """A value of the architecture, such as "block_count"."""
        return self.metadata.get(f"{self.architecture}.{key}")

    def number(self, key: str, default: int = 0) -> int:
        """A whole number of the architecture."""
        value = whole(self.fact(key))
        return default if value is None else value

    def text(self, key: str) -> str | None:
        """A text by its whole key."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class Layout:
    """One file in detail. `facts`: metadata that is no list; `metadata`: where its `n_pairs` pairs lie."""

    header: Header
    facts: dict[str, str | int | float]
    n_pairs: int
    metadata: slice
    tensors: tuple[TensorInfo, ...]


def check(path: Path, known: KnownLists | None = None) -> Header:
    """The header of a whole model, all shards of it; tensor data is not read.

    `known` makes reading many files quick, see `Cursor`. Raises ModelFileError when a file is missing,
    damaged or something else, UnsupportedModelError when it is sound and no model that can run here.
    """
    files = siblings(path)
    headers: list[Header] = []
    for i, file in enumerate(files):
        with _opened(file, known) as cursor:
            headers.append(_header(cursor, i, len(files)))
    first = headers[0]
    return replace(
        first,
        n_tensors=sum(part.n_tensors for part in headers),
        size=sum(part.size for part in headers),
        n_params=sum(part.n_params for part in headers),
        quantization=next((part.quantization for part in headers if part.quantization), None),
    )


def layout(path: Path) -> Layout:
    """A model in one file with the place of every tensor. Raises as `check`."""
    if len(siblings(path)) > 1:
        raise UnsupportedModelError(f"{visible(path)} is a model in several files: join them with gguf-split")
    with _opened(path, None) as cursor:
        header = _header(cursor, 0, 1)
        scalars = {key: value for key, value in header.metadata.items() if not isinstance(value, tuple)}
        alignment = whole(scalars.get("general.alignment")) or 32
        start = padded(cursor.at, alignment)
        return Layout(header, scalars, cursor.n_pairs, cursor.metadata, cursor.infos(header.n_tensors, start))


@contextmanager
def _opened(path: Path, known: KnownLists | None) -> Iterator[Cursor]:
    """The file, mapped; whatever goes wrong with it is one line."""
    shown = visible(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ModelFileError(f"{shown} is a folder: give the path of a .gguf file")
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{shown} is not a regular file: give the path of a .gguf file")
        if status.st_size == 0:
            raise ModelFileError(f"{shown} is empty: download it again")
        size = status.st_size
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), min(size, MOST_MAPPED), access=mmap.ACCESS_READ) as data,
        ):
            recognise(data[:64], shown)
            yield Cursor(data, shown, size, known)
    except FileNotFoundError:
        raise ModelFileError(f"{shown}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise ModelFileError(
            f"{shown} cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from None


def _header(cursor: Cursor, part: int, n_parts: int) -> Header:
    version, n_tensors, n_pairs = cursor.u32(), cursor.u64(), cursor.u64()
    cursor.check_tensor_count(n_tensors)
    if n_pairs > _MAX_PAIRS:
        raise cursor.damaged(f"claims {n_pairs:,} entries")
    metadata, lists = cursor.pairs(n_pairs)
    _check_part(cursor, metadata, part, n_parts)
    architecture = metadata.get("general.architecture", "" if part else None)
    if not isinstance(architecture, str) or not (architecture or part):
        raise cursor.damaged("names no architecture")
    _check_kind(cursor, metadata, architecture)
    if n_tensors == 0 and n_parts == 1:
        raise ModelFileError(f"{cursor.shown} holds no weights: it is a vocabulary, not a model")
    tensors = cursor.tensors(n_tensors)
    file_type = whole(metadata.get("general.file_type"))
    name = metadata.get("general.name")
    return Header(
        version=version,
        architecture=visible(architecture),
        name=visible(name) if isinstance(name, str) else None,
        file_type=file_type,
        quantization=_mostly(tensors) if file_type is None else FILE_TYPES.get(file_type),
        context=whole(metadata.get(f"{architecture}.context_length")),
        n_tensors=n_tensors,
        size=_check_size(cursor, metadata, tensors),
        n_params=tensors.n_params,
        metadata=metadata,
        lists=lists,
    )


def _check_part(cursor: Cursor, metadata: Mapping[str, Value], part: int, n_parts: int) -> None:
    """Does the file agree with its name on which part of how many it is?"""
    count = whole(metadata.get("split.count")) or 1
    number = whole(metadata.get("split.no")) or 0
    if count > 1 and n_parts == 1:
        raise ModelFileError(
            f"{cursor.shown} is part {number + 1} of {count} of a model: "
            f"its name must end in -{number + 1:05}-of-{count:05}.gguf, with the other parts beside it"
        )
    if n_parts > 1 and (count, number) != (n_parts, part):
        raise ModelFileError(
            f"{cursor.shown} is part {number + 1} of {count}, not what its name says: download it again"
        )


def _check_kind(cursor: Cursor, metadata: Mapping[str, Value], architecture: str) -> None:
    kind = metadata.get("general.type")
    what = _NOT_MODELS.get(kind if isinstance(kind, str) else "") or _NOT_MODELS.get(architecture)
    if what:
        raise UnsupportedModelError(
            f"{cursor.shown} is {what}, not a language model: give the model's own file"
        )


def _check_size(cursor: Cursor, metadata: Mapping[str, Value], tensors: Tensors) -> int:
    """Bytes that the file must have. Raises ModelFileError unless it has just these."""
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
        raise cursor.damaged(f"has alignment {alignment}")
    size = padded(cursor.at, alignment) + tensors.end
    both = f"{cursor.shown} needs {size:,} bytes, has {cursor.size:,}"
    if cursor.size < size and tensors.n:
        raise ModelFileError(f"{both}: it is cut off, download it again")
    if cursor.size > padded(size, alignment):
        raise ModelFileError(f"{both}: something was added to it, download it again")
    return size


def _mostly(tensors: Tensors) -> str | None:
    """The type of most weights, by bytes."""
    if not tensors.bytes_by_type:
        return None
    return TYPE_NAMES[max(tensors.bytes_by_type, key=tensors.bytes_by_type.__getitem__)]


def whole(value: object) -> int | None:
    """The value where it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
