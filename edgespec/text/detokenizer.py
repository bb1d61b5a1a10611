"""Bytes of tokens to text, one token at a time."""

from __future__ import annotations

import codecs

from edgespec.backends.base import Vocabulary


class Detokenizer:
    """Incremental UTF-8: the concatenation of all results is the decoding of all bytes.

    Invalid bytes give U+FFFD as `bytes.decode(errors="replace")` does, never an exception.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._piece = vocabulary.piece
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def incomplete(self) -> bool:
        """True while the last bytes are the beginning of a character."""
        return bool(self._decoder.getstate()[0])

    def push(self, token: int) -> str:
        """The text that this token completes, "" while a character is incomplete."""
        return self._decoder.decode(self._piece(token))

    def feed(self, data: bytes) -> str:
        """As `push`, for bytes."""
        return self._decoder.decode(data)

    def flush(self) -> str:
        """End of the text: one U+FFFD for an incomplete character, else ""."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text
