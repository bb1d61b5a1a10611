"""Between records and rows of the tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

from edgespec.history.records import Conversation, Entry, Figures, Run, Turn, shortened

ENTRIES = """SELECT c.id, c.title, c.model, c.created, c.updated,
    (SELECT count(*) FROM turn WHERE conversation = c.id),
    (SELECT substr(content, 1, 400) FROM turn WHERE conversation = c.id AND role = 'user' ORDER BY id LIMIT 1)
    FROM conversation c"""
CONVERSATION = "system, model, title, created, updated"
TURN = "role, content, created, state, model, finish, figures, runs"
_FIGURES = {field.name for field in fields(Figures)}


def entry(row: tuple[Any, ...], matches: Mapping[int, str] | None = None) -> Entry:
    """From a row of `ENTRIES`."""
    id, title, model, created, updated, turns, first = row
    return Entry(
        id, title or shortened(first or ""), model, created, updated, turns, (matches or {}).get(id, "")
    )


def turn(row: tuple[Any, ...]) -> Turn:
    """From a row of `TURN`."""
    role, content, created, state, model, finish, figures_text, runs_text = row
    return Turn(
        role, content, created, state, model, finish, figures(_parsed(figures_text)), runs(_parsed(runs_text))
    )


def figures(found: Any) -> Figures | None:
    """From JSON; what this version does not know is left out."""
    if not isinstance(found, dict):
        return None
    numbers: Any = {k: v for k, v in found.items() if k in _FIGURES and isinstance(v, int | float)}
    return Figures(**numbers)


def runs(found: Any) -> tuple[Run, ...]:
    """From JSON."""
    try:
        return tuple(Run(int(length), str(source), bool(kind)) for length, source, kind in found or ())
    except (TypeError, ValueError):
        return ()


def insert_conversation(db: sqlite3.Connection, c: Conversation) -> int:
    """Without its turns; returns its number."""
    id = db.execute(
        f"INSERT INTO conversation ({CONVERSATION}) VALUES (?, ?, ?, ?, ?)",
        (storable(c.system), storable(c.model), storable(c.title), c.created, c.updated),
    ).lastrowid
    assert id is not None
    return id


def insert_turns(db: sqlite3.Connection, conversation: int, turns: Iterable[Turn]) -> list[int]:
    """Returns their ids."""
    sql = f"INSERT INTO turn (conversation, {TURN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    return [db.execute(sql, (conversation, *_values(turn))).lastrowid or 0 for turn in turns]


def update_turn(db: sqlite3.Connection, id: int, turn: Turn) -> None:
    names = ", ".join(f"{name} = ?" for name in TURN.split(", "))
    db.execute(f"UPDATE turn SET {names} WHERE id = ?", (*_values(turn), id))


def storable(text: str | None) -> str | None:
    """Half a surrogate pair, which has no UTF-8, becomes U+FFFD."""
    if text is None:
        return None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def lowered(text: str | None) -> str:
    """The case of letters taken away, in any script."""
    return (text or "").lower()


def around(content: str, word: str, width: int = 40) -> str:
    """The text around a word, on one line."""
    at = max(content.lower().find(word), 0)
    begin, end = max(at - width, 0), at + len(word) + width
    line = " ".join(content[begin:end].split())
    return ("…" if begin else "") + line + ("…" if end < len(content) else "")


def _values(turn: Turn) -> tuple[Any, ...]:
    return (
        turn.role,
        storable(turn.content),
        turn.created,
        turn.state,
        storable(turn.model),
        turn.finish,
        json.dumps(asdict(turn.figures)) if turn.figures else None,
        json.dumps(turn.runs) if turn.runs else None,
    )


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None
