"""Rows drawn as strips, wrapped behind what stands before them, and selectable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.css.styles import RulesMap
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

from edgespec_tui.markdown.rows import Part, Row

_WRAP = cast(RulesMap, {})
_FOLD = cast(RulesMap, {"text_wrap": "nowrap"})
_PREFIX = "$dim"


class Drawing(Visual):
    """A column of parts."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._laid: tuple[int, list[Row]] = (-1, [])

    def rows(self, width: int) -> list[Row]:
        if self._laid[0] != width:
            self._laid = (width, [row for part in self._parts for row in part.laid(width)])
        return self._laid[1]

    def selected(self, selection: Selection) -> str:
        """The text under a selection that was made at the last width."""
        out = []
        for y, row in enumerate(self._laid[1]):
            span = selection.get_span(y)
            if span is not None:
                start, end = span
                text = row.body.plain[start : None if end == -1 else end]
                out.append((row.first if start == 0 else "") + text)
        return "\n".join(out)

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        rows = self.rows(container_width)
        return max((row.body.cell_length + cell_len(row.first) for row in rows), default=0)

    def get_height(self, rules: RulesMap, width: int) -> int:
        return sum(
            row.body.get_height(_FOLD if row.fold else _WRAP, _room(row, width)) for row in self.rows(width)
        )

    def render_strips(
        self, width: int, height: int | None, style: Style, options: RenderOptions
    ) -> list[Strip]:
        strips: list[Strip] = []
        mark = (style + options.get_style(_PREFIX)).rich_style
        for y, row in enumerate(self.rows(width)):
            if height is not None and len(strips) >= height:
                break
            for i, strip in enumerate(_drawn(row, y, width, style, options)):
                before = row.rest if i else row.first
                strips.append(Strip([Segment(before, mark), *strip], None) if before else strip)
        return strips[:height]


def _room(row: Row, width: int) -> int:
    return max(1, width - cell_len(row.first))


def _drawn(row: Row, y: int, width: int, style: Style, options: RenderOptions) -> list[Strip]:
    """The row's strips; each segment knows its place in the text, for selections."""
    span = options.selection.get_span(y) if options.selection is not None else None
    selection = None
    if span is not None:
        end = len(row.body) if span[1] == -1 else span[1]
        selection = Selection(Offset(span[0], 0), Offset(end, 0))
    inner = RenderOptions(
        options.get_style,
        _FOLD if row.fold else _WRAP,
        selection,
        options.selection_style,
        options.post_style,
    )
    strips = row.body.render_strips(_room(row, width), None, style, inner)
    return strips if y == 0 else [Strip(_placed(strip, y), strip.cell_length) for strip in strips]


def _placed(strip: Strip, y: int) -> list[Segment]:
    out = []
    for text, style, control in strip:
        offset = style.meta.get("offset") if style is not None and style._meta is not None else None
        if style is not None and offset is not None:
            style += RichStyle(meta={"offset": (offset[0], y)})
        out.append(Segment(text, style, control))
    return out
