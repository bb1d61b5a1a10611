"""`edgespec ls` and `edgespec search`: models on this machine, and in the catalogue."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from edgespec import hub
from edgespec.cli.options import verbose_option
from edgespec.cli.stdout import put
from edgespec.cli.tables import ago, columns, count, size
from edgespec.cli.terminal import one_line
from edgespec.hub import local, used
from edgespec.hub.catalogue import Card
from edgespec.hub.local import Listed

_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_JSON = click.option("--json", "as_json", is_flag=True, help="A list of JSON objects.")


def models() -> tuple[Listed, ...]:
    """Every model on this machine with its facts, by name, under the catalogue's names."""
    found = local.listed(local.titled(local.found(), hub.cards()))
    return tuple(sorted(found, key=lambda model: model.name.casefold()))


@click.command("ls", context_settings=_HELP)
@_JSON
@verbose_option
def ls(as_json: bool) -> None:
    """List the models on this machine, those in the stores of other programs too.

    Only headers are read. A name in the list can be given wherever a MODEL is wanted.
    """
    found = models()
    if as_json:
        put(json.dumps([record(model) for model in found], indent=1))
        return
    if not found:
        click.echo("no models on this machine; edgespec pull smollm2:135m fetches a small one", err=True)
        return
    head = ("NAME", "SIZE", "QUANT", "CONTEXT", "ARCHITECTURE", "LAST USED", "WHERE")
    put(columns([head, *(_row(model) for model in found)], right=(1, 3)))
    for model in found:
        if model.facts.problem:
            put(one_line(f"{model.facts.condition}: {model.name}: {model.facts.problem}"))


def _row(model: Listed) -> tuple[str, ...]:
    facts = model.facts
    sound = facts.condition == "ok"
    return (
        model.name,
        size(facts.size),
        model.quantization or "-",
        count(facts.context),
        (facts.architecture or "-") if sound else facts.condition.upper(),
        ago(used.when(model.found.path), time.time()),
        model.found.place.title,
    )


def record(model: Listed) -> dict[str, Any]:
    """The model for programs; what is not known is null."""
    facts, last = model.facts, used.when(model.found.path)
    return {
        "name": model.name,
        "path": str(model.found.path),
        "files": [str(path) for path in model.found.files],
        "store": model.found.place.kind,
        "size": facts.size,
        "quantization": model.quantization,
        "context": facts.context,
        "architecture": facts.architecture,
        "parameters": facts.n_params,
        "last_used": None
        if last is None
        else datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds"),
        "condition": facts.condition,
        "problem": facts.problem,
    }


@click.command("search", context_settings=_HELP)
@click.argument("words", nargs=-1)
@_JSON
@verbose_option
def search(words: tuple[str, ...], as_json: bool) -> None:
    """Search the catalogue for models by name, title, architecture or licence; without WORDS list it.

    A name in the list can be given wherever a MODEL is wanted; edgespec pull NAME fetches it.
    """
    cards = [card for card in hub.cards() if _matches(card, words)]
    here = {model.name for model in local.titled(local.found(), hub.cards())}
    if as_json:
        put(json.dumps([_card(card, here) for card in cards], indent=1))
        return
    if not cards:
        near = hub.closest(" ".join(words), [card.name for card in hub.cards()])
        hint = f"nearest: {', '.join(near)}" if near else "edgespec search without words lists it all"
        raise click.ClickException(f"the catalogue has no {' '.join(words)}; {hint}")
    head = ("NAME", "SIZE", "PARAMETERS", "QUANT", "LICENCE", "DRAFT", "HERE", "TITLE")
    put(columns([head, *(_card_row(card, here) for card in cards)], right=(1, 2)))


def _matches(card: Card, words: Sequence[str]) -> bool:
    texts = (*card.names, card.title, card.architecture or "", card.licence or "", card.quantization or "")
    text = " ".join(texts).casefold()
    return all(word.casefold() in text for word in words)


def _card_row(card: Card, here: set[str]) -> tuple[str, ...]:
    return (
        card.name,
        size(card.size) if card.size else "-",
        count(card.parameters),
        card.quantization or "-",
        card.licence or "-",
        card.draft or "-",
        "yes" if card.name in here else "-",
        card.title,
    )


def _card(card: Card, here: set[str]) -> dict[str, Any]:
    fields = (
        "name",
        "title",
        "size",
        "parameters",
        "quantization",
        "licence",
        "context",
        "architecture",
        "draft",
    )
    return {**{name: getattr(card, name) for name in fields}, "here": card.name in here}
