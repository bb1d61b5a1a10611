"""The conversation behind the screen: what was said, how to answer, where it is kept. No widgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgespec import Message
from edgespec.errors import UsageError
from edgespec.history import Conversation, Figures, Recorder, Turn
from edgespec.types import FinishReason
from edgespec_tui.choices import Choices
from edgespec_tui.engine import Engine, Pieces, Question, name_of


class Talk:
    """One conversation at a time."""

    def __init__(self, engine: Engine, recorder: Recorder, choices: Choices) -> None:
        self.engine = engine
        self.recorder = recorder
        self.choices = choices
        self.answering = False
        recorder.describe(system=choices.system or None)

    @property
    def conversation(self) -> Conversation:
        return self.recorder.conversation

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self.conversation.turns

    def send(self, content: str) -> None:
        """The user's turn, and the request for its answer."""
        self.recorder.ask(content)
        self._ask()

    def last_message(self) -> int:
        """The place of the user's last message. Raises UsageError."""
        turns = self.turns
        for i in range(len(turns) - 1, -1, -1):
            if turns[i].role == "user":
                return i
        raise UsageError("there is no message yet")

    def again(self) -> None:
        """Answer the last message again; the old answer goes when the new one comes."""
        self._ask(again=True)

    def cut(self, n: int) -> None:
        """Keep the first n turns."""
        self.recorder.cut(n)

    def add(self, news: Pieces) -> None:
        self.recorder.add(news.pieces)

    def ended(self, finish: FinishReason | None, figures: Figures | None) -> Turn | None:
        """The answer has ended; its turn, None if nothing of it was kept."""
        if not self.answering:
            return None
        self.answering = False
        before = self.turns[-1:]
        self.recorder.answered(finish, figures)
        last = self.turns[-1:]
        ended = last and last[0].role == "assistant" and (last != before or last[0].state == "partial")
        return last[0] if ended else None

    def begin(self, conversation: Conversation | None = None) -> None:
        """Go over to another conversation, None to a new one."""
        self.recorder.begin(conversation)
        if conversation is None:
            self.recorder.describe(system=self.choices.system or None)
        else:
            self.choices = replace(self.choices, system=conversation.system or "")
            self.warm()

    def warm(self) -> None:
        """Evaluate the conversation in the background."""
        if self.turns and self.engine.model is not None:
            self.engine.warm(self._messages(self.turns))

    def choose(self, choices: Choices) -> None:
        """Other settings from the next answer on."""
        if choices.system != self.choices.system:
            self.recorder.describe(system=choices.system or None)
        self.choices = choices

    def _ask(self, *, again: bool = False) -> None:
        model, turns = self.engine.model, self.turns
        if again and turns[-1].role == "assistant":
            turns = turns[:-1]
        self.recorder.answering(name_of(model) if model else None, again=again)
        self.answering = True
        choices = self.choices
        self.engine.ask(Question(self._messages(turns), choices.seeded(), choices.max_tokens, choices.stop))

    def _messages(self, turns: Sequence[Turn]) -> tuple[Message, ...]:
        """What the model is told: a message that never got an answer is not, unless it is the last."""
        system = self.choices.system
        messages = [Message("system", system)] if system else []
        for i, turn in enumerate(turns):
            answered = i + 1 == len(turns) or turns[i + 1].role == "assistant"
            if turn.role == "assistant" or answered:
                messages.append(Message(turn.role, turn.content))
        return tuple(messages)
