"""`edgespec config`: the settings that `run` starts with."""

from __future__ import annotations

import json
import sys
from difflib import get_close_matches
from typing import Any

import click

from edgespec.cli.options import verbose_option
from edgespec.cli.run import run
from edgespec.cli.stdout import Stdout
from edgespec.cli.stored import settable
from edgespec.cli.terminal import is_terminal, printable, valid, write_error
from edgespec.settings import SettingsFile, Value, location

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_THEME = "theme"
_MODEL = click.option("--for", "model", metavar="MODEL", type=click.Path(), help="For this model alone.")


@click.group("config", context_settings=_SETTINGS, invoke_without_command=True)
@verbose_option
@click.pass_context
def config(ctx: click.Context) -> None:
    """Settings that edgespec run starts with, in a TOML file.

    A setting is a long option of edgespec run without its dashes, such as temp or ctx-size. Options and
    EDGESPEC_ variables win over a model's settings, and these over the settings for all models.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@config.command("show", context_settings=_SETTINGS)
@_MODEL
def show(model: str | None = None) -> None:
    """Print what is set, for all models or for one."""
    file, known = SettingsFile(notify=write_error), settable(run)
    values = file.values(model)
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False, default=str)}\n" for key, value in values.items()
    ]
    _write("".join(lines))
    for key in values.keys() - known.keys() - {_THEME}:
        write_error(f"{key} in {file.path} is no setting{_near(key)}")
    if not values:
        write_error(f"nothing is set in {file.path}")


@config.command("path", context_settings=_SETTINGS)
def path() -> None:
    """Print where the file is."""
    _write(f"{location()}\n")


@config.command("set", context_settings=_SETTINGS)
@click.argument("key")
@click.argument("values", metavar="VALUE...", nargs=-1, required=True, type=valid)
@_MODEL
@click.pass_context
def set_(ctx: click.Context, key: str, values: tuple[str, ...], model: str | None) -> None:
    """Set KEY to VALUE. Settings that may be given several times take several."""
    SettingsFile().change({key: _value(ctx, key, values)}, model)


@config.command("unset", context_settings=_SETTINGS)
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@_MODEL
def unset(keys: tuple[str, ...], model: str | None) -> None:
    """Take settings out, so that others or the defaults hold again."""
    SettingsFile().change(dict.fromkeys(keys), model)


def _value(ctx: click.Context, key: str, values: tuple[str, ...]) -> Value:
    """In the type of the option. Raises UsageError."""
    param = settable(run).get(key)
    if param is None and key != _THEME:
        raise click.UsageError(
            f"{key!r} is no setting{_near(key)}: they are the long options of edgespec run"
        )
    if param is not None and param.multiple:
        param.type_cast_value(ctx, values)  # the file keeps what the user wrote
        return list(values)
    if len(values) > 1:
        raise click.UsageError(f"{key} takes one value: put it in quotes")
    found: Any = values[0] if param is None else param.type_cast_value(ctx, values[0])
    return found if isinstance(found, bool | int | float) else values[0]


def _near(key: str) -> str:
    near = get_close_matches(key, [*settable(run), _THEME], n=1)
    return f" (is {near[0]} meant?)" if near else ""


def _write(text: str) -> None:
    Stdout().write(printable(text) if is_terminal(sys.stdout) else text)
