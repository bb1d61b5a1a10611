"""What `run` finds on this machine before it reads its options: settings, and a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from edgespec.cli.options import Command, named
from edgespec.cli.references import repository
from edgespec.cli.terminal import write_error
from edgespec.errors import EdgespecError

if TYPE_CHECKING:
    from edgespec.history import Conversation, History
    from edgespec.settings import SettingsFile

Number = int | Literal["last"]
_OF_ONE_RUN = ("prompt", "file", "hf_repo", "raw", "as_json", "conversation", "trace", "verbose")
"""Options that are no settings."""


class NothingKeptError(EdgespecError):
    """There is no conversation to go on with."""


def conversation_number(value: int | str) -> Number:
    """A conversation by its number, or the last one; the type of an argument."""
    if value == "last":
        return "last"
    if not str(value).isdecimal() or int(value) >= 2**63:  # SQLite's numbers end there
        raise click.BadParameter(f"{value!r} is no conversation: 'edgespec history ls' has the numbers")
    return int(value)


def numbered(history: History, number: Number) -> int:
    """The number that is meant. Raises NothingKeptError."""
    found = history.latest() if number == "last" else number
    if found is None:
        raise NothingKeptError("there is no conversation yet: 'edgespec run' begins one")
    return found


class StoredCommand(Command):
    """Takes the settings of the model that is meant as its defaults: flags and variables win over them.

    `--continue` gives the parameter `conversation`, and its model and system message as defaults.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = _with_number(args)
        with named(ctx):
            given = self.make_parser(ctx).parse_args(list(args))[0]
        if {"-h", "--help"} & set(args):
            return super().parse_args(ctx, args)
        params = {param.name: param for param in self.params}

        def said(name: str) -> Any:
            value = given.get(name)
            return value if isinstance(value, str) else params[name].resolve_envvar_value(ctx)

        conversation = self._resumed(said("conversation"))
        repo = said("hf_repo")
        model = said("reference") or said("model") or (repo and repository(repo))
        ctx.default_map = self._defaults(ctx, model, conversation)
        rest = super().parse_args(ctx, args)
        ctx.params["conversation"] = conversation
        return rest

    def _resumed(self, value: str | None) -> Conversation | None:
        if value is None:
            return None
        from edgespec.history import History

        number = conversation_number(value)
        with History(notify=write_error) as history:
            return history.load(numbered(history, number))

    def _defaults(
        self, ctx: click.Context, model: str | None, conversation: Conversation | None
    ) -> dict[str, Any]:
        from edgespec import hub
        from edgespec.settings import SettingsFile

        file = SettingsFile(notify=write_error)
        wanted = model or (conversation and conversation.model) or file.values().get("model")
        values = file.values(str(wanted or hub.default_card().name)) | {"model": None if model else wanted}
        sound = self._sound(ctx, file, {key: value for key, value in values.items() if value is not None})
        return sound if conversation is None else sound | {"system": conversation.system}

    def _sound(self, ctx: click.Context, file: SettingsFile, values: dict[str, Any]) -> dict[str, Any]:
        """The settings that are options and have a value that the option takes."""
        sound, known = {}, settable(self)
        for key, value in values.items():
            if (param := known.get(key)) is None:
                continue
            value = [value] if param.multiple and not isinstance(value, list) else value
            try:
                param.type_cast_value(ctx, value)
                sound[param.name or ""] = value
            except (click.BadParameter, TypeError, ValueError) as error:
                why = error.message if isinstance(error, click.BadParameter) else str(error)
                write_error(f"{file.path}: {key} is not used: {why.rstrip('.')}")
        return sound


def settable(command: click.Command) -> dict[str, click.Option]:
    """The options that may stand in the settings file, by their names there."""
    return {
        param.name.replace("_", "-"): param
        for param in command.params
        if isinstance(param, click.Option) and param.name and param.name not in _OF_ONE_RUN
    }


def _with_number(args: Sequence[str]) -> list[str]:
    """`--continue` takes the next argument only where that is a number: it may be MODEL."""
    numbered = list(args)
    for i, arg in enumerate(args):
        if arg == "--":
            break
        if arg == "--continue" and not (i + 1 < len(args) and args[i + 1].isdecimal()):
            numbered[i] = "--continue=last"
    return numbered
