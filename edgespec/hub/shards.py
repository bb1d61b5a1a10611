"""Models in several files, `x-00001-of-00003.gguf`: one model, opened by its first part."""

from __future__ import annotations

import re
from pathlib import Path

from edgespec.errors import ModelFileError
from edgespec.hub.reference import visible

_NAME = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.gguf)", re.I | re.S)
_MOST = 999


def siblings(path: Path) -> tuple[Path, ...]:
    """All files of the model that this file is a part of, in order; links stay links.

    Raises ModelFileError naming what is missing.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        return (path,)
    stem, number, count, suffix = match[1], int(match[2]), int(match[3]), match[4]
    if not 1 <= number <= count or count > _MOST:
        return (path,)
    files = tuple(path.with_name(f"{stem}-{i:05}-of-{count:05}{suffix}") for i in range(1, count + 1))
    if path.is_file():
        missing = [visible(file.name) for file in files if not file.is_file()]
        if missing:
            shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
            raise ModelFileError(
                f"{visible(path)} is one of {count} parts: {shown} is missing beside it, download it too"
            )
    return files if path.is_file() else (path,)


def first(path: Path) -> Path:
    """The file that a backend is given: the first part, whichever part was named."""
    return siblings(path)[0]
