"""Markdown that is still being written, split into blocks that never change once they are closed.

What streams is then only ever the last block: drawing costs the same at the end of a long answer as at
its beginning.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, replace
from typing import Literal

CODE_LINES = 24
"""A longer fence becomes several blocks."""

_FENCE = re.compile(r"( *)(`{3,}|~{3,})\s*([^`]*)$")
_ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])( +|$)")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")


@dataclass(frozen=True, slots=True)
class Block:
    """`source`: Markdown of prose, or the lines of code between the fences.

    `first`, `last`: of the parts of a fence. `tight`: no space above, it continues a list or a fence.
    """

    kind: Literal["prose", "code"]
    source: str
    language: str = ""
    first: bool = True
    last: bool = False
    tight: bool = False


class Splitter:
    """Text in, blocks out."""

    def __init__(self) -> None:
        self.closed: list[Block] = []
        self._line = ""
        self._open: Block | None = None
        self._lines = 0
        self._fence = ""
        self._indent = 0
        self._nested = ""
        self._item: int | None = None
        self._marker = ""
        self._blank = False

    def feed(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._take(line)

    def tail(self) -> list[Block]:
        """The blocks after `closed`, as they would be if the text ended here."""
        if not self._line:
            return [self._open] if self._open else []
        trial = copy.copy(self)
        trial.closed = []
        trial._take(self._line)
        return trial.closed + ([trial._open] if trial._open else [])

    def finish(self) -> list[Block]:
        """All blocks."""
        if self._line:
            self._take(self._line)
        self._line = ""
        self._close()
        return self.closed

    def _take(self, line: str) -> None:
        if self._fence:
            self._code(line)
        elif self._nested:
            self._append(line)
            if line.strip().startswith(self._nested) and not line.strip().strip(self._nested[0]):
                self._nested = ""
        elif not line.strip():
            if self._open is not None:
                self._append(line)
                self._blank = True
        else:
            self._text(line)

    def _text(self, line: str) -> None:
        indent = len(line) - len(line.lstrip(" "))
        fence = _FENCE.fullmatch(line)
        if self._open is not None and self._item is not None and indent >= self._item:
            self._append(line)
            self._nested = fence[2] if fence else ""
        elif fence and indent <= 3:
            self._close()
            self._fence, self._indent, self._lines = fence[2], indent, 0
            self._open = Block("code", "", fence[3].strip())
        elif item := _ITEM.match(line):
            kind = "1" if item[2][0].isdigit() else item[2]
            self._start(line, tight=self._item is not None and kind == self._marker)
            self._marker = kind
            spaces = len(item[3])
            self._item = len(item[0]) if 1 <= spaces <= 4 else len(item[1]) + len(item[2]) + 1
            inner = _FENCE.fullmatch(line[self._item :])
            self._nested = inner[2] if inner else ""
        elif _HEADING.match(line):
            self._start(line)
            self._close()
        elif self._open is None or self._blank:
            self._start(line)
        else:
            self._append(line)

    def _code(self, line: str) -> None:
        assert self._open is not None
        stripped = line.strip()
        if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
            self._fence = ""
            self._open = replace(self._open, last=True)
            self._close()
            return
        if self._lines == CODE_LINES:
            self.closed.append(self._open)
            self._open = Block("code", "", self._open.language, first=False, tight=True)
            self._lines = 0
        cut = min(self._indent, len(line) - len(line.lstrip(" ")))
        self._open = replace(self._open, source=self._open.source + line[cut:] + "\n")
        self._lines += 1

    def _append(self, line: str) -> None:
        assert self._open is not None
        self._blank = False
        self._open = replace(self._open, source=self._open.source + line + "\n")

    def _start(self, line: str, *, tight: bool = False) -> None:
        self._close()
        self._open = Block("prose", line + "\n", tight=tight)

    def _close(self) -> None:
        if self._open is not None:
            self.closed.append(self._open)
        self._open, self._item, self._blank, self._nested = None, None, False, ""


def split(text: str) -> list[Block]:
    """The blocks of a whole text."""
    splitter = Splitter()
    splitter.feed(text)
    return splitter.finish()
