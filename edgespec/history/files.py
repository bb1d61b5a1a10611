"""Where the history lies, and what happens to a file that is damaged."""

from __future__ import annotations

import os
import sqlite3
from datetime import datetime
from pathlib import Path

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BESIDE = ("", "-wal", "-shm")


def location() -> Path:
    """In a folder of its own in `EDGESPEC_DATA`, or in the user's data directory."""
    import platformdirs

    root = os.environ.get("EDGESPEC_DATA") or platformdirs.user_data_dir("edgespec", appauthor=False)
    return Path(root) / "history" / "conversations.db"


def prepare(path: Path) -> None:
    """The folder and an empty file, for this user only. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def is_damaged(error: sqlite3.Error) -> bool:
    """Does the error say that the file, not the request, is wrong?"""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and (code & 0xFF) in _DAMAGED


def identity(path: Path) -> tuple[int, int] | None:
    """Tells whether a path still means the same file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def set_aside(path: Path, damaged: tuple[int, int] | None) -> Path | None:
    """Rename the damaged file with the date, and what belongs to it. Returns its new name.

    None if another process has done it: the path then means another file. Raises OSError.
    """
    if damaged is None or identity(path) != damaged:
        return None
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    aside = path.with_name(f"{path.stem}-damaged-{stamp}{path.suffix}")
    while aside.exists():
        aside = aside.with_name(f"{aside.stem}x{aside.suffix}")
    for end in reversed(_BESIDE):
        part = path.with_name(path.name + end)
        if part.exists():
            part.rename(aside.with_name(aside.name + end))
    return aside
