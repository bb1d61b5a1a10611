"""Emitted tokens in, released pieces of text out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from edgespec.backends.base import Vocabulary
from edgespec.text.detokenizer import Detokenizer
from edgespec.text.stops import StopFilter
from edgespec.text.thinking import KindTracker, ThinkingTags
from edgespec.types import Piece, Source


@dataclass(slots=True)
class _Waiting:
    """A token whose text, at offset `begin`, is not released; it needs the first `need` characters."""

    token: int
    source: Source
    position: int
    text: str
    begin: int
    need: int


class TokenStream:
    """One piece per token, in order, as soon as all of its text is certain.

    `stops`: the text ends before the first of them. `thinking`: the model's tags, None for a model
    without; `thinking_open` when the prompt already opened the section. A token that ends inside a
    character waits for the rest of that character.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        stops: Sequence[str] = (),
        thinking: ThinkingTags | None = None,
        thinking_open: bool = False,
    ) -> None:
        self._vocabulary = vocabulary
        self._tags = thinking
        self._detokenizer = Detokenizer(vocabulary)
        self._filter = StopFilter(stops)
        self._has_stops = any(stops)
        self._kinds = KindTracker(thinking, open=thinking_open)
        self._waiting: deque[_Waiting] = deque()
        self._total = 0
        self.released = 0
        """Tokens whose pieces were released."""

    @property
    def stopped(self) -> bool:
        """A stop string was completed; nothing is released any more."""
        return self._filter.stopped

    def push(self, token: int, source: Source, position: int) -> list[Piece]:
        """The pieces that are released by this token, often just its own."""
        if self._filter.stopped:
            return []
        text = self._detokenizer.feed(self._bytes(token))
        incomplete = self._detokenizer.incomplete
        if not (self._has_stops or self._waiting or incomplete) and self._kinds.decided:
            self._total += len(text)
            self.released += 1
            return [Piece(token, text, source, position)]
        begin = self._total
        self._waiting.append(_Waiting(token, source, position, text, begin, begin + len(text) + incomplete))
        self._take(text)
        return self._release()

    def finish(self) -> list[Piece]:
        """End of the answer: everything held, U+FFFD for an incomplete character."""
        if self._filter.stopped:
            return []
        text = self._detokenizer.flush()
        if text:
            self._waiting[-1].text += text
        self._take(text)
        if not self._filter.stopped:
            self._filter.finish()
        self._kinds.finish()
        return self._release()

    def _bytes(self, token: int) -> bytes:
        data = self._vocabulary.piece(token)
        if not data and self._tags is not None:
            # tags of some models are control tokens, which have no bytes
            name = self._vocabulary.text(token)
            if name and (name in self._tags.open or name in self._tags.close):
                return name.encode()
        return data

    def _take(self, text: str) -> None:
        self._total += len(text)
        self._filter.push(text)
        self._kinds.push(text)

    def _release(self) -> list[Piece]:
        certain = self._filter.passed if self._has_stops else self._total
        limit = min(certain, self._kinds.known)
        pieces = []
        while self._waiting and self._waiting[0].need <= limit:
            pieces.append(self._piece(self._waiting.popleft()))
        if self._filter.stopped:
            for waiting in self._waiting:
                if waiting.begin < certain:
                    waiting.text = waiting.text[: certain - waiting.begin]
                    pieces.append(self._piece(waiting))
            self._waiting.clear()
        self.released += len(pieces)
        return pieces

    def _piece(self, waiting: _Waiting) -> Piece:
        kind = self._kinds.kind(waiting.begin, waiting.text)
        return Piece(waiting.token, waiting.text, waiting.source, waiting.position, kind)
