"""`edgespec show`: what a model is, and which models on disk may draft for it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from edgespec import hub
from edgespec.cli.listing import models
from edgespec.cli.options import verbose_option
from edgespec.cli.references import ModelReference
from edgespec.cli.stdout import put
from edgespec.cli.tables import ago, columns, count, size
from edgespec.cli.terminal import one_line, printable
from edgespec.hub import gguf, local, pairing, used
from edgespec.hub.gguf import Header
from edgespec.hub.pairing import Candidate

_TEMPLATE_LINES = 3


@click.command("show", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("reference", metavar="MODEL", type=ModelReference())
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--template", is_flag=True, help="Only the chat template, whole.")
@verbose_option
def show(reference: str, as_json: bool, template: bool) -> None:
    """Show what a model is: its header, licence and template, and the drafts on disk that suit it.

    Nothing is fetched or loaded. Every candidate is listed with the reason why it would be taken or not.
    """
    where = hub.locate(reference)
    if isinstance(where, hub.Card):
        _card(where, as_json)
        return
    header = gguf.check(where)
    text = header.text("tokenizer.chat_template")
    if template:
        if text is None:
            raise click.ClickException(f"{where.name} has no chat template")
        put(printable(text))
        return
    found = pairing.candidates(where, header, models(), hub.cards())
    drafts = tuple(_translatable(candidate, where, header) for candidate in found)
    if as_json:
        put(json.dumps(_record(where, header, drafts), indent=1))
        return
    put(columns([(label, value) for label, value in _facts(where, header).items()]))
    put(_template(text))
    put(_drafts(drafts))


def _translatable(candidate: Candidate, path: Path, header: Header) -> Candidate:
    """With what speaks for a draft of another vocabulary, should someone ask for it."""
    if not candidate.other_vocabulary:
        return candidate
    share = pairing.share_of_tokens(path, header, candidate.model.found.path)
    measured = "" if share is None else f" {share:.0%} of its tokens are the target's;"
    said = f"{candidate.reason};{measured} --draft {candidate.model.name} uses it all the same"
    return replace(candidate, reason=said)


def _facts(path: Path, header: Header) -> dict[str, str]:
    import time

    files = len(hub.files(path))
    facts = {
        "name": header.name or path.stem,
        "path": str(path) + (f" and {files - 1} more parts" if files > 1 else ""),
        "size": f"{size(header.size)} ({header.size:,} bytes)",
        "architecture": header.architecture,
        "parameters": count(header.n_params),
        "quantization": header.quantization or "unknown",
        "context": f"{header.context:,} tokens" if header.context else "unknown",
        "layers": str(header.number("block_count")),
        "vocabulary": _vocabulary(header),
        "licence": header.text("general.license") or "not said in the file",
        "origin": header.text("general.repo_url") or header.text("general.source.repo_url") or "",
        "last used": ago(used.when(path), time.time()),
    }
    return {label: value for label, value in facts.items() if value}


def _vocabulary(header: Header) -> str:
    facts = local.facts_of(header)
    if facts.n_vocab is None:
        return "none in the file"
    bos = "" if facts.bos is None else f", BOS {facts.bos}"
    eos = "" if facts.eos is None else f", EOS {facts.eos}"
    return f"{facts.n_vocab:,} tokens, {facts.tokenizer}{bos}{eos}"


def _template(text: str | None) -> str:
    if text is None:
        return "\nchat template: none; it continues text, and chats in a plain form"
    lines = printable(text).splitlines()
    shown = "\n".join(f"  {line[:100]}" for line in lines[:_TEMPLATE_LINES])
    more = len(text) > sum(map(len, lines[:_TEMPLATE_LINES])) + 10 or any(len(line) > 100 for line in lines)
    whole = " (--template shows it whole)" if more else ""
    return f"\nchat template, {len(text):,} characters{whole}:\n{shown}"


def _drafts(drafts: tuple[Candidate, ...]) -> str:
    if not drafts:
        return "\ndrafts: this is the only model on this machine"
    best = drafts[0] if drafts[0].taken else None
    said = f"--draft auto takes {one_line(best.model.name)}" if best else "--draft auto takes none of these"
    rows = [("yes" if c.taken else "no", c.model.name, size(c.model.facts.size), c.reason) for c in drafts]
    return f"\ndrafts on this machine; {said}:\n{columns(rows, right=(2,))}"


def _record(path: Path, header: Header, drafts: tuple[Candidate, ...]) -> dict[str, Any]:
    return {
        "path": str(path),
        "files": [str(file) for file in hub.files(path)],
        "size": header.size,
        "parameters": header.n_params,
        "architecture": header.architecture,
        "quantization": header.quantization,
        "context": header.context,
        "licence": header.text("general.license"),
        "metadata": dict(header.metadata),
        "drafts": [
            {
                "name": c.model.name,
                "path": str(c.model.found.path),
                "size": c.model.facts.size,
                "taken": c.taken,
                "reason": c.reason,
            }
            for c in drafts
        ],
    }


def _card(card: hub.Card, as_json: bool) -> None:
    """A model of the catalogue that is not here."""
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
    facts = {field: getattr(card, field) for field in fields if getattr(card, field) is not None}
    if as_json:
        put(json.dumps({**facts, "path": None}, indent=1))
        return
    shown = {**facts, **({"size": size(card.size)} if card.size else {})}
    if card.parameters:
        shown["parameters"] = count(card.parameters)
    put(columns([(label, str(value)) for label, value in shown.items()]))
    put(f"\nnot on this machine; edgespec pull {card.name} fetches it")
