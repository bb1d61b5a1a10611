"""Stories told to the app through Textual's pilot, on the scripted backend."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence

from edgespec_tui.app import ChatApp
from edgespec_tui.choices import Choices, Start
from edgespec_tui.widgets.body import BlockView
from edgespec_tui.widgets.message import MessageView
from textual.content import Content
from textual.pilot import Pilot

from edgespec import SamplingSettings
from edgespec.api.demo import scripted
from edgespec.errors import Cancelled
from edgespec.history import Conversation, Figures, Run, Turn

Story = Callable[[ChatApp, Pilot], Awaitable[None]]
GREEDY = SamplingSettings(temperature=0.0)
PATIENCE = 30.0


class Gate:
    """Lets so many passes of the model through, then holds it until it is opened or cancelled.

    `seconds`: of a pass, whatever its rows, so that drafting pays also on a busy machine.
    """

    def __init__(self, passes: int, seconds: float = 0.0) -> None:
        self._left, self._seconds = passes, seconds
        self.open = threading.Event()

    def __call__(self, rows: int) -> float:
        self._left -= 1
        return self._seconds if self._left >= 0 or self.open.is_set() else 3600.0


def tell(
    story: Story,
    answers: Sequence[str] = ("An answer.",),
    *,
    size: tuple[int, int] = (100, 32),
    conversation: Conversation | None = None,
    choices: Choices | None = None,
    save: Callable[[str | None, Choices], None] = lambda *_: None,
    loader=None,
    wait: bool = True,
    history: bool = True,
    first_run: bool = False,
    **model,
) -> ChatApp:
    """Run the app, and the story in it. Returns the app after its end."""

    def usual(reference, choices, notify):
        return lambda progress: scripted(answers, notify=notify, **{"spec": choices.spec, **model})

    async def run() -> ChatApp:
        start = Start(
            loader or usual,
            "scripted",
            choices or Choices(sampling=GREEDY, seed=1),
            save=save,
            conversation=conversation,
            history=history,
            first_run=first_run,
        )
        app = ChatApp(start)
        app.animation_level = "none"
        async with app.run_test(size=size, notifications=True) as pilot:
            app.composer.prompt.cursor_blink = False
            if wait:
                await until(pilot, lambda: app.engine.model is not None and not app.engine.busy)
            await story(app, pilot)
        assert app.close()
        return app

    return asyncio.run(run())


async def until(pilot: Pilot, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait for something that the app will do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        await pilot.pause(0.02)
    await pilot.pause()


async def say(pilot: Pilot, text: str) -> None:
    """Type a message and send it."""
    app = pilot.app
    assert isinstance(app, ChatApp)
    app.composer.load(text)
    await pilot.pause()
    app.composer.prompt.focus()
    await pilot.press("escape") if app.composer.suggesting else None
    await pilot.press("enter")
    await pilot.pause()


async def ask(pilot: Pilot, text: str) -> None:
    """Send a message and wait for the end of its answer."""
    app = pilot.app
    assert isinstance(app, ChatApp)
    await say(pilot, text)
    await until(pilot, lambda: not app.talk.answering and not app.engine.busy)
    await pilot.pause(0.1)


def drawn(app: ChatApp) -> str:
    """What the screen shows, line by line."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines)


def shown(view) -> str:
    """The text of a message's widgets, drawn or not."""
    parts = []
    for widget in view.walk_children():
        if isinstance(widget, BlockView):
            rows = widget._drawing.rows(max(20, widget.size.width))
            parts += [row.first + row.body.plain for row in rows]
        else:
            content = getattr(widget, "content", None)
            if isinstance(content, (Content, str)):
                parts.append(str(content))
    return "\n".join(parts)


def texts(app: ChatApp) -> list[str]:
    """Every message and note, from top to bottom."""
    return [
        shown(child) if isinstance(child, MessageView) else str(getattr(child, "content", ""))
        for child in app.transcript.children
    ]


def toasts(app: ChatApp) -> list[str]:
    return [notification.message for notification in app._notifications]


def conversation(n: int = 2, answer: str = "It is *red* light.", **fields) -> Conversation:
    """A conversation with n turns and the same figures always."""
    figures = Figures(40, 24, 12, 0, 16, 12, 0.21, 0.4)
    runs = (Run(6, "target"), Run(5, "suffix"), Run(len(answer) - 11, "draft"))
    turns = [
        Turn("user", f"Question {i // 2}?", 100.0 + i)
        if i % 2 == 0
        else Turn("assistant", answer, 100.0 + i, "complete", "Model", "stop", figures, runs)
        for i in range(n)
    ]
    return Conversation(tuple(turns), **fields)


def failing(message: str, error=Cancelled):
    """A loader that fails."""

    def loader(*_):
        def load(progress):
            raise error(message)

        return load

    return loader
