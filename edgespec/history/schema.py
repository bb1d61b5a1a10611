"""The tables, and how an older file becomes a newer one."""

from __future__ import annotations

import sqlite3

from edgespec.errors import EdgespecError

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE conversation (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT, system TEXT, model TEXT,
            created REAL NOT NULL, updated REAL NOT NULL)""",
        # content is last, so that a scan of the other columns does not read it
        """CREATE TABLE turn (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
            role TEXT NOT NULL, state TEXT NOT NULL, created REAL NOT NULL,
            model TEXT, finish TEXT, figures TEXT, runs TEXT, content TEXT NOT NULL)""",
        "CREATE INDEX turn_conversation ON turn (conversation, id)",
        "CREATE INDEX turn_partial ON turn (id) WHERE state = 'partial'",
        "CREATE INDEX conversation_updated ON conversation (updated)",
        # trigrams find parts of words, in any script; an answer is indexed when it is whole
        """CREATE VIRTUAL TABLE turn_text USING fts5 (
            content, content = 'turn', content_rowid = 'id', tokenize = 'trigram')""",
        """CREATE TRIGGER turn_added AFTER INSERT ON turn WHEN new.state <> 'partial' BEGIN
            INSERT INTO turn_text (rowid, content) VALUES (new.id, new.content); END""",
        """CREATE TRIGGER turn_left AFTER UPDATE OF content, state ON turn WHEN old.state <> 'partial' BEGIN
            INSERT INTO turn_text (turn_text, rowid, content) VALUES ('delete', old.id, old.content); END""",
        """CREATE TRIGGER turn_came AFTER UPDATE OF content, state ON turn WHEN new.state <> 'partial' BEGIN
            INSERT INTO turn_text (rowid, content) VALUES (new.id, new.content); END""",
        """CREATE TRIGGER turn_removed AFTER DELETE ON turn WHEN old.state <> 'partial' BEGIN
            INSERT INTO turn_text (turn_text, rowid, content) VALUES ('delete', old.id, old.content); END""",
    ),
)
"""Statements that lead from version i to i + 1. Append only: files with each version are out there."""

VERSION = len(MIGRATIONS)


class NewerHistoryError(EdgespecError):
    """The file was made by a newer edgespec."""


def migrate(db: sqlite3.Connection, name: str, steps: tuple[tuple[str, ...], ...] = MIGRATIONS) -> None:
    """Bring the file to the version of `steps`, all or nothing. Raises NewerHistoryError."""
    if _version(db, name, len(steps)) == len(steps):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[_version(db, name, len(steps)) :]:  # another process may have been faster
            for statement in step:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(steps)}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection, name: str, ours: int) -> int:
    found: int = db.execute("PRAGMA user_version").fetchone()[0]
    if found > ours:
        raise NewerHistoryError(
            f"the history {name} was written by a newer edgespec (version {found}, known {ours}): "
            "upgrade edgespec, or set EDGESPEC_DATA to another folder"
        )
    return found
