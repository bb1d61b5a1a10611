"""Text of a target in the tokens of a draft and back, for vocabularies that cut it differently."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate, islice, takewhile

import numpy as np

from edgespec.backends.base import Vocabulary
from edgespec.proposers.translated import SAMPLE, Translation
from edgespec.types import Tokens, common_prefix

_BACK = 4
"""Common ends before a change that are cut anew: how a text is cut may hang on what follows it."""

MOST_DRAWN = 2.5
"""Of the draft's tokens for one of the target's: a draft that spells letters is seldom small enough."""
LEAST_BACK = 0.9
"""A draft that does not tell capitals from small letters, or knows no line ends, says another text."""

_FREQUENT = 50_000
"""Ids of a vocabulary that are used often."""

_MOSTLY = 0.9
"""The share of longer tokens that a draft does not have from which on it is not taken to have chosen."""

Mark = tuple[int, int, int]
"""(the target's tokens, the draft's tokens, size of the text) up to where both end a token."""


class Cutter:
    """Bytes into the tokens of a vocabulary, whatever the bytes are."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        pieces = ((vocabulary.piece(token), token) for token in range(vocabulary.n_vocab))
        self._single = {piece[0]: token for piece, token in pieces if len(piece) == 1}

    def __call__(self, data: bytes) -> tuple[list[int], list[int]]:
        """(tokens, where each ends in the data). Parts of characters go byte by byte."""
        tokens: list[int] = []
        ends: list[int] = []
        at = 0
        for part, text in _stretches(data):
            if text is None:
                known = [
                    (self._single[byte], i) for i, byte in enumerate(part, at + 1) if byte in self._single
                ]
                tokens += [token for token, _ in known]
                ends += [end for _, end in known]
            else:
                found = self._vocabulary.tokenize(text, special=False)
                sums = list(accumulate(len(self._vocabulary.piece(token)) for token in found))
                # Some tokenizers put a space in front.
                extra = sums[-1] - len(part) if sums else 0
                tokens += found
                ends += [at + min(max(end - extra, 0), len(part)) for end in sums]
            at += len(part)
        return tokens, ends


def _stretches(data: bytes) -> Iterator[tuple[bytes, str | None]]:
    """Valid text as long as possible, and what is none between it."""
    while data:
        try:
            yield data, data.decode()
            return
        except UnicodeDecodeError as error:
            if error.start:
                yield data[: error.start], data[: error.start].decode()
            yield data[error.start : error.end], None
            data = data[error.end :]


def complete(data: bytes) -> int:
    """How many of these bytes are there before a character that is still incomplete."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if size > back else len(data)
        if byte < 0x80:
            break
    return len(data)


@dataclass(frozen=True, slots=True)
class Spelling:
    """Of a sample text: how many of the draft's tokens are `drawn` for one of the target's, and the share of
    the target's tokens that come `back` when the draft has said it.
    """

    drawn: float
    back: float

    @property
    def pays(self) -> bool:
        return self.drawn <= MOST_DRAWN and self.back >= LEAST_BACK

    def __str__(self) -> str:
        return (
            f"one of the target's takes {self.drawn:.2f} of its own, {self.back:.0%} come back from its text"
        )


class Retokenisation:
    """Two vocabularies: the target's text in the draft's tokens, the draft's in the target's."""

    def __init__(self, target: Vocabulary, draft: Vocabulary, translation: Translation) -> None:
        self.target, self.draft = target, draft
        self.translation = translation
        self.to_target, self.to_draft = Cutter(target), Cutter(draft)
        self._said = dict(translation.spoken)
        self.longer: dict[bytes, list[int]] = defaultdict(list)
        """What the target says as tokens of its own -> the draft's tokens that begin with it and go on."""
        frequent = ((target.piece(token), token) for token in range(min(target.n_vocab, _FREQUENT)))
        self._words = sorted(word for word in frequent if word[0])
        self._known = {draft.piece(token) for token in range(draft.n_vocab)}
        self.is_open = lru_cache(maxsize=4096)(self._is_open)
        self.first = np.zeros(draft.n_vocab, np.int64)
        """Of each of the draft's tokens: the target's that it begins with, `[n_draft]`."""
        for token in range(draft.n_vocab):
            piece = draft.piece(token)
            same = self._said.get(token) if piece else self.ending(token)
            if same is not None or not piece:
                self.first[token] = same or 0
                continue
            begins, ends = self.to_target(piece)
            self.first[token] = begins[0] if begins else 0
            for end in ends:
                if 0 < end < len(piece):
                    self.longer[piece[:end]].append(token)

    def ending(self, token: int) -> int | None:
        """What a token of the draft's that adds no text is for the target; the end where it has none such."""
        return self._said.get(token, self.target.eos)

    def _is_open(self, said: bytes, last: bytes) -> bool:
        """May what the target spells `said` be one longer token once the draft goes on from its `last`?

        Not if the draft has single tokens for some of these: then it would have said one. The lower its id,
        the more often a token is used.
        """
        first = bisect_left(self._words, (said, self.target.n_vocab))
        longer = takewhile(lambda word: word[0].startswith(said), islice(self._words, first, None))
        weights = [(1.0 / (i + 1), last + piece[len(said) :] in self._known) for piece, i in longer]
        missing = sum(weight for weight, has in weights if not has)
        return missing > _MOSTLY * sum(weight for weight, _ in weights)

    def spelling(self) -> Spelling:
        wanted, _ = self.to_target(SAMPLE.encode())
        drawn, _ = self.to_draft(SAMPLE.encode())
        found, _ = self.to_target(b"".join(map(self.draft.piece, drawn)))
        same = sum(block.size for block in SequenceMatcher(None, wanted, found, False).get_matching_blocks())
        return Spelling(len(drawn) / len(wanted), same / len(wanted))


class Reader:
    """The target's history in the draft's tokens, cut anew from a little before what is new."""

    def __init__(self, pair: Retokenisation) -> None:
        self._pair = pair
        self._said: list[int] = []
        self._read: list[int] = []
        self._marks: list[Mark] = []

    def __call__(self, history: Tokens) -> list[int]:
        """The draft's tokens; the list is this reader's."""
        same, marks = common_prefix(self._said, history), self._marks
        if same == len(history) == len(self._said):
            return self._read
        if not same:
            bos = self._pair.translation.bos
            named = bos is None or self._pair.translation.read(history[0]) == (bos,)
            self._read = [] if named or bos is None else [bos]
            marks[:] = [(0, len(self._read), 0)]
        while len(marks) > 1 and marks[-1][0] > same:
            marks.pop()
        self._go_on(history, marks[max(0, len(marks) - 2 * _BACK)], marks[max(0, len(marks) - _BACK)])
        self._said = list(history)
        return self._read

    def _go_on(self, history: Tokens, before: Mark, here: Mark) -> None:
        """Read on from `here`, in the light of what is there since `before`."""
        tokens, ends, theirs = self._cut(history[before[0] :])
        at = {end: i for i, end in enumerate(ends, 1)}
        skipped = at.get(here[2] - before[2])
        if skipped is None:
            here, skipped = before, 0
        del self._read[here[1] :]
        self._read += tokens[skipped:]
        self._marks[bisect_right(self._marks, here) :] = [
            (before[0] + i, here[1] + at[end] - skipped, before[2] + end)
            for i, end in enumerate(theirs, 1)
            if before[2] + end > here[2] and end in at
        ]

    def _cut(self, said: Tokens) -> tuple[list[int], list[int], list[int]]:
        """(the draft's tokens, where each ends, where each of the target's ends).

        A control token is as long as one byte. Where it is several of the draft's, only the last ends it.
        """
        tokens: list[int] = []
        ends: list[int] = []
        theirs: list[int] = []
        run, at = bytearray(), 0

        def flush() -> None:
            found, sizes = self._pair.to_draft(bytes(run))
            tokens.extend(found)
            ends.extend(at - len(run) + size for size in sizes)
            run.clear()

        for token in said:
            piece = self._pair.target.piece(token)
            if not piece:
                flush()
                read = self._pair.translation.read(token)
                tokens.extend(read)
                ends.extend([-1] * (len(read) - 1) + [at + 1])
            run += piece
            at += len(piece) or 1
            theirs.append(at)
        flush()
        return tokens, ends, theirs
