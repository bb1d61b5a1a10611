"""Plain tables and short figures for people."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from edgespec.cli.terminal import one_line

_STEPS = ((60, "s"), (60, "min"), (24, "h"), (365, "d"))


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """The rows as lines of aligned columns; those in `right` are aligned to the right."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            " " * (width - _width(cell)) + cell if i in right else cell + " " * (width - _width(cell))
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def _width(text: str) -> int:
    """Cells that a terminal needs."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def size(n: int) -> str:
    """Bytes in MB or GB, of 1000."""
    if n < 1e6:
        return f"{n / 1e3:.0f} kB"
    return f"{n / 1e6:.0f} MB" if n < 1e9 else f"{n / 1e9:.1f} GB"


def count(n: int | None) -> str:
    """A number with a letter for thousands and more."""
    if n is None:
        return "-"
    for step, letter in ((1e9, "B"), (1e6, "M")):
        if n >= step:
            return f"{n / step:.1f}".rstrip("0").rstrip(".") + letter
    return str(n)


def ago(then: float | None, now: float) -> str:
    """How long before now, in the largest unit that fits."""
    if then is None:
        return "-"
    left = max(now - then, 0.0)
    for step, unit in _STEPS:
        if left < step:
            return f"{left:.0f} {unit} ago"
        left /= step
    return f"{left:.0f} y ago"
