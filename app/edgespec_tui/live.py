"""Fetches what the engine has done, many times a second, and brings it to the screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from edgespec.errors import EdgespecError
from edgespec.history import Turn
from edgespec_tui.engine import Failed, Finished, Loaded, Notice, Pieces
from edgespec_tui.figures import memory, speedup
from edgespec_tui.provenance import Stretch
from edgespec_tui.text import one_line
from edgespec_tui.widgets.message import AnswerMessage
from edgespec_tui.widgets.panel import Reading

if TYPE_CHECKING:
    from edgespec_tui.app import ChatApp

_DUTY = 0.05
"""Most of the time that drawing may take while an answer runs: on a busy machine there are fewer pictures."""
_REST = 0.3
"""Longest time without one, in seconds."""
_EVERY = 0.25
"""Seconds between points of the panel's curves."""


class Live:
    """The running answer on the screen."""

    def __init__(self, app: ChatApp) -> None:
        self._app = app
        self._view: AnswerMessage | None = None
        self._undrawn: list[Stretch] = []
        self._sampled = 0.0
        self._counts = (0, 0.0, 0, 0)
        self._rate = 0.0
        self._acceptance: float | None = None
        self.stopping = False
        self._paused = False
        self._rested = 0.0

    def pause(self) -> None:
        """Leave the screen as it is."""
        self._paused = True

    def expect(self, index: int) -> AnswerMessage:
        """An answer is about to come, as turn `index`. The caller puts its widget on the screen."""
        app = self._app
        name = app.model_name or "Assistant"
        self._view = AnswerMessage(index, Turn("assistant", "", time.time(), "partial", name), live=True)
        self._counts, self._rate, self._acceptance, self.stopping = (0, 0.0, 0, 0), 0.0, None, False
        return self._view

    def forget(self) -> None:
        """The conversation is another one; what still comes of the answer has no place."""
        self.drain()
        if self._app.talk.answering:
            self._app.talk.ended("cancelled", None)
        self._view, self._undrawn = None, []

    def drain(self) -> None:
        """Take pieces that are there into the record, without drawing."""
        while self._app.engine.news:
            news = self._app.engine.news.popleft()
            if isinstance(news, Pieces):
                self._app.talk.add(news)

    async def tick(self) -> None:
        """Called by a timer."""
        app = self._app
        if (
            self._paused
            or not app.transcript.is_attached
            or (self._view is not None and not self._view.is_mounted)
        ):
            return
        while app.engine.news:
            news = app.engine.news.popleft()
            if not isinstance(news, Pieces):
                self._draw()
                await self._take(news)
            elif self._view is not None:
                app.talk.add(news)
                self._undrawn += [Stretch(p.text, p.source, p.kind == "thinking") for p in news.pieces]
        if self.stopping and app.engine.busy:
            app.engine.stop()
        if time.perf_counter() >= self._rested:
            self._picture()

    def _picture(self) -> None:
        """Draw what is new, then rest in proportion to the time that took, waiting for others included."""
        app, began = self._app, time.perf_counter()
        self._draw()
        if time.perf_counter() - self._sampled > _EVERY:
            self._sample()
            self.read()
        stats = app.engine.model.stats if app.engine.model else None
        app.status.show(app.engine.activity, self._rate, stats.tokens if stats else 0, self._hint())
        if self._view is not None:
            self._rested = began + _REST
            app.call_after_refresh(self._rest, began)

    def _rest(self, began: float) -> None:
        now = time.perf_counter()
        self._rested = now + min((now - began) * (1 / _DUTY - 1), _REST)

    def _draw(self) -> None:
        if self._view is not None:
            stretches, self._undrawn = self._undrawn, []
            self._view.feed(stretches)

    async def _take(self, news: Loaded | Finished | Failed | Notice) -> None:
        app = self._app
        if isinstance(news, Finished):
            await self._finish(news)
        elif isinstance(news, Failed):
            await self._fail(news)
        elif isinstance(news, Loaded):
            app.talk.recorder.describe(model=app.reference)
            app.talk.warm()
            app.measure()
            self.read()
        else:
            app.notify(one_line(news.text), markup=False)

    async def _finish(self, news: Finished) -> None:
        view, self._view = self._view, None
        if view is None:
            return
        turn = self._app.talk.ended(news.finish, news.figures)
        if turn is None:
            await self._app.show_conversation()
            await self._app.tell("Stopped before the first word. Ctrl+R answers it.")
        else:
            view.end(turn)
        self._app.measure()

    async def _fail(self, news: Failed) -> None:
        app = self._app
        if self._view is not None:
            self._view = None
            app.talk.ended(None, None)
            await app.show_conversation()
        if news.message == "stopped" and news.doing == "loading":
            await app.tell("Loading was cancelled. /model loads a model.")
        elif news.message != "stopped":
            await app.tell_error(news.message)

    def _hint(self) -> str:
        app = self._app
        if app.engine.model is None and not app.engine.busy:
            return "no model is loaded: /model NAME loads one"
        return ""

    def _sample(self) -> None:
        """Rate and acceptance since the last look."""
        app = self._app
        self._sampled = time.perf_counter()
        if app.engine.model is None or app.engine.activity.phase != "answering":
            return
        stats = app.engine.model.stats
        now = (stats.tokens, stats.t_decode, stats.draft_n, stats.draft_n_accepted)
        tokens, seconds, drafted, accepted = (a - b for a, b in zip(now, self._counts, strict=True))
        self._counts = now
        if seconds > 0:
            self._rate = tokens / seconds
            self._acceptance = accepted / drafted if drafted > 0 else None
            app.panel.sample(self._rate, self._acceptance)

    def read(self) -> None:
        """Bring bar and panel up to date."""
        app = self._app
        model = app.engine.model
        top = app.top
        if model is None:
            top.show(app.model_name, "", "", 0, 0)
            app.panel.show(Reading(reason="no model is loaded"))
            return
        try:
            status, context = model.status, model.context_used
        except EdgespecError:
            return
        state = f"● {status.proposer} ×{status.depth}" if status.on else "○ plain"
        conversation = app.talk.conversation
        top.show(app.model_name, conversation.name, state, context, model.n_ctx)
        stats = model.stats
        app.panel.show(
            Reading(
                rate=stats.tokens_per_second or None,
                acceptance=stats.acceptance_rate,
                length=stats.mean_acceptance_length or None,
                speedup=speedup(stats.tokens, status.figures),
                on=status.on,
                proposer=status.proposer,
                depth=status.depth,
                reason=status.reason,
                numerics=model.rows.mode,
                context=context,
                n_ctx=model.n_ctx,
                memory=memory(),
            )
        )
