"""Quantisations by the names that people use, and the choice among the files of a repository."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from edgespec.errors import UsageError
from edgespec.hub.reference import RemoteModel, closest, visible

USUAL: Final = "Q4_K_M"
"""What is taken when no quantisation is asked for."""

_BITS: Final[dict[str, float]] = {
    "IQ1_S": 1.6, "IQ1_M": 1.8, "TQ1_0": 1.7, "TQ2_0": 2.1, "IQ2_XXS": 2.1, "IQ2_XS": 2.3, "IQ2_S": 2.5,
    "IQ2_M": 2.7, "Q2_K_S": 2.8, "Q2_K": 3.0, "Q2_K_L": 3.1, "Q2_K_XL": 3.1, "IQ3_XXS": 3.1, "IQ3_XS": 3.3,
    "IQ3_S": 3.5, "Q3_K_S": 3.5, "IQ3_M": 3.7, "Q3_K_M": 3.9, "Q3_K_L": 4.3, "Q3_K_XL": 4.3, "IQ4_XS": 4.3,
    "MXFP4": 4.3, "MXFP4_MOE": 4.3, "NVFP4": 4.5, "IQ4_NL": 4.5, "Q4_0": 4.6, "Q4_K_S": 4.6, "Q4_K": 4.85,
    "Q4_K_M": 4.85, "Q4_K_L": 5.0, "Q4_K_XL": 5.0, "Q4_1": 5.1, "Q5_0": 5.5, "Q5_K_S": 5.5, "Q5_K": 5.7,
    "Q5_K_M": 5.7, "Q5_K_L": 5.8, "Q5_K_XL": 5.8, "Q5_1": 5.9, "Q6_K": 6.6, "Q6_K_L": 6.7, "Q6_K_XL": 6.7,
    "Q8_0": 8.5, "Q8_K_XL": 8.7, "F16": 16.0, "FP16": 16.0, "BF16": 16.0, "F32": 32.0,
}  # fmt: skip
"""Bits a weight, about, of a whole file; only their order and distances matter."""

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.I)
_WORDS = re.compile(r"[A-Za-z0-9_]+")
_NOT_A_MODEL = re.compile(r"(?:^|[-._/])(mmproj|imatrix)(?:[-._]|$)", re.I)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """The files of one model, shards in order, and its quantisation where their name says it."""

    files: tuple[str, ...]
    quantization: str | None

    @property
    def first(self) -> str:
        return self.files[0]

    @property
    def whole(self) -> bool:
        """Are all shards among the files?"""
        match = _SHARD.search(self.first)
        return match is None or len(self.files) == int(match[2])


def quantization_of(name: str) -> str | None:
    """The quantisation that a file's name says, in upper case: the last that occurs."""
    stem = _SHARD.sub("", name)
    return _last(PurePosixPath(stem).name.removesuffix(".gguf")) or _last(stem)


def _last(text: str) -> str | None:
    for word in reversed(_WORDS.findall(text.upper())):
        parts = word.split("_")
        endings = ("_".join(parts[i:]) for i in range(len(parts)))
        if found := next((ending for ending in endings if ending in _BITS), None):
            return normal(found)
    return None


def normal(quantization: str) -> str:
    """One spelling for each: upper case, without a publisher's mark in front."""
    return quantization.upper().removeprefix("UD-").replace("FP16", "F16")


def groups(names: Iterable[str]) -> tuple[FileGroup, ...]:
    """The models among these files, by name; projectors and importance matrices are none."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if name.lower().endswith(".gguf") and not _NOT_A_MODEL.search(name):
            found[_SHARD.sub(r"-of-\2.gguf", name)].append(name)
    return tuple(
        FileGroup(tuple(sorted(files)), quantization_of(files[0])) for _, files in sorted(found.items())
    )


def choose(meant: RemoteModel, names: Iterable[str]) -> FileGroup:
    """The files of the model that is meant; one of another quantisation only where none was asked for.

    Then it is Q4_K_M or the nearest to it in bits. Raises UsageError listing the nearest names when
    nothing fits or more than one model does.
    """
    there = groups(names)
    if meant.file is not None:
        wanted = meant.file.casefold()
        fitting = [group for group in there if wanted in (file.casefold() for file in group.files)]
        if not fitting:
            raise UsageError(f"{meant.repo} has no {visible(meant.file)}: {_instead(meant.file, there)}")
        return fitting[0]
    if not there:
        raise UsageError(f"{meant.repo} holds no GGUF model: look for a repository whose name ends in -GGUF")
    quant = normal(meant.quant) if meant.quant else None
    fitting = [group for group in there if group.quantization == quant] if quant else _nearest(there)
    if not fitting:
        labels = dict.fromkeys(group.quantization or group.first for group in there)
        near = closest(quant or USUAL, labels) or list(labels)[:8]
        raise UsageError(f"{meant.repo} has no {visible(quant or '')}: it has {visible(', '.join(near))}")
    fitting = _unsplit(fitting)
    if len(fitting) > 1:
        several = ", ".join(f"hf:{meant.repo}/{group.first}" for group in fitting[:4])
        raise UsageError(f"{meant} may be several models: give one of {visible(several)}")
    return fitting[0]


def _unsplit(fitting: Sequence[FileGroup]) -> list[FileGroup]:
    """Without the shards of a model that is there in one file too."""
    single = {group.first for group in fitting if len(group.files) == 1}
    return [group for group in fitting if _SHARD.sub(".gguf", group.first) not in single - {group.first}]


def bits(quantization: str | None) -> float:
    """Bits a weight, about; those of the usual quantisation where nothing is known."""
    return _BITS.get(quantization or USUAL, _BITS[USUAL])


def _nearest(there: Sequence[FileGroup]) -> list[FileGroup]:
    exact = [group for group in there if group.quantization == USUAL]
    if exact:
        return exact
    known = [group for group in there if group.quantization] or list(there)
    best = min(known, key=lambda group: (abs(bits(group.quantization) - bits(USUAL)), group.first))
    return [group for group in known if group.quantization == best.quantization]


def _instead(file: str, there: Sequence[FileGroup]) -> str:
    first = [group.first for group in there]
    return (
        f"it has {visible(', '.join(closest(file, first) or first[:3]))}"
        if first
        else "it holds no GGUF model"
    )
