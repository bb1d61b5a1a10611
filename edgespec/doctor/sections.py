"""What a report is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is set badly, in a sentence. `fix`: the command or the flags that put it right; `others`
    would do as well.
    """

    text: str
    fix: str | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """A pass over `rows` rows. `ratio`: its time by that of a single row. `exact`: are its rows equal to
    single rows?
    """

    rows: int
    seconds: float
    ratio: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Table:
    """Cells are text; the first column is aligned to the left, the others to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """`facts`: (label, text) lines. `figures`: the same for programs, and what else there is to know."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    chart: tuple[Bar, ...] = ()
    table: Table | None = None
    findings: tuple[Finding, ...] = ()
    figures: Mapping[str, object] = field(default_factory=dict)
