"""Small things kept between runs, all of which can be made again."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    """`EDGESPEC_CACHE`, or the user's cache folder."""
    if chosen := os.environ.get("EDGESPEC_CACHE"):
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("edgespec"))


def write(path: Path, content: bytes) -> None:
    """Replace a file as a whole; where nothing can be written nothing is."""
    import tempfile

    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
