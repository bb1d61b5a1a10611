"""What a look into a store gives."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgespec.hub.quantization import groups

Kind = Literal["edgespec", "huggingface", "lmstudio", "ollama"]
TITLES: Mapping[Kind, str] = {
    "edgespec": "edgespec",
    "huggingface": "Hugging Face cache",
    "lmstudio": "LM Studio",
    "ollama": "Ollama",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A store on this machine: whose it is, and its folder."""

    kind: Kind
    root: Path

    @property
    def title(self) -> str:
        return TITLES[self.kind]


@dataclass(frozen=True, slots=True)
class Found:
    """A model where it is. `name` may be typed to mean it; `files`: its parts, links not resolved.

    `repo`: the Hugging Face repository that it came from, where the store says so, with the `inside` paths of
    the files there. `sha256`: of the only file, where the store says so.
    """

    name: str
    files: tuple[Path, ...]
    place: Place
    quantization: str | None = None
    repo: str | None = None
    inside: tuple[str, ...] = ()
    sha256: str | None = None

    @property
    def path(self) -> Path:
        """The file that stands for the model: the first part."""
        return self.files[0]


def walk(root: Path, depth: int) -> Iterator[str]:
    """Files that end in .gguf under a folder, as paths inside it with slashes; hidden ones are left out.

    Links to folders are followed, no deeper than `depth`. What cannot be read is passed over.
    """
    pending = [("", depth)]
    while pending:
        inside, left = pending.pop()
        try:
            entries = sorted(os.scandir(os.path.join(root, inside)), key=lambda entry: entry.name)  # noqa: PTH118
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.name.lower().endswith(".gguf"):
                yield inside + entry.name
            elif left and entry.is_dir():
                pending.append((f"{inside}{entry.name}/", left - 1))


def in_repository(repo: str, files: Mapping[str, Path], place: Place) -> Iterator[Found]:
    """The models among the files of one repository, named so that typing the name means them."""
    there = groups(files)
    counts = Counter(group.quantization for group in there)
    for group in there:
        plain = group.quantization is not None and counts[group.quantization] == 1
        yield Found(
            name=f"{repo}:{group.quantization}" if plain else f"hf:{repo}/{group.first}",
            files=tuple(files[name] for name in group.files),
            place=place,
            quantization=group.quantization,
            repo=repo,
            inside=group.files,
        )
