"""Conversations as text: Markdown to read, JSON to keep and to load again."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, get_args

from edgespec.errors import UsageError
from edgespec.history import rows
from edgespec.history.records import Conversation, Role, State, Turn

FORMAT, VERSION = "edgespec.conversation", 1


def as_markdown(conversation: Conversation) -> str:
    """The texts as they are, under a heading each."""
    about = [part for part in (conversation.model, _day(conversation.created)) if part]
    parts = [f"# {conversation.name or 'Conversation'}", *([f"*{' · '.join(about)}*"] if about else [])]
    if conversation.system:
        parts += ["## System", conversation.system]
    for turn in conversation.turns:
        parts += [f"## {turn.role.capitalize()}", turn.content]
        if turn.state != "complete":
            parts.append("*[stopped]*")
    return "\n\n".join(parts) + "\n"


def as_json(conversation: Conversation) -> str:
    """Everything that is kept; `from_json` gives the same conversation again, without its number."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "title": conversation.title,
        "model": conversation.model,
        "system": conversation.system,
        "created": conversation.created,
        "updated": conversation.updated,
    }
    fields = [f"{json.dumps(name)}: {_dumped(value)}" for name, value in head.items()]
    turns = ",\n  ".join(_dumped(_present(asdict(turn))) for turn in conversation.turns)
    return "{\n " + ",\n ".join([*fields, f'"turns": [\n  {turns}\n ]']) + "\n}\n"


def from_json(text: str) -> Conversation:
    """What `as_json` wrote, or a plain list of {role, content}. Raises UsageError."""
    try:
        found = json.loads(text)
        if isinstance(found, list):
            found = {"turns": found}
        elif found.get("format") != FORMAT:
            raise UsageError(f"this JSON is no conversation: its format is not {FORMAT!r}")
        elif found["version"] > VERSION:
            raise UsageError(f"this conversation has format version {found['version']}: upgrade edgespec")
        return _conversation(found)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"this is no conversation in JSON: {error!r}") from error


def _conversation(found: dict[str, Any]) -> Conversation:
    turns = list(found["turns"])
    system = found.get("system")
    if turns and turns[0]["role"] == "system":
        system = _text(turns.pop(0)["content"])
    created = float(found.get("created", 0.0))
    return Conversation(
        tuple(_turn(turn, created + i / 1000) for i, turn in enumerate(turns)),
        _text(system),
        _text(found.get("model")),
        _text(found.get("title")),
        created,
        float(found.get("updated", created)),
    )


def _turn(found: dict[str, Any], created: float) -> Turn:
    role, state = found["role"], found.get("state", "complete")
    if role not in get_args(Role) or state not in get_args(State):
        raise ValueError(f"a turn of {role!r} in state {state!r}")
    return Turn(
        role,
        _content(found["content"]),
        float(found.get("created", created)),
        state,
        _text(found.get("model")),
        _text(found.get("finish")),
        rows.figures(found.get("figures")),
        rows.runs(found.get("runs")),
    )


def _content(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _text(value: Any) -> Any:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, ())}


def _dumped(value: object) -> str:
    """On one line, without half surrogate pairs, which no UTF-8 file can hold."""
    return rows.storable(json.dumps(value, ensure_ascii=False)) or ""


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M") if seconds else ""
