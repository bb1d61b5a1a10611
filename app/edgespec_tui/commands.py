"""What can be typed after a slash."""

from __future__ import annotations

import re
from dataclasses import dataclass

from edgespec.errors import UsageError

_COMMAND = re.compile(r"/([a-z]+|\?)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """`argument`: what follows the name; with `?` it may be left out."""

    name: str
    argument: str
    help: str


COMMANDS = (
    Command("help", "", "keys and commands"),
    Command("clear", "", "begin a new conversation; this one stays in the list"),
    Command("regen", "", "answer the last message again"),
    Command("edit", "TEXT?", "change your last message and go on from there"),
    Command("system", "TEXT?", "set the system prompt, or show it; - for none"),
    Command("set", "NAME VALUE?", "change a setting, or list them"),
    Command("read", "FILE", "send a text file along with the next message"),
    Command("save", "FILE", "write the conversation as JSON, to be loaded again"),
    Command("load", "FILE", "open a conversation that was saved as JSON"),
    Command("export", "FILE?", "write the conversation as Markdown, or as JSON if it ends with .json"),
    Command("stats", "", "counts and rates of the last answer"),
    Command("model", "NAME?", "load another model, or show which there are"),
    Command("spec", "WHAT?", "auto, off, or proposers joined by commas"),
    Command("copy", "code?", "copy the last answer, or its last code block"),
    Command("title", "TEXT", "name this conversation"),
    Command("history", "", "the conversations on this machine"),
    Command("settings", "", "settings of this model"),
    Command("quit", "", "end, like Ctrl+Q"),
)
_BY_NAME = {command.name: command for command in COMMANDS} | {"?": COMMANDS[0]}


def parse(text: str) -> tuple[Command, str] | None:
    """A command and its argument; None if this is a message. Raises UsageError."""
    match = _COMMAND.fullmatch(text.rstrip())
    if match is None:
        return None
    command = _BY_NAME.get(match[1])
    if command is None:
        raise UsageError(
            f"unknown command /{match[1]}: /help lists them; a space in front makes it a message"
        )
    argument = (match[2] or "").strip()
    if not argument and command.argument and not command.argument.endswith("?"):
        raise UsageError(f"/{command.name} {command.argument}: {command.help}")
    return command, argument
