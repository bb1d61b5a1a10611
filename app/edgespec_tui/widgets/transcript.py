"""The conversation. Only the part that is looked at exists as widgets."""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import VerticalScroll
from textual.widget import Widget

from edgespec.history import Turn
from edgespec_tui.widgets.message import AnswerMessage, MessageView, UserMessage

_AT_ONCE = 10
"""Messages that are mounted together."""


class Transcript(VerticalScroll, can_focus=False):
    """Messages from `first` on; scrolling to the top brings earlier ones."""

    DEFAULT_CSS = """
    Transcript { padding: 1 2 0 2; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    """

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._turns: Sequence[Turn] = ()
        self.first = 0
        self._earlier = False

    def on_mount(self) -> None:
        self.anchor()

    @property
    def views(self) -> list[MessageView]:
        return list(self.query_children(MessageView))

    @property
    def last_answer(self) -> AnswerMessage | None:
        return next((view for view in reversed(self.views) if isinstance(view, AnswerMessage)), None)

    async def open(self, turns: Sequence[Turn]) -> None:
        """Show a conversation from its end."""
        self._turns = turns
        self.first = max(0, len(turns) - _AT_ONCE)
        with self.app.batch_update():
            await self.remove_children()
            await self.mount(*(view(i, turns[i]) for i in range(self.first, len(turns))))
        self.follow()

    async def cut(self, n: int) -> None:
        """Keep the first n turns; what stands between messages goes with them."""
        gone: list[Widget] = []
        for child in self.children:
            if gone or (isinstance(child, MessageView) and child.index >= n):
                gone.append(child)
        if gone:
            await self.remove_children(gone)

    async def add(self, *widgets: Widget) -> None:
        """Messages or a note at the end."""
        await self.mount(*widgets)

    def follow(self) -> None:
        """Stay at the end from now on."""
        self.anchor()
        self.scroll_end(animate=False, immediate=False)

    def release_anchor(self) -> None:
        """What fits on the screen stays at the prompt."""
        if self.max_scroll_y > 0:
            super().release_anchor()

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        if new < 4 and old > new and self.first > 0 and not self._earlier:
            self._earlier = True
            self.call_later(self._show_earlier)

    async def _show_earlier(self) -> None:
        start = max(0, self.first - _AT_ONCE)
        before = self.virtual_size.height
        top = next(iter(self.children), None)
        await self.mount(*(view(i, self._turns[i]) for i in range(start, self.first)), before=top)
        self.first = start

        def settle() -> None:
            self.scroll_to(y=self.scroll_y + self.virtual_size.height - before, animate=False)
            self._earlier = False

        self.call_after_refresh(settle)


def view(index: int, turn: Turn) -> MessageView:
    """The widget of a turn."""
    return UserMessage(index, turn) if turn.role == "user" else AnswerMessage(index, turn)
