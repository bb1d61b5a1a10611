"""Memory proposer: copy from earlier answers, of any conversation with this model.

The global store of SuffixDecoding (Oliaro et al. 2024), as an ordered index that takes 9 bytes a token.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from edgespec.proposers.textindex import BEYOND, LEAST, LONGEST, Text, TextIndex
from edgespec.types import NO_DRAFT, Draft, Evidence, Plan, Source, Tokens, Verdict, chain

_MOST_PLACES = 8
_SURE = 8
"""From this length on a match is followed without looking for a longer one."""
_FULL = 1 << 16

Place = tuple[TextIndex, int]


class MemoryProposer:
    """Continues the longest match with an earlier answer as most of the matches did.

    A text is an answer behind the anchor of its prompt, so that the same prompt is a match already.
    `recalled`: text number -> tokens of the present answer that went on as this text did.
    """

    name: Source = "memory"

    def __init__(self) -> None:
        self.recalled: Counter[int] = Counter()
        self.anchor: tuple[int, ...] = ()
        """Eight numbers for the present prompt, beyond all token ids."""
        self._indexes: tuple[TextIndex, ...] = ()
        self._new: list[tuple[int, Text]] = []
        self._newest: TextIndex | None = None
        self._forget()

    def take_in(self, index: TextIndex) -> None:
        """Texts of earlier runs; may be called from another thread at any time."""
        self._indexes = (index, *self._indexes)

    def remember(self, number: int, text: Text) -> None:
        """One more text, the latest."""
        self._new.append((number, text))
        self._newest = TextIndex(self._new)
        if len(self._newest) >= _FULL:
            self._indexes = (*self._indexes, self._newest)
            self._new, self._newest = [], None

    def begin(self, history: Tokens) -> None:
        self.recalled.clear()
        self.anchor = _anchor(history) if history else ()
        self._forget()
        self._prompt = len(history)

    def _forget(self) -> None:
        self._places: list[Place] = []
        self._length = self._seen = self._prompt = 0

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        self._follow(history)
        if self._length < _SURE:
            self._find(history)
        tokens, evidence = self._ahead(plan.max_draft)
        return chain(tokens, self.name, evidence) if tokens else NO_DRAFT

    def _ahead(self, most: int) -> tuple[list[int], list[Evidence]]:
        """What most of the places go on with; those that go on otherwise are left behind."""
        tokens: list[int] = []
        evidence: list[Evidence] = []
        places, length = self._places, self._length
        while len(places) > 1 and len(tokens) < most:
            ahead = [int(index.tokens[at]) for index, at in places]
            votes = Counter(token for token in reversed(ahead) if token >= 0)
            if not votes:
                return tokens, evidence
            token, times = votes.most_common(1)[0]
            tokens.append(token)
            evidence.append((float(min(length + len(evidence), LONGEST)), times / len(places), float(times)))
            places = [(i, at + 1) for (i, at), next in zip(places, ahead, strict=True) if next == token]
        for index, at in places[-1:] if len(tokens) < most else []:
            rest = index.tokens[at : at + most - len(tokens)].tolist()
            rest = rest[: rest.index(-1)] if -1 in rest else rest
            start = length + len(tokens)
            tokens += rest
            evidence += [(float(min(start + i, LONGEST)), 1.0, 1.0) for i in range(len(rest))]
        return tokens, evidence

    def _follow(self, history: Tokens) -> None:
        """Stay in the texts that went on as the answer did since the last round."""
        new = history[self._seen :] if 0 < self._seen <= len(history) else []
        self._seen = len(history)
        if not self._places:
            return
        n = len(new)
        self._places = [(i, at + n) for i, at in self._places if i.tokens[at : at + n].tolist() == new]
        self._length = min(LONGEST, self._length + n) if self._places else 0
        for index, at in self._places[-1:]:
            self.recalled[index.number(at - 1)] += n

    def _find(self, history: Tokens) -> None:
        own = history[max(self._prompt, len(history) - LONGEST) :]
        self._look_up([*self.anchor, *own])
        if not self._places and len(own) < LEAST:
            self._look_up(history[-LONGEST:])

    def _look_up(self, text: Tokens) -> None:
        tail = list(text[: -LONGEST - 1 : -1])
        indexes: Sequence[TextIndex] = (*self._indexes, self._newest) if self._newest else self._indexes
        best, places = LEAST, list[Place]()
        for index in indexes:
            length, found = index.find(tail)
            if length > best:
                best, places = length, []
            if length == best:
                places += [(index, at) for at in found]
        self._places = places[-_MOST_PLACES:]
        self._length = best if places else 0

    def observe(self, verdict: Verdict) -> None:
        pass


def _anchor(prompt: Tokens) -> tuple[int, ...]:
    digest = hashlib.blake2b(np.asarray(prompt, "<i4").tobytes(), digest_size=32).digest()
    return tuple((np.frombuffer(digest, "<u4") % BEYOND + BEYOND).tolist())
