"""A table as rows of text that fit a width."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from textual.content import Content

from edgespec_tui.markdown.rows import Row

_BETWEEN = Content(" │ ").stylize("$dim 60%")
_NARROWEST = 4


@dataclass(frozen=True, slots=True)
class Table:
    """Columns as wide as their text, or narrower with text wrapped in the cells."""

    header: list[Content]
    lines: list[list[Content]]
    first: str = ""
    rest: str = ""

    def laid(self, width: int) -> list[Row]:
        widths = self._widths(width - len(self.rest))
        rule = Content("─┼─".join("─" * w for w in widths)).stylize("$dim 60%")
        bold = [cell.stylize_before("bold") for cell in self.header]
        drawn = [*_drawn(bold, widths), rule]
        for line in self.lines:
            drawn += _drawn(line, widths)
        return [
            Row(line, self.first if i == 0 else self.rest, self.rest, fold=True)
            for i, line in enumerate(drawn)
        ]

    def _widths(self, width: int) -> list[int]:
        columns = list(zip_longest(self.header, *self.lines, fillvalue=Content("")))
        widths = [max(1, *(cell.cell_length for cell in column)) for column in columns]
        room = width - 3 * (len(widths) - 1)
        while sum(widths) > room and max(widths) > _NARROWEST:
            widest = max(widths)
            second = max((w for w in widths if w < widest), default=_NARROWEST)
            many = widths.count(widest)
            less = max(1, min(widest - max(second, _NARROWEST), -(-(sum(widths) - room) // many)))
            widths = [w - less if w == widest else w for w in widths]
        return widths


def _drawn(cells: list[Content], widths: list[int]) -> list[Content]:
    """One line of a table as drawn lines."""
    wrapped = [cell.wrap(w) if cell else [Content("")] for cell, w in zip(cells, widths, strict=False)]
    wrapped += [[Content("")]] * (len(widths) - len(wrapped))
    out = []
    for line in zip_longest(*wrapped, fillvalue=Content("")):
        padded = [cell.pad_right(max(0, w - cell.cell_length)) for cell, w in zip(line, widths, strict=True)]
        out.append(_BETWEEN.join(padded))
    return out
