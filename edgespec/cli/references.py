"""Model references on the command line: which one was given, and what the shell may complete."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from edgespec.errors import UsageError


class ModelReference(click.ParamType[str]):
    """A path, a name of the catalogue, a repository, or a name that `edgespec ls` shows. Kept as typed."""

    name = "model"

    def __init__(self, *, on_disk: bool = False, words: tuple[str, ...] = ()) -> None:
        self._on_disk, self._words = on_disk, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Files where no name fits; never an error, since that would end up on the prompt."""
        items = [] if self._on_disk else [CompletionItem(incomplete, type="file")]
        wanted = incomplete.casefold()
        return items + [
            CompletionItem(name, help=told)
            for name, told in self._known().items()
            if name.casefold().startswith(wanted)
        ]

    def _known(self) -> dict[str, str]:
        from edgespec import hub
        from edgespec.errors import EdgespecError
        from edgespec.hub import local

        known = dict.fromkeys(self._words, "")
        try:
            cards = hub.cards()
            if not self._on_disk:
                known |= {card.name: card.title for card in cards}
            return known | {m.name: m.place.title for m in local.titled(local.found(), cards)}
        except (EdgespecError, OSError):
            return known


def chosen(reference: str | None, options: dict[str, Any]) -> str | None:
    """The one model that was given as MODEL, with -m or with -hf; what the environment says counts last.

    Raises UsageError when two were given.
    """
    given = [name for name in ("model", "hf_repo") if options.get(name) is not None and _typed(name)]
    ways = ["as MODEL"] * (reference is not None) + [_WAYS[name] for name in given]
    if len(ways) > 1:
        raise click.UsageError(f"the model is given twice: {' and '.join(ways)}")
    if reference is not None:
        return reference
    name = given[0] if given else next((n for n in _WAYS if options.get(n) is not None), None)
    if name == "hf_repo":
        return repository(options[name])
    return None if name is None else str(options[name])


_WAYS = {"model": "with -m", "hf_repo": "with -hf"}


def names_draft(draft: str | None) -> bool:
    """Did a person name a draft model, rather than leave the choice or want none?"""
    return draft is not None and draft.lower() not in ("auto", "none")


def repository(text: str) -> str:
    """What `-hf` was given, as a reference."""
    lowered = text.lower()
    return text if lowered.startswith(("hf:", "hf.co/", "huggingface.co/", "http")) else f"hf:{text}"


def _typed(name: str) -> bool:
    """Was the option on the command line, not only in the environment?"""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def proposers(value: str) -> str:
    """The type of `--spec`: kept as typed. Names are looked up where there are any."""
    if value not in ("auto", "off"):
        from edgespec import named_proposers

        try:
            named_proposers(value)
        except UsageError as error:
            raise click.BadParameter(str(error)) from error
    return value
