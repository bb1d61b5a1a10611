"""A conversation with a model."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from edgespec.api.model import Model
from edgespec.errors import EdgespecError
from edgespec.text.prompt import Message, Prompt
from edgespec.types import FinishReason, Piece, SamplingSettings, StepEvent, common_prefix


@dataclass(frozen=True, slots=True)
class _Answered:
    """The last prompt and its answer as they stand in the cache: text, and the ids behind it."""

    text: str
    tokens: tuple[int, ...]


class Chat:
    """Messages, and the settings for the next answer.

    A turn evaluates only what is new: the ids of the last answer are reused as they were generated.
    """

    def __init__(self, model: Model, system: str | None, sampling: SamplingSettings) -> None:
        self.model = model
        self.sampling = sampling
        self.stop: Sequence[str] = ()
        self.max_tokens: int | None = None
        self.messages: list[Message] = [Message("system", system)] if system else []
        self.finish: FinishReason | None = None
        """How the last answer ended; "cancelled" marks a partial one."""
        self._answered: _Answered | None = None

    def send(self, text: str) -> Generator[StepEvent, None, None]:
        """Answer a user message; the answer, also a partial one, joins `messages` when it ends.

        Raises before anything is generated if the prompt cannot be made or does not fit; then the
        message is not kept.
        """
        self.messages.append(Message("user", text))
        try:
            return self._answer()
        except EdgespecError:
            self.messages.pop()
            raise

    def regenerate(self) -> Generator[StepEvent, None, None]:
        """Answer the last user message again. Raises as `send` does; then the old answer stays, as it does
        where nothing of a new one came."""
        before = list(self.messages)
        if before and before[-1].role == "assistant":
            self.messages.pop()
        try:
            return self._answer(before)
        except EdgespecError:
            self.messages[:] = before
            raise

    def restore(self, messages: Sequence[Message]) -> None:
        """Go on with this conversation, its system message first. `warm` fills the cache for it."""
        self.messages[:] = messages
        self.finish = self._answered = None

    def warm(self) -> int:
        """Evaluate all that the next prompt is sure to begin with. Returns how many tokens are cached.

        Ends early on `cancel`, keeping what is done; the next answer has to wait for its end.
        `Model.on_prefill` is told the progress. Raises PromptTooLongError and TemplateError.
        """
        if not self.messages:
            return 0
        if self.messages[-1].role == "user":
            tokens = self.model.ids(self.model.template.render(self.messages))
        else:
            # what templates make of earlier turns, and where a next one begins, shows with one behind them
            a, b = (self._ids_before(text) for text in "ab")
            tokens = a[: common_prefix(a, b)]
        return self.model.warm(tokens)

    def _ids_before(self, text: str) -> list[int]:
        return self.model.ids(self.model.template.render([*self.messages, Message("user", text)]))

    def cancel(self) -> None:
        """From any thread: end the running answer, or `warm`; what it has stays."""
        self.model.cancel()

    def _answer(self, otherwise: Sequence[Message] | None = None) -> Generator[StepEvent, None, None]:
        """`otherwise`: the messages where no answer comes."""
        prompt = self.model.template.render(self.messages)
        tokens = self._tokens(prompt)
        stream = self.model.stream(self.stop, thinking_open=prompt.thinking_open)
        events = self.model.generate(tokens, stream, self.sampling, self.max_tokens)
        return self._recorded(events, prompt, tokens, otherwise)

    def _tokens(self, prompt: Prompt) -> list[int]:
        """The prompt's ids, continuing the last answer's own where the text does."""
        if self._answered is not None:
            rest = prompt.after(self._answered.text)
            if rest is not None:
                return [*self._answered.tokens, *self.model.ids(rest)]
        return self.model.ids(prompt)

    def _recorded(
        self,
        events: Generator[StepEvent, None, None],
        prompt: Prompt,
        tokens: list[int],
        otherwise: Sequence[Message] | None,
    ) -> Generator[StepEvent, None, None]:
        pieces: list[Piece] = []
        self.finish = "cancelled"
        try:
            for event in events:
                pieces += event.pieces
                self.finish = event.finish
                yield event
        except BaseException:
            self.finish = "cancelled"
            raise
        finally:
            events.close()
            if pieces or self.finish != "cancelled":
                self._keep(pieces, prompt, tokens)
            elif otherwise is not None:
                self.messages[:] = otherwise

    def _keep(self, pieces: list[Piece], prompt: Prompt, tokens: list[int]) -> None:
        text = "".join(piece.text for piece in pieces)
        ids = [piece.token for piece in pieces]
        self.messages.append(Message("assistant", text))
        whole = self.model.detokenize(ids) == text
        self._answered = _Answered(prompt.text + text, (*tokens, *ids)) if whole else None
