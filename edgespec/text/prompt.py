"""Messages in, a prompt of spans out: which text may hold control tokens and which may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from edgespec.backends.base import Vocabulary

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Span:
    """Text in which the spelling of control tokens means them (`special`), or is only text."""

    text: str
    special: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered conversation.

    `thinking_open`: the end of the prompt has opened a thinking section. `continued`: follows other
    text, so that no BOS goes in front.
    """

    spans: tuple[Span, ...]
    thinking_open: bool = False
    continued: bool = False

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)

    def tokens(self, vocabulary: Vocabulary) -> list[int]:
        """Token ids, with one BOS in front if the model wants it and the template gave none."""
        ids = [token for span in self.spans for token in vocabulary.tokenize(span.text, special=span.special)]
        bos = vocabulary.bos if vocabulary.add_bos and not self.continued else None
        if bos is not None and ids[:1] != [bos]:
            ids.insert(0, bos)
        return ids

    def after(self, prefix_text: str) -> Prompt | None:
        """What follows this prefix of `text`; None if `text` does not begin with it."""
        if not prefix_text:
            return self
        if not self.text.startswith(prefix_text):
            return None
        skip, rest = len(prefix_text), []
        for span in self.spans:
            if skip < len(span.text):
                rest.append(Span(span.text[skip:], span.special))
            skip = max(0, skip - len(span.text))
        return Prompt(tuple(rest), self.thinking_open, continued=True)
