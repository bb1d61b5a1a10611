"""An answer word by word, in the colours of who proposed it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from edgespec_tui.provenance import Stretch, legend, painted, shares

_CHUNK = 600
"""Characters after which the next line begins a new widget; the old ones are never drawn again."""


class ProvenanceBody(Vertical):
    """The whole answer, then what `feed` brings."""

    DEFAULT_CSS = """
    ProvenanceBody { height: auto; }
    ProvenanceBody > .legend { color: $dim; margin-bottom: 1; }
    """

    def __init__(self, pieces: Iterable[Stretch]) -> None:
        super().__init__()
        self._legend = Static(classes="legend", markup=False)
        self._all: list[Stretch] = []
        self._chunk: list[Stretch] = []
        self._length = 0
        self._view: Static | None = None
        self._before: list[Static] = []
        for piece in _lines(pieces):
            if self._add(piece):
                self._before.append(Static(self._painted(), markup=False))
                self._chunk, self._length = [], 0
        if self._chunk:
            self._view = Static(self._painted(), markup=False)
            self._before.append(self._view)

    def compose(self) -> ComposeResult:
        self._legend.update(legend(shares(self._all)))
        yield self._legend
        yield from self._before

    def feed(self, pieces: Iterable[Stretch]) -> None:
        """More of the answer."""
        for piece in _lines(pieces):
            if self._add(piece):
                self._draw()
                self._view, self._chunk, self._length = None, [], 0
        if self._chunk:
            self._draw()
        self._legend.update(legend(shares(self._all)))

    def _add(self, piece: Stretch) -> bool:
        """Is the chunk full?"""
        self._all.append(piece)
        self._chunk.append(piece)
        self._length += len(piece.text)
        return self._length >= _CHUNK and piece.text.endswith("\n")

    def _draw(self) -> None:
        if self._view is None:
            self._view = Static(self._painted(), markup=False)
            self.mount(self._view)
        else:
            self._view.update(self._painted())

    def _painted(self) -> Content:
        content = painted(self._chunk)
        return content[:-1] if content.plain.endswith("\n") else content


def _lines(pieces: Iterable[Stretch]) -> Iterable[Stretch]:
    """Stretches cut at their last line end, so that chunks can begin there."""
    for piece in pieces:
        cut = piece.text.rfind("\n") + 1
        for text in (piece.text[:cut], piece.text[cut:]):
            if text:
                yield Stretch(text, piece.source, piece.thinking)
