"""Telling a model's thinking from its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgespec.backends.base import Vocabulary

_ALL = 1 << 62

Kind = Literal["answer", "thinking"]


@dataclass(frozen=True, slots=True)
class ThinkingTags:
    """The texts around a thinking section."""

    open: str
    close: str


HARMONY = ThinkingTags(
    "<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"
)
KNOWN = (
    ThinkingTags("<think>", "</think>"),
    ThinkingTags("<thinking>", "</thinking>"),
    ThinkingTags("<thought>", "</thought>"),
    ThinkingTags("<reasoning>", "</reasoning>"),
    ThinkingTags("<seed:think>", "</seed:think>"),
    ThinkingTags("<|START_THINKING|>", "<|END_THINKING|>"),
    ThinkingTags("<|channel>thought", "<channel|>"),
    ThinkingTags("[THINK]", "[/THINK]"),
    ThinkingTags("◁think▷", "◁/think▷"),
)


def find_tags(template: str, vocabulary: Vocabulary) -> ThinkingTags | None:
    """The tags that the template mentions, or else that the vocabulary has as tokens of their own."""
    if "<|channel|>" in template:
        return HARMONY
    for tags in KNOWN:
        if tags.open in template or tags.close in template:
            return tags
    for tags in KNOWN:
        if all(len(vocabulary.tokenize(tag, special=True)) == 1 for tag in (tags.open, tags.close)):
            return tags
    return None


class KindTracker:
    """Gives every character of a stream its kind; tags are thinking.

    An opening tag counts only before the first visible text of the answer: later it is something
    that the answer talks about. Only text that may still become an opening tag is undecided.
    """

    def __init__(self, tags: ThinkingTags | None, *, open: bool = False) -> None:
        self._tags = tags or ThinkingTags("", "")
        self._thinking = open and tags is not None
        self._tail = ""
        self._total = 0
        self._turns: list[int] = []
        self._first: Kind = "thinking" if self._thinking else "answer"
        self.decided = tags is None
        """All further text is answer."""

    @property
    def known(self) -> int:
        """Characters whose kind is certain."""
        if self.decided:
            return _ALL
        return self._total if self._thinking else self._total - len(self._tail)

    def push(self, text: str) -> None:
        if self.decided:
            return
        self._total += len(text)
        rest: str | None = self._tail + text
        self._tail = ""
        while rest is not None and not self.decided:
            rest = self._inside(rest) if self._thinking else self._before(rest)

    def finish(self) -> None:
        """End of the text: what was undecided is answer."""
        self.decided = True

    def kind(self, begin: int, text: str) -> Kind:
        """Kind of a token with this text at this offset: thinking if all that is visible of it is."""
        if not any(begin < turn < begin + len(text) for turn in self._turns):
            return self._at(begin)
        kinds = {self._at(begin + i) for i, char in enumerate(text) if not char.isspace()}
        if not kinds:
            return self._at(begin)
        return "answer" if "answer" in kinds else "thinking"

    def _at(self, offset: int) -> Kind:
        turned = sum(turn <= offset for turn in self._turns) % 2
        return self._first if not turned else "answer" if self._first == "thinking" else "thinking"

    def _inside(self, text: str) -> str | None:
        close = self._tags.close
        at = text.find(close)
        if at < 0:
            keep = range(max(0, len(text) - len(close) + 1), len(text))
            self._tail = next((text[i:] for i in keep if close.startswith(text[i:])), "")
            return None
        rest = text[at + len(close) :]
        self._thinking = False
        self._turns.append(self._total - len(rest))
        return rest

    def _before(self, text: str) -> str | None:
        visible = text.lstrip()
        if visible.startswith(self._tags.open):
            self._thinking = True
            self._turns.append(self._total - len(visible))
            return visible[len(self._tags.open) :]
        if self._tags.open.startswith(visible):
            self._tail = visible
        else:
            self.decided = True
        return None
