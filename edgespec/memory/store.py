"""Token ids of past answers and of files, in SQLite: bounded, for this user only."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import EdgespecError
from edgespec.history.files import is_damaged, prepare

Ids = NDArray[np.int32]

MOST_BYTES = 64 << 20
_PATIENCE = 2.0
_SPARE = 32
"""When it is full, one part in so many is freed at once."""
_VERSION = 2
_SCHEMA = f"""
PRAGMA auto_vacuum = FULL;
CREATE TABLE IF NOT EXISTS answers (
  id INTEGER PRIMARY KEY, model TEXT NOT NULL, name TEXT NOT NULL, used INTEGER NOT NULL,
  tokens BLOB NOT NULL, file TEXT
);
CREATE INDEX IF NOT EXISTS answers_used ON answers (used);
CREATE INDEX IF NOT EXISTS answers_model ON answers (model);
PRAGMA user_version = {_VERSION};
"""
_FROM_1 = "ALTER TABLE answers ADD COLUMN file TEXT"
_NOW = "(SELECT coalesce(max(used), 0) + 1 FROM answers)"


class MemoryStoreError(EdgespecError):
    """The memory cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept for one model. `size` is bytes."""

    model: str
    answers: int
    files: int
    size: int


def location() -> Path:
    """In a folder of its own in `EDGESPEC_DATA`, or in the user's data directory."""
    import platformdirs

    root = os.environ.get("EDGESPEC_DATA") or platformdirs.user_data_dir("edgespec", appauthor=False)
    return Path(root) / "memory" / "answers.db"


class Store:
    """The texts of one model, told by its fingerprint; `name` is what people call it.

    Every call opens the file anew, so that any number of processes may use it, and one that was cleared
    stays so. A damaged file is thrown away: all in it can be said or added again. Raises MemoryStoreError.
    """

    def __init__(
        self, model: str, name: str, where: Path | None = None, most_bytes: int = MOST_BYTES
    ) -> None:
        self._model, self._name, self._most = model, name, most_bytes
        self._path = where or location()

    def load(self, most: int = -1) -> list[tuple[int, Ids]]:
        """(number, token ids) of the texts, or of so many, the last used first. Makes no file."""
        if not self._path.exists():
            return []
        with _opened(self._path) as db:
            rows = db.execute(  # +: by the index of uses, so that the latest are had without reading all
                "SELECT id, tokens FROM answers WHERE +model = ? ORDER BY used DESC LIMIT ?",
                (self._model, most),
            )
            return [
                (number, np.frombuffer(tokens, "<i4").astype(np.int32))
                for number, tokens in rows
                if isinstance(tokens, bytes) and len(tokens) % 4 == 0
            ]

    def add(self, tokens: Sequence[int]) -> int:
        """Keep an answer; what was of no use for longest gives way. Returns its number."""
        with _opened(self._path) as db:
            number = self._insert(db, tokens, None)
            self._bound(db)
            return number

    def add_file(self, file: str, parts: Iterable[Sequence[int] | Ids]) -> None:
        """Keep a file, all of it or nothing, instead of what was kept under its name before."""
        with _opened(self._path) as db:
            db.execute("DELETE FROM answers WHERE model = ? AND file = ?", (self._model, file))
            for part in parts:
                self._insert(db, part, file)
            self._bound(db)

    def _insert(self, db: sqlite3.Connection, tokens: Sequence[int] | Ids, file: str | None) -> int:
        sql = f"INSERT INTO answers (model, name, used, tokens, file) VALUES (?, ?, {_NOW}, ?, ?)"
        blob = np.asarray(tokens, "<i4").tobytes()
        return db.execute(sql, (self._model, self._name, blob, file)).lastrowid or 0

    def used(self, numbers: Sequence[int]) -> None:
        """These texts have just been of use."""
        with _opened(self._path) as db:
            sql = f"UPDATE answers SET used = {_NOW} WHERE id = ? AND model = ?"
            db.executemany(sql, [(number, self._model) for number in numbers])

    def _bound(self, db: sqlite3.Connection) -> None:
        page, pages, free = (
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
        over = (pages - free) * page - self._most
        if over <= 0:
            return
        over += self._most // _SPARE
        for number, size in db.execute("SELECT id, length(tokens) FROM answers ORDER BY used").fetchall():
            if over <= 0:
                break
            db.execute("DELETE FROM answers WHERE id = ?", (number,))
            over -= size


def kept(where: Path | None = None) -> list[Kept]:
    """What is kept, model by model. Raises MemoryStoreError."""
    path = where or location()
    if not path.exists():
        return []
    with _opened(path) as db:
        sql = (
            "SELECT max(name), sum(file IS NULL), count(DISTINCT file), sum(length(tokens)) AS size"
            " FROM answers GROUP BY model ORDER BY size DESC"
        )
        return [Kept(*row) for row in db.execute(sql)]


def clear(where: Path | None = None) -> bool:
    """Delete all of it. Returns whether there was anything. Raises MemoryStoreError."""
    path = where or location()
    try:
        there = path.exists()
        for part in (path, path.with_name(path.name + "-journal")):
            part.unlink(missing_ok=True)
    except OSError as error:
        raise MemoryStoreError(f"cannot delete {path}: {error.strerror or error}") from error
    return there


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction. Raises MemoryStoreError; a damaged file is deleted before."""
    try:
        prepare(path)
        with contextlib.closing(sqlite3.connect(path, timeout=_PATIENCE)) as db:
            db.execute("PRAGMA secure_delete = ON")
            _upgrade(db)
            with db:
                yield db
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, sqlite3.Error) and is_damaged(error):
            with contextlib.suppress(MemoryStoreError):
                clear(path)
            raise MemoryStoreError(
                f"the memory {path} was damaged: it begins anew, without what was just to be kept"
            ) from error
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise MemoryStoreError(f"the memory {path} cannot be used: {why}") from error


def _upgrade(db: sqlite3.Connection) -> None:
    """The tables, as this version has them."""
    if _version(db) == 0:
        db.executescript(_SCHEMA)
    if _version(db) == 1:
        with db:
            db.execute("BEGIN IMMEDIATE")
            if _version(db) == 1:  # no other process did it meanwhile
                db.execute(_FROM_1)
                db.execute(f"PRAGMA user_version = {_VERSION}")


def _version(db: sqlite3.Connection) -> int:
    found: int = db.execute("PRAGMA user_version").fetchone()[0]
    return found
