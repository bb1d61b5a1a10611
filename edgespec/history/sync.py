"""Bring a kept conversation to what it is now, with few small changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from edgespec.history import rows
from edgespec.history.records import Conversation, Turn


@dataclass(frozen=True, slots=True)
class Kept:
    """What this process believes the file holds. `ids` None: not looked up yet."""

    id: int | None = None
    conversation: Conversation = field(default_factory=Conversation)
    ids: Sequence[int] | None = None


def sync(db: sqlite3.Connection, kept: Kept, wanted: Conversation, now: float) -> Kept:
    """Within a transaction. A conversation that another process changed or deleted is left alone;
    this one is then kept as a new one."""
    ids = _still_there(db, kept)
    if ids is None:
        if not wanted.turns:
            return Kept()
        began = wanted.turns[0].created
        id = rows.insert_conversation(db, replace(wanted, created=began, updated=now))
        return Kept(id, wanted, rows.insert_turns(db, id, wanted.turns))
    assert kept.id is not None
    before = kept.conversation
    same = _same_turns(before.turns, wanted.turns)
    for id, old, new in zip(ids[:same], before.turns, wanted.turns, strict=False):
        if old is not new and old != new:
            rows.update_turn(db, id, new)
    for id in ids[same:]:
        db.execute("DELETE FROM turn WHERE id = ?", (id,))
    if wanted.title != before.title:
        db.execute("UPDATE conversation SET title = ? WHERE id = ?", (rows.storable(wanted.title), kept.id))
    added = rows.insert_turns(db, kept.id, wanted.turns[same:])
    db.execute(
        "UPDATE conversation SET system = ?, model = ?, updated = coalesce(?, updated) WHERE id = ?",
        (
            rows.storable(wanted.system),
            rows.storable(wanted.model),
            now if before.turns != wanted.turns else None,
            kept.id,
        ),
    )
    return Kept(kept.id, wanted, (*ids[:same], *added))


def _still_there(db: sqlite3.Connection, kept: Kept) -> Sequence[int] | None:
    """The ids of the turns, if the file holds what is believed."""
    if kept.id is None:
        return None
    if not db.execute("SELECT 1 FROM conversation WHERE id = ?", (kept.id,)).fetchone():
        return None
    if kept.ids is None:
        found = db.execute(f"SELECT {rows.TURN}, id FROM turn WHERE conversation = ? ORDER BY id", (kept.id,))
        pairs = [(rows.turn(row[:-1]), row[-1]) for row in found]
        return [id for _, id in pairs] if [t for t, _ in pairs] == list(kept.conversation.turns) else None
    found = db.execute("SELECT id FROM turn WHERE conversation = ? ORDER BY id", (kept.id,))
    return kept.ids if [id for (id,) in found] == list(kept.ids) else None


def _same_turns(old: tuple[Turn, ...], new: tuple[Turn, ...]) -> int:
    """How many turns at the beginning are the same ones, though an answer may have grown."""
    n = 0
    for a, b in zip(old, new, strict=False):
        if (a.role, a.created) != (b.role, b.created):
            break
        n += 1
    return n
