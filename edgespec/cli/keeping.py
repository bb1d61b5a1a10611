"""An answer on its way into the history."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path

from edgespec import Chat, Message, StepEvent, hub
from edgespec.history import Conversation, Figures, Recorder

_BEFORE = 0.5
"""Seconds that an answer waits for its question to be on the disk."""


class KeptChat:
    """A chat whose turns the recorder gets as they happen; it goes on with `conversation`.

    The system message is the chat's, not the one that the conversation had.
    """

    def __init__(self, chat: Chat, conversation: Conversation | None, *, on: bool) -> None:
        self.chat = chat
        self._notices: list[str] = []
        self.recorder = Recorder(conversation=conversation, notify=self._notices.append, on=on)
        system = [message for message in chat.messages if message.role == "system"]
        self.recorder.describe(system=system[0].content if system else None)
        if conversation is not None:
            chat.restore([*system, *(Message(turn.role, turn.content) for turn in conversation.turns)])

    def tell(self, say: Callable[[str], None]) -> None:
        """What went wrong with the history, at a moment when it disturbs no answer."""
        while self._notices:
            say(self._notices.pop(0))

    def send(self, text: str) -> Generator[StepEvent, None, None]:
        """As `Chat.send`; a message that is refused is not kept."""
        events = self.chat.send(text)
        self.recorder.ask(text)
        return self._answer(events, again=False)

    def regenerate(self) -> Generator[StepEvent, None, None]:
        """As `Chat.regenerate`."""
        return self._answer(self.chat.regenerate(), again=True)

    def _answer(
        self, events: Generator[StepEvent, None, None], *, again: bool
    ) -> Generator[StepEvent, None, None]:
        model = self.chat.model
        self.recorder.answering(Path(model.info.path).stem, again=again)
        self.recorder.flush(_BEFORE)
        try:
            for event in events:
                self.recorder.add(event.pieces)
                yield event
        finally:
            events.close()
            self.recorder.answered(self.chat.finish, Figures.of(model.stats))


def reference(model: str | None) -> str:
    """What finds the model again from any folder."""
    if model is None:
        return hub.default_card().name
    return os.path.abspath(model) if os.path.exists(model) else model  # noqa: PTH100, PTH110 - links stay
