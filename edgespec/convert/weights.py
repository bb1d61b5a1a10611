"""The weights of a GGUF file, mapped: its blocks as they are, or as float32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import ModelFileError, UnsupportedModelError
from edgespec.hub.gguf import layout
from edgespec.hub.gguf_reader import TensorInfo
from edgespec.types import FloatArray

Bytes = NDArray[np.uint8]
VOCABULARY = "vocabulary.gguf"
"""Where folders keep what `Weights.vocabulary_file` gives."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """`kind`: name of its type, such as "Q4_0". `shape`: numpy's, so that a weight is [outputs, inputs].

    `blocks`: the bytes of the file, `[*shape[:-1], bytes of a row]`, a view into the mapped file.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    blocks: Bytes

    def float32(self, rows: slice = slice(None)) -> FloatArray:
        """What the blocks stand for, `[rows, ...]`. Raises UnsupportedModelError for unknown types."""
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        blocks = np.ascontiguousarray(self.blocks[rows])
        if self.kind == "F32":
            return blocks.view("<f4")
        if self.kind == "F16":
            return blocks.view("<f2").astype(np.float32)
        try:
            return np.asarray(dequantize(blocks, GGMLQuantizationType[self.kind]), np.float32)
        except NotImplementedError:
            raise UnsupportedModelError(
                f"weights of type {self.kind} ({self.name}) cannot be converted: get another quantization"
            ) from None


class Weights:
    """The tensors of one file by name. `facts`: its metadata that is no list; texts are cut after 1 KiB.

    Raises ModelFileError where the file is missing or damaged, UnsupportedModelError for a type that is
    unknown here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._layout = found = layout(path)
        self.facts = found.facts
        self.architecture = found.header.architecture
        self.quantization = found.header.quantization
        self._infos = {info.name: info for info in found.tensors}
        self._data = np.memmap(path, np.uint8, "r")

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __getitem__(self, name: str) -> Tensor:
        try:
            info = self._infos[name]
        except KeyError:
            raise ModelFileError(f"{self.path.name} has no tensor {name}") from None
        return Tensor(name, _kind(info), info.shape, self._blocks(info))

    def number(self, key: str, default: float | None = None) -> float:
        """A number of the metadata under the architecture's name. Raises ModelFileError without one."""
        value = self.facts.get(f"{self.architecture}.{key}", default)
        if isinstance(value, str) or value is None:
            raise ModelFileError(f"{self.path.name} does not say its {self.architecture}.{key}")
        return value

    def vocabulary_file(self) -> bytes:
        """A GGUF file with all of the metadata and no weights: the vocabulary and the chat template."""
        found = self._layout
        head = b"GGUF" + np.array([found.header.version], "<u4").tobytes()
        return head + np.array([0, found.n_pairs], "<u8").tobytes() + self._data[found.metadata].tobytes()

    def _blocks(self, info: TensorInfo) -> Bytes:
        leading = info.shape[:-1]
        row = info.size // int(np.prod(leading, dtype=np.int64)) if info.size else 0
        return self._data[info.offset : info.offset + info.size].reshape(*leading, row)


def _kind(info: TensorInfo) -> str:
    from gguf import GGMLQuantizationType

    return GGMLQuantizationType(info.kind).name
