"""The text of an answer as Markdown, also while it streams."""

from __future__ import annotations

import time

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.selection import Selection
from textual.widget import Widget

from edgespec_tui.markdown.drawing import Drawing
from edgespec_tui.markdown.rows import parts
from edgespec_tui.markdown.splitter import Block, Splitter, split
from edgespec_tui.text import visible

_TOGETHER = 12
"""Blocks of a section: layout cost follows the number of sections and the blocks of the last one."""
_DUTY = 0.1
"""Share of the time that redrawing the last block may take."""


class BlockView(Widget):
    """One block."""

    DEFAULT_CSS = """
    BlockView { width: 1fr; height: auto; margin-top: 1; }
    BlockView.-tight, BlockView.-top { margin-top: 0; }
    BlockView.-code { background: $surface; padding: 0 2; border-left: outer $panel; }
    BlockView.-code.-start { padding: 1 2 0 2; }
    BlockView.-code.-end { padding: 0 2 1 2; }
    BlockView.-code.-start.-end { padding: 1 2; }
    BlockView.-code:ansi { border-left: outer $border-blurred; }
    """

    def __init__(self, block: Block, *, top: bool = False) -> None:
        super().__init__()
        self.set_class(top, "-top")
        self._take(block)

    def show(self, block: Block) -> None:
        """The block has grown."""
        self._take(block)
        self.refresh(layout=True)

    def _take(self, block: Block) -> None:
        self.block = block
        self._drawing = Drawing(parts(block))
        code = block.kind == "code"
        self.set_class(block.tight, "-tight")
        self.set_class(code, "-code")
        self.set_class(code and block.first, "-start")
        self.set_class(code and block.last, "-end")

    def render(self) -> Drawing:
        return self._drawing

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return self._drawing.selected(selection), "\n"


class Section(Vertical):
    """Some blocks, which are laid out once."""

    DEFAULT_CSS = """
    Section { height: auto; }
    """


class MarkdownBody(Vertical):
    """Blocks that are closed are never touched again; only the last is drawn anew."""

    DEFAULT_CSS = """
    MarkdownBody { height: auto; }
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._splitter = Splitter()
        self._views: list[BlockView] = []
        self._frozen = 0
        self._again = 0.0
        self._waiting = False
        self._section: Section | None = None
        self._blocks = split(visible(text)) if text else []

    def compose(self) -> ComposeResult:
        for start in range(0, len(self._blocks), _TOGETHER):
            with Section():
                for i, block in enumerate(self._blocks[start : start + _TOGETHER], start):
                    yield BlockView(block, top=i == 0)

    def feed(self, text: str) -> None:
        """More text. It is drawn now, or by a later `feed`, also of nothing, where drawing takes long."""
        if text:
            self._splitter.feed(visible(text))
            self._waiting = True
        now = time.perf_counter()
        if self._waiting and now >= self._again:
            self._show(self._splitter.tail())
            took = time.perf_counter() - now
            self._again = now + took / _DUTY if took > 0.005 else 0.0

    def finish(self) -> None:
        """The text has ended."""
        self._splitter.finish()
        self._show([])

    def _show(self, tail: list[Block]) -> None:
        self._waiting = False
        closed = self._splitter.closed
        for i in range(self._frozen, len(closed) + len(tail)):
            block = closed[i] if i < len(closed) else tail[i - len(closed)]
            if i < len(self._views):
                if self._views[i].block != block:
                    self._views[i].show(block)
            else:
                self._views.append(BlockView(block, top=i == 0))
                self._place(self._views[-1], i)
        for view in self._views[len(closed) + len(tail) :]:
            view.remove()
        del self._views[len(closed) + len(tail) :]
        self._frozen = len(closed)

    def _place(self, view: BlockView, index: int) -> None:
        if self._section is None or index % _TOGETHER == 0:
            self._section = Section()
            self.mount(self._section)
        self._section.mount(view)
