"""An answer on its way into the history."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

from edgespec import Chat, Message, StepEvent, hub
from edgespec.history import Conversation, Figures, Recorder

_BEFORE = 0.5
"""Seconds that an answer waits for its question to be on the disk."""


class KeptChat:
    """A chat whose turns the recorder gets as they happen."""

    def __init__(self, chat: Chat, recorder: Recorder) -> None:
        self.chat, self.recorder = chat, recorder

    def resume(self, conversation: Conversation) -> None:
        """Go on with a conversation; the chat's own system message wins over the one it had."""
        system = [message for message in self.chat.messages if message.role == "system"]
        self.chat.restore([*system, *(Message(turn.role, turn.content) for turn in conversation.turns)])

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
