"""Which models on disk may draft for a target, and why the others may not; only headers are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgespec.errors import EdgespecError
from edgespec.hub import gguf
from edgespec.hub.catalogue import Card
from edgespec.hub.gguf import Header
from edgespec.hub.local import Facts, Listed, facts_of, fits
from edgespec.hub.vocabulary import first_difference, shared

MOST_PADDING = 128
MOST_OF_TARGET = 3
"""A draft has at most one part in so many of the target's bytes."""
_BEST_OF_TARGET = 10
"""Small enough to be cheap, large enough to agree often; the nearest to it is taken."""
_TOKENS, _KIND = "tokenizer.ggml.tokens", "tokenizer.ggml.model"
_RECURRENT = ("mamba", "rwkv", "jamba", "falcon-h1", "plamo2", "granitehybrid", "lfm2", "nemotron_h")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that may draft, or why it is refused. `reason`: one line either way.

    `other_vocabulary`: that is why; one that is asked for may draft still.
    """

    model: Listed
    taken: bool
    reason: str
    other_vocabulary: bool = False


def candidates(
    target: Path, header: Header, models: Iterable[Listed], cards: Sequence[Card] = ()
) -> tuple[Candidate, ...]:
    """Every other model, those that may draft first, the best of them at the front.

    The rule for vocabularies is llama.cpp's: same kind of tokenizer, same BOS and EOS, sizes that differ by
    padding only, same texts from id 5 on. A draft also has at most a third of the target's bytes and marks
    turns as the target does. A card that names the target's draft, or says that none pays, is followed.
    """
    wanted = facts_of(header)
    others = [model for model in models if not _same_file(model.found.path, target)]
    card = next((card for card in cards for model in models if _is_card(card, model, target)), None)
    judged = [_judge(target, header, wanted, model, card) for model in others]
    return tuple(sorted(judged, key=lambda c: (not c.taken, *_rank(wanted, c.model, card))))


def _judge(target: Path, header: Header, wanted: Facts, model: Listed, card: Card | None) -> Candidate:
    if refused := _unreadable(wanted, model.facts):
        return Candidate(model, False, refused)
    if refused := _other_vocabulary(wanted, model.facts):
        return Candidate(model, False, refused, other_vocabulary=True)
    refused = _refusal(wanted, model.facts)
    if refused is None and card is not None and card.draft == "none":
        refused = f"the catalogue says that no draft model pays for {card.name}"
    if refused is not None:
        return Candidate(model, False, refused)
    if refused := _other_texts(target, header, model):
        return Candidate(model, False, refused, other_vocabulary=True)
    share = f"{model.facts.size / wanted.size:.0%} of the target's size" if wanted.size else "small"
    advised = "the catalogue's advice, " if card and card.draft == model.name else ""
    template = "same template" if wanted.template == model.facts.template else "a similar template"
    return Candidate(model, True, f"{advised}same vocabulary, {template}, {share}")


def share_of_tokens(target: Path, header: Header, draft: Path) -> float | None:
    """The share of the draft's token texts that the target has too, None where that cannot be told.

    Other kinds of tokenizer spell the same text differently.
    """
    try:
        other = gguf.check(draft)
        if header.text(_KIND) != other.text(_KIND):
            return None
        return shared(target, header.lists[_TOKENS], draft, other.lists[_TOKENS])
    except (EdgespecError, OSError, KeyError, ValueError):
        return None


def _unreadable(target: Facts, draft: Facts) -> str | None:
    if draft.condition != "ok":
        return f"{draft.condition}: {draft.problem}"
    if target.n_vocab is None or draft.n_vocab is None:
        return "its file has no vocabulary" if target.n_vocab else "the target's file has no vocabulary"
    return None


def _other_vocabulary(target: Facts, draft: Facts) -> str | None:
    """What the facts say against the vocabulary, the gravest first."""
    if _kind(target) != _kind(draft):
        return f"tokenizer {_kind(draft)} is not the target's {_kind(target)}"
    theirs, ours = draft.n_vocab or 0, target.n_vocab or 0
    if abs(ours - theirs) > MOST_PADDING:
        return f"its vocabulary has {theirs:,} tokens, the target's {ours:,}"
    for what, other, own in (
        ("BOS", draft.bos, target.bos),
        ("EOS", draft.eos, target.eos),
        ("adding BOS", draft.add_bos, target.add_bos),
    ):
        if other is not None and own is not None and other != own:
            return f"{what} is {other}, the target's {own}"
    return None


def _refusal(target: Facts, draft: Facts) -> str | None:
    """What else the facts say against the draft."""
    if (draft.architecture or "").startswith(_RECURRENT):
        return f"a {draft.architecture} model cannot take tokens back cheaply"
    if draft.size * MOST_OF_TARGET > target.size:
        return f"its {_gb(draft.size)} are more than a third of the target's {_gb(target.size)}"
    return _other_template(target.template, draft.template)


def _other_template(target: tuple[str, ...] | None, draft: tuple[str, ...] | None) -> str | None:
    if target is None or target == draft:
        return None
    if draft is None:
        return "it has no chat template, the target has"
    if target and not set(target) & set(draft):
        return f"its chat template marks turns with {_few(draft)}, the target's with {_few(target)}"
    return None


def _few(marks: tuple[str, ...]) -> str:
    return ", ".join(marks[:2]) or "no special text"


def _other_texts(target: Path, header: Header, model: Listed) -> str | None:
    """The texts of the tokens themselves, compared in both files."""
    try:
        other = gguf.check(model.found.path)
        first = first_difference(target, header.lists[_TOKENS], model.found.path, other.lists[_TOKENS])
    except (EdgespecError, OSError, KeyError, ValueError) as error:
        return f"its vocabulary cannot be read ({error})"
    return None if first is None else f"token {first} has another text than in the target"


def _rank(target: Facts, model: Listed, card: Card | None) -> tuple[bool, bool, float, str]:
    advised = card is not None and card.draft == model.name
    ratio = max(model.facts.size, 1) * _BEST_OF_TARGET / max(target.size, 1)
    return (not advised, model.facts.template != target.template, abs(math.log(ratio)), model.name)


def _is_card(card: Card, model: Listed, target: Path) -> bool:
    return fits(card, model.found) and _same_file(model.found.path, target)


def _same_file(a: Path, b: Path) -> bool:
    try:
        return a.samefile(b)
    except OSError:
        return a == b


def _kind(facts: Facts) -> str:
    """The kind of tokenizer, without the way it splits text first."""
    return (facts.tokenizer or "unknown").split("/")[0]


def _gb(n: int) -> str:
    return f"{n / 1e9:.2f} GB"
