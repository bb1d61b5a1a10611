"""Conversations in one SQLite file, which several processes may use at once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from edgespec.errors import EdgespecError
from edgespec.history import files, rows
from edgespec.history.records import Conversation, Entry
from edgespec.history.schema import migrate

PATIENCE = 5.0
"""Seconds to wait for another process's transaction."""
_HELP = {
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_BUSY: "another process holds it; try again",
    sqlite3.SQLITE_ERROR: "SQLite 3.34 or newer with FTS5 is needed",
}
Entries = list[Entry]
_PERHAPS = "SELECT rowid FROM turn_text(?) UNION ALL SELECT id FROM turn WHERE state = 'partial'"
_LATEST = "ORDER BY c.updated DESC, c.id DESC"


class HistoryError(EdgespecError):
    """The history cannot be read or written."""


class RenewedError(HistoryError):
    """The file was damaged; a new one has been begun."""


class NoConversationError(HistoryError):
    """There is no conversation with this number."""


def _ignore(_: str) -> None:
    pass


class History:
    """The file of conversations, opened once; safe for several threads and processes.

    A damaged file is renamed with the date, which `notify` is told, and a new one is begun. A disk that
    cannot be written still lets what is there be read. Raises HistoryError or NewerHistoryError.
    """

    def __init__(self, path: Path | None = None, notify: Callable[[str], None] = _ignore) -> None:
        self.path = path or files.location()
        self._notify = notify
        self._lock = threading.RLock()
        self._db = self._open()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def moved(self) -> bool:
        """The path means another file than when it was opened, or none."""
        return files.identity(self.path) != self._identity

    # Reading

    def list(self, limit: int = -1) -> Entries:
        """The conversations, the latest first."""
        found = self._read(f"{rows.ENTRIES} {_LATEST} LIMIT ?", limit)
        return [rows.entry(row) for row in found]

    def latest(self) -> int | None:
        """The conversation that was used last."""
        return next((entry.id for entry in self.list(1)), None)

    def search(self, text: str, limit: int = -1) -> Entries:
        """Conversations in which one message, or the title, has every word of `text`; the latest first.

        A word is found inside longer ones, in any case. Any text is fit to be searched.
        """
        words = [word.lower() for word in (rows.storable(text) or "").replace("\0", " ").split()]
        if not words:
            return self.list(limit)
        long = [word for word in words if len(word) >= 3]
        holds = " AND ".join("instr(lowered({0}), ?)" for _ in words)
        where = holds.format("t.content")
        if long:
            match = " ".join('"' + word.replace('"', '""') + '"' for word in long)
            where += f" AND t.id IN ({_PERHAPS})"
        found = self._read(
            f"SELECT t.conversation, t.content FROM turn t WHERE {where} ORDER BY t.id",
            *words,
            *([match] if long else []),
        )
        matches = {id: rows.around(content, words[0]) for id, content in found}
        named = self._read(f"SELECT id FROM conversation WHERE {holds.format('title')}", *words)
        wanted = {*matches, *(id for (id,) in named)}
        hits = [rows.entry(row, matches) for row in self._read(f"{rows.ENTRIES} {_LATEST}")]
        hits = [hit for hit in hits if hit.id in wanted]
        return hits if limit < 0 else hits[:limit]

    def load(self, id: int) -> Conversation:
        """A conversation with its messages. Raises NoConversationError."""
        with self._guarded(), self._lock:
            self._db.execute("BEGIN")
            try:
                row = self._db.execute(
                    f"SELECT {rows.CONVERSATION} FROM conversation WHERE id = ?", (id,)
                ).fetchone()
                turns = self._db.execute(
                    f"SELECT {rows.TURN} FROM turn WHERE conversation = ? ORDER BY id", (id,)
                ).fetchall()
            finally:
                self._db.execute("ROLLBACK")
        if row is None:
            raise NoConversationError(f"there is no conversation {id}: 'edgespec history ls' lists them")
        system, model, title, created, updated = row
        return Conversation(tuple(map(rows.turn, turns)), system, model, title, created, updated, id)

    # Writing

    def add(self, conversation: Conversation) -> int:
        """Keep a conversation from elsewhere; returns its number."""
        with self.transaction() as db:
            id = rows.insert_conversation(db, conversation)
            rows.insert_turns(db, id, conversation.turns)
        return id

    def rename(self, id: int, title: str) -> None:
        """An empty title goes back to the first words. Raises NoConversationError."""
        with self.transaction() as db:
            title = " ".join((rows.storable(title) or "").split())
            done = db.execute("UPDATE conversation SET title = ? WHERE id = ?", (title or None, id))
            self._require(done.rowcount, id)

    def delete(self, id: int) -> None:
        """Raises NoConversationError."""
        with self.transaction() as db:
            self._require(db.execute("DELETE FROM conversation WHERE id = ?", (id,)).rowcount, id)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Changes that come all or none. Raises HistoryError."""
        with self._guarded(), self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    # The file

    def _require(self, rows: int, id: int) -> None:
        if not rows:
            raise NoConversationError(f"there is no conversation {id}: 'edgespec history ls' lists them")

    def _read(self, sql: str, *values: Any) -> Sequence[tuple[Any, ...]]:
        with self._guarded(), self._lock:
            return self._db.execute(sql, values).fetchall()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if files.is_damaged(error):
                self._renew()
                raise RenewedError(f"the history {self.path} was damaged and is begun anew") from error
            raise HistoryError(self._cause(error)) from error

    def _cause(self, error: sqlite3.Error | OSError) -> str:
        what = error.strerror if isinstance(error, OSError) else str(error)
        code = getattr(error, "sqlite_errorcode", None)
        help = _HELP.get((code or 0) & 0xFF, "set EDGESPEC_DATA to a folder that can be written")
        return f"the history {self.path} cannot be used ({what}): {help}"

    def _open(self) -> sqlite3.Connection:
        """A connection to a sound file."""
        failed: OSError | None = None
        try:
            files.prepare(self.path)
        except OSError as error:
            failed = error
        self._identity = files.identity(self.path)
        if failed is not None and self._identity is None:
            raise HistoryError(self._cause(failed)) from failed
        try:
            return self._connect(writable=failed is None)
        except sqlite3.Error as error:
            if not files.is_damaged(error):
                raise HistoryError(self._cause(error)) from error
        return self._begin_anew()

    def _connect(self, *, writable: bool) -> sqlite3.Connection:
        # a folder that cannot be written has no room for the shared memory of a WAL
        name = self.path if writable else f"{self.path.absolute().as_uri()}?immutable=1"
        db = sqlite3.connect(name, PATIENCE, isolation_level=None, check_same_thread=False, uri=not writable)
        try:
            db.create_function("lowered", 1, rows.lowered, deterministic=True)
            db.execute("PRAGMA foreign_keys = ON")
            if writable:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
                migrate(db, str(self.path))
            db.execute("SELECT count(*) FROM conversation LIMIT 1").fetchall()
        except BaseException:
            db.close()
            raise
        return db

    def _renew(self) -> None:
        with self._lock:
            self._db.close()
            self._db = self._begin_anew()

    def _begin_anew(self) -> sqlite3.Connection:
        try:
            aside = files.set_aside(self.path, self._identity)
            files.prepare(self.path)
            self._identity = files.identity(self.path)
            db = self._connect(writable=True)
        except (OSError, sqlite3.Error) as error:
            raise HistoryError(self._cause(error)) from error
        if aside is not None:
            self._notify(f"the history was damaged and set aside as {aside}; a new one is begun")
        return db
