"""Who proposed which words: a colour and a sign for each source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual.content import Content, Span

from edgespec.history import Run
from edgespec_tui.text import visible


@dataclass(frozen=True, slots=True)
class Look:
    """`sign` stands before the words of this source, so that no colour is needed."""

    name: str
    sign: str
    style: str


LOOKS = {
    "target": Look("target", "", "$foreground"),
    "draft": Look("draft model", "ᵈ", "underline $source-draft"),
    "suffix": Look("suffix", "ˢ", "underline $source-suffix"),
    "ngram": Look("n-gram", "ⁿ", "underline $source-ngram"),
    "memory": Look("memory", "ᵐ", "underline $source-memory"),
    "recycling": Look("recycling", "ʳ", "underline $source-recycling"),
    "lookahead": Look("lookahead", "ˡ", "underline $source-lookahead"),
    "jacobi": Look("jacobi", "ʲ", "underline $source-jacobi"),
}
_OTHER = Look("other", "ˣ", "underline $accent")


def look(source: str) -> Look:
    return LOOKS.get(source, _OTHER)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Text that one source proposed."""

    text: str
    source: str
    thinking: bool = False


def stretches(content: str, runs: Iterable[Run]) -> list[Stretch]:
    """An answer cut at the borders of its runs. What they do not cover is the target's."""
    out, at = [], 0
    for run in runs:
        out.append(Stretch(content[at : at + run.length], run.source, run.thinking))
        at += run.length
    if content[at:]:
        out.append(Stretch(content[at:], "target"))
    return out


def painted(pieces: Iterable[Stretch]) -> Content:
    """The text in colours and signs."""
    text: list[str] = []
    spans: list[Span] = []
    at = 0
    last = "target"
    for piece in pieces:
        shown = look(piece.source)
        words = visible(piece.text)
        sign = shown.sign if piece.source != last and words.strip() else ""
        lead = len(words) - len(words.lstrip())
        words = words[:lead] + sign + words[lead:]
        text.append(words)
        if piece.source != "target":
            spans.append(Span(at + lead, at + len(words), shown.style))
        at += len(words)
        if words.strip():
            last = piece.source
    return Content("".join(text), spans)


def legend(shares: dict[str, float]) -> Content:
    """Each source with its look and its share of the characters, the target first."""
    parts: list[Content] = []
    for source in sorted(shares, key=lambda s: (s != "target", -shares[s])):
        shown = look(source)
        label = Content(f"{shown.sign}{shown.name}").stylize(shown.style)
        parts.append(Content.assemble(label, f" {shares[source]:.0%}"))
    return Content("   ").join(parts)


def shares(pieces: Iterable[Stretch]) -> dict[str, float]:
    """Share of the characters that each source proposed."""
    counts: dict[str, int] = {}
    for piece in pieces:
        counts[piece.source] = counts.get(piece.source, 0) + len(piece.text)
    total = sum(counts.values())
    return {source: n / total for source, n in counts.items()} if total else {}
