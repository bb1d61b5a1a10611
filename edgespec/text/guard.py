"""Keeps the text of messages from becoming control tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from edgespec.backends.base import Vocabulary
from edgespec.text.prompt import Span
from edgespec.text.thinking import ThinkingTags

_PRIVATE = (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE), *range(0x100000, 0x10FFFE))


def control_texts(vocabulary: Vocabulary) -> list[str]:
    """The spellings of all control tokens, and of the end and unknown tokens."""
    texts = [
        vocabulary.text(token)
        for token in range(vocabulary.n_vocab)
        if vocabulary.is_control(token) or token == vocabulary.eos
    ]
    typed = vocabulary.tokenize("<unk>", special=True)
    if len(typed) == 1 and typed != vocabulary.tokenize("<unk>", special=False):
        texts.append("<unk>")
    return [text for text in texts if text and not text.isspace()]


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(set(texts), key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


class Guard:
    """Marks the spellings of control tokens in messages with two characters, `begin` and `end`, that
    no message holds, and cuts a rendered text into spans there.

    Thinking tags are guarded in what people write; an assistant's are its own.
    """

    def __init__(self, vocabulary: Vocabulary, tags: ThinkingTags | None) -> None:
        controls = control_texts(vocabulary)
        own = (tags.open, tags.close) if tags else ()
        typed = [*controls, *(tag for tag in own if len(vocabulary.tokenize(tag, special=True)) == 1)]
        self._control = _any_of(controls)
        self._typed = _any_of(typed)
        self._own = re.compile(f"({_any_of(own).pattern})")
        self._heads = {text[0] for text in typed if not (text[0].isalnum() or text[0].isspace())}
        self._dotted = {ord(head): "\u00b7" for head in self._heads}
        self._broken = {ord(head): head + "\u200b" for head in self._heads}
        self._vocabulary = vocabulary
        self._pieces: dict[str, tuple[str, ...]] = {}

    def concerns(self, contents: Iterable[str]) -> bool:
        """Whether any of these could have to do with a control token."""
        return any(
            any(head in content for head in self._heads) or self._typed.search(content)
            for content in contents
        )

    def mark(self, content: str, marks: tuple[str, str], *, own: bool) -> str:
        """`content` with every spelling in marks; `own` leaves thinking tags alone, here and below."""
        begin, end = marks
        return self._changed(
            content, lambda text: self._typed.sub(lambda m: f"{begin}{m[0]}{end}", text), own
        )

    def harmless(self, content: str, *, own: bool) -> str:
        """A text of the same shape that cannot hold a control token."""
        return self._changed(
            content,
            lambda text: self._typed.sub(lambda m: "." * len(m[0]), text.translate(self._dotted)),
            own,
        )

    def broken(self, content: str, *, own: bool) -> str:
        """`content` with an invisible space in every possible control token: the last resort."""
        return self._changed(content, lambda text: text.translate(self._broken), own)

    def _changed(self, content: str, change: Callable[[str], str], own: bool) -> str:
        if not own:
            return change(content)
        parts = self._own.split(content)
        parts[::2] = map(change, parts[::2])
        return "".join(parts)

    def count(self, spans: Iterable[Span]) -> int:
        """Control tokens that the spans spell out."""
        return sum(len(self._control.findall(span.text)) for span in spans if span.special)

    def split(self, text: str, marks: tuple[str, str]) -> list[Span] | None:
        """Spans of a rendered text, None if its marks are not in pairs."""
        begin, end = marks
        spans = []
        outside, *marked = text.split(begin)
        if end in outside:
            return None
        spans.append(Span(outside, True))
        for part in marked:
            inside, *rest = part.split(end)
            if len(rest) != 1:
                return None
            spans += [Span(piece, False) for piece in self._plain_pieces(inside)]
            spans.append(Span(rest[0], True))
        return [span for span in spans if span.text]

    def _plain_pieces(self, text: str) -> list[str]:
        """`text` cut so that no piece becomes a control token although it is tokenised as plain text."""
        out, at = [""], 0
        for match in self._typed.finditer(text):
            out[-1] += text[at : match.start()]
            first, *others = self._safe(match[0])
            out[-1] += first
            out += others
            at = match.end()
        out[-1] += text[at:]
        return out

    def _safe(self, spelling: str) -> tuple[str, ...]:
        known = self._pieces.get(spelling)
        if known is None:
            # some tokenizers know user-defined tokens even in plain text
            alone = len(self._vocabulary.tokenize(spelling, special=False)) == 1 and len(spelling) > 1
            known = self._pieces[spelling] = (spelling[0], spelling[1:]) if alone else (spelling,)
        return known


def private_marks(contents: Iterable[str]) -> tuple[str, str]:
    """Two private-use characters that none of the texts holds."""
    used = {char for content in contents for char in set(content)}
    free = (char for char in map(chr, _PRIVATE) if char not in used)
    return next(free), next(free)
