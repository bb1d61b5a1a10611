"""A block's Markdown as rows: a line of styled text each, with what stands before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from textual.content import Content, Span
from textual.style import Style

from edgespec_tui.markdown.code import highlighted
from edgespec_tui.markdown.splitter import Block

_BULLETS = "•◦▪"
_INLINE = {"strong": "bold", "em": "italic", "s": "strike"}
_HEADINGS = {1: "bold $primary", 2: "bold $primary", 3: "bold"}


@dataclass(frozen=True, slots=True)
class Row:
    """`first` stands before its first drawn line, `rest` before the others. `fold`: break anywhere."""

    body: Content
    first: str = ""
    rest: str = ""
    fold: bool = False

    def laid(self, width: int) -> list[Row]:
        return [self]


class Part(Protocol):
    """Something that becomes rows once the width is known."""

    def laid(self, width: int) -> list[Row]: ...


@cache
def _parser() -> MarkdownIt:
    # Without HTML, tags stay what they are: text.
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def parts(block: Block) -> list[Part]:
    """What to draw for a block."""
    if block.kind == "code":
        return code_rows(block.source, block.language)
    root = SyntaxTreeNode(_parser().parse(block.source))
    return list(_Walk().blocks(root.children, "", ""))


def code_rows(source: str, language: str, first: str = "", rest: str = "") -> list[Part]:
    lines = highlighted(source.removesuffix("\n"), language)
    return [Row(line, first if i == 0 else rest, rest, fold=True) for i, line in enumerate(lines)]


class _Walk:
    """Goes down a syntax tree; `first` is spent on the first row below, `rest` stands before all others."""

    def __init__(self) -> None:
        self._depth = 0

    def blocks(self, nodes: Sequence[SyntaxTreeNode], first: str, rest: str) -> Iterator[Part]:
        for i, node in enumerate(nodes):
            if i and not (self._depth and node.type.endswith("_list")):
                yield Row(Content(""), rest.rstrip(), rest)
            yield from self._block(node, first if i == 0 else rest, rest)

    def _block(self, node: SyntaxTreeNode, first: str, rest: str) -> Iterator[Part]:
        match node.type:
            case "paragraph":
                yield from _text_rows(node, "", first, rest)
            case "heading":
                yield from _text_rows(node, _HEADINGS.get(int(node.tag[1:]), "bold $dim"), first, rest)
            case "bullet_list" | "ordered_list":
                yield from self._list(node, first, rest)
            case "blockquote":
                yield from self.blocks(node.children, first + "▎ ", rest + "▎ ")
            case "fence" | "code_block":
                yield from code_rows(node.content, node.info.strip(), first, rest)
            case "hr":
                yield _Rule(first)
            case "table":
                from edgespec_tui.markdown.table import Table

                yield Table(*_cells(node), first, rest)
            case _:
                yield from _text_rows(node, "", first, rest)

    def _list(self, node: SyntaxTreeNode, first: str, rest: str) -> Iterator[Part]:
        number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        self._depth += 1
        for i, item in enumerate(node.children):
            bullet = _BULLETS[min(self._depth, len(_BULLETS)) - 1]
            mark = f" {bullet} " if number is None else f"{number + i:>2}. "
            before = first if i == 0 else rest
            if item.children:
                yield from self.blocks(item.children, before + mark, rest + " " * len(mark))
            else:
                yield Row(Content(""), before + mark, rest)
        self._depth -= 1


@dataclass(frozen=True, slots=True)
class _Rule:
    first: str

    def laid(self, width: int) -> list[Row]:
        line = "─" * max(1, width - len(self.first))
        return [Row(Content(line, [Span(0, len(line), "$dim 60%")]), self.first, self.first, fold=True)]


def _text_rows(node: SyntaxTreeNode, style: str, first: str, rest: str) -> Iterator[Row]:
    for child in node.children:
        content = inline(child.token) if child.type == "inline" and child.token else Content(child.content)
        for i, line in enumerate(content.split("\n", allow_blank=True)):
            yield Row(line.stylize_before(style) if style else line, first if i == 0 else rest, rest)


def _cells(node: SyntaxTreeNode) -> tuple[list[Content], list[list[Content]]]:
    lines = [
        [inline(cell.children[0].token) if cell.children else Content("") for cell in row.children]
        for part in node.children
        for row in part.children
    ]
    return lines[0], lines[1:]


def inline(token: Token | None) -> Content:
    """Text with emphasis, code and links; a hard break is a new line."""
    text: list[str] = []
    spans: list[Span] = []
    opened: list[tuple[int, str | Style]] = []
    style: str | Style
    at = 0

    def add(piece: str, *styles: str | Style) -> None:
        nonlocal at
        spans.extend(Span(at, at + len(piece), style) for style in styles)
        text.append(piece)
        at += len(piece)

    for child in (token.children or []) if token else []:
        kind, _, edge = child.type.rpartition("_")
        if child.type == "code_inline":
            add(child.content, "$text-accent on $surface")
        elif child.type in ("softbreak", "hardbreak"):
            add(" " if child.type == "softbreak" else "\n")
        elif child.type == "image":
            add(f"[image: {child.content or child.attrs.get('src', '')}]", "$dim")
        elif edge == "open":
            opened.append((at, "underline $text-primary" if kind == "link" else _INLINE.get(kind, "")))
            if kind == "link":
                opened.append((at, Style(link=str(child.attrs.get("href", "")))))
        elif edge == "close":
            for _ in range(2 if kind == "link" else 1):
                start, style = opened.pop()
                spans.append(Span(start, at, style))
        else:
            add(re.sub(r"\s+", " ", child.content))
    return Content("".join(text), spans)
