"""A draft model with another vocabulary, in the target's ids.

Token-level intersection (Timor et al. 2025, "Accelerating LLM Inference with Lossless Speculative Decoding
Algorithms for Heterogeneous Vocabularies"): tokens that stand for the same bytes are one token, and the draft
says none but these. What the target said is read to the draft in the draft's own tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Literal

import numpy as np

from edgespec.backends.base import Backend, Capabilities, Vocabulary
from edgespec.errors import BackendError
from edgespec.types import FloatArray, Tokens

SAMPLE = """\
The lighthouse keeper's daughter asked: "Why don't the ships come back?" Nobody answered, but everyone knew.
In 1987 about 12,500 people lived here; today it's under 3,000 (a decline of 76%). See https://example.org/a.

def mean(values: list[float]) -> float:
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)

| name | size |
|---|---|
- **First**, install the package: `pip install -r requirements.txt`
"""


@dataclass(frozen=True, slots=True)
class Overlap:
    """`shared` of the draft's `n_draft` ids are the target's too; `alike`: share of the target's tokens of a
    sample text that the draft would cut the same way, which is as often as a perfect draft could be right.
    """

    shared: int
    n_draft: int
    alike: float

    def __str__(self) -> str:
        return (
            f"{self.shared:,} of its {self.n_draft:,} tokens are the target's, "
            f"{self.alike:.0%} of the tokens of a sample text"
        )


class Translation:
    """Ids of a target in those of a draft, and rows the other way round.

    `spoken`: pairs (draft id, target id), one for every text that both have a token for.
    """

    def __init__(self, target: Vocabulary, draft: Vocabulary) -> None:
        self._target, self._draft = target, draft
        self.n_target = target.n_vocab
        self.bos = draft.bos if draft.add_bos else None
        """What every text begins with for the draft."""
        own, self._theirs = _names(target), _names(draft)
        said = {token: own[name] for name, token in self._theirs.items() if name in own}
        free = draft.eos not in said and target.eos not in said.values()
        if free and draft.eos is not None and target.eos is not None:
            said[draft.eos] = target.eos
        self.spoken = tuple(sorted(said.items()))
        self._from, self._to = np.array(self.spoken, np.intp).reshape(-1, 2).T.copy()
        self._read: dict[int, tuple[int, ...]] = {ours: (theirs,) for theirs, ours in self.spoken}
        if target.bos is not None and draft.bos is not None:
            self._read[target.bos] = (draft.bos,)

    def read(self, token: int) -> tuple[int, ...]:
        """The target's token in the draft's, at least one."""
        known = self._read.get(token)
        if known is None:
            known = self._read[token] = self._spelled(token)
        return known

    def _spelled(self, token: int) -> tuple[int, ...]:
        piece = self._target.piece(token)
        same = self._theirs.get(piece or self._target.text(token))
        if same is not None:
            return (same,)
        try:
            text = piece.decode() if piece else self._target.text(token)
        except UnicodeDecodeError:  # a part of a character
            return tuple(self._theirs.get(bytes([byte]), 0) for byte in piece)
        return tuple(self._draft.tokenize(text, special=False)) or (0,)

    def say(self, row: FloatArray, out: FloatArray) -> None:
        """The draft's logits `[n_draft]` into `out` `[n_target]`, which stays as it is where none are."""
        out[self._to] = row[self._from]

    def overlap(self) -> Overlap:
        target, draft = (set(_cuts(v)) for v in (self._target, self._draft))
        return Overlap(len(self.spoken), self._draft.n_vocab, len(target & draft) / len(target))


def _names(vocabulary: Vocabulary) -> dict[bytes | str, int]:
    """Bytes, or the spelling of a control token -> id; the last one, which is a word before it is a byte."""
    ids = range(vocabulary.n_vocab)
    return {vocabulary.piece(token) or vocabulary.text(token): token for token in ids}


def _cuts(vocabulary: Vocabulary) -> Iterator[tuple[int, int]]:
    """(bytes after it, bytes) of each token of the sample; from its end, as some put a space in front."""
    sizes = [len(vocabulary.piece(token)) for token in vocabulary.tokenize(SAMPLE, special=False)]
    return zip(accumulate([0, *reversed(sizes)]), reversed(sizes), strict=False)


class TranslatedBackend:
    """A draft model as a backend of the target's ids: rows are -inf where it has no such token.

    One of the target's tokens may be several of the draft's; where these do not fit, the last stands for all:
    what a draft model reads changes how often it is right, and nothing else.
    """

    def __init__(self, backend: Backend, translation: Translation, *, trees: bool = True) -> None:
        self._backend, self._translation, self._trees = backend, translation, trees
        self.n_vocab = translation.n_target
        self.n_ctx = 0
        """The target's tokens that fit, if each still to come is one of the draft's."""
        self._ends: list[int] = []  # the draft's tokens in the cache after each of the target's
        self._parts: list[range] = []  # rows of each token of the last pass
        self._out = np.full((1, self.n_vocab), -np.inf, np.float32)
        self._count()

    def _count(self) -> None:
        first = not self._ends and self._translation.bos is not None
        self.n_ctx = self._backend.n_ctx - (self._backend.length - len(self._ends)) - first

    @property
    def capabilities(self) -> Capabilities:
        able = self._backend.capabilities
        return able if self._trees else replace(able, tree=False)

    @property
    def length(self) -> int:
        return len(self._ends)

    def forward(
        self,
        tokens: Tokens,
        parents: Sequence[int] | None = None,
        *,
        rows: Literal["all", "last", "none"] = "all",
    ) -> FloatArray:
        read = self._fitted([self._translation.read(token) for token in tokens], rows)
        ends = list(accumulate(map(len, read)))
        parts = [range(end - len(part), end) for end, part in zip(ends, read, strict=True)]
        inner = None if parents is None else _grown(parts, parents)
        found = self._backend.forward(list(chain.from_iterable(read)), inner, rows=rows)
        self._parts = parts
        return self._said(found[[part[-1] for part in parts]] if rows == "all" else found)

    def _fitted(self, read: list[tuple[int, ...]], rows: str) -> list[tuple[int, ...]]:
        bos = self._translation.bos
        if not self._ends and bos is not None and read[0] != (bos,):
            read[0] = (bos, *read[0])
        n = sum(map(len, read))
        fits = self._backend.length + n <= self._backend.n_ctx
        if fits and not (rows == "all" and n > self._backend.capabilities.max_rows):
            return read
        return [part[-1:] for part in read]

    def _said(self, found: FloatArray) -> FloatArray:
        if len(self._out) < len(found):
            self._out = np.full((len(found), self.n_vocab), -np.inf, np.float32)
        out: FloatArray = self._out[: len(found)]
        for i, row in enumerate(found):
            self._translation.say(row, out[i])
        return out

    def commit(self, keep: Sequence[int]) -> None:
        kept = [self._parts[i] for i in keep]
        before = self._backend.length
        self._backend.commit(list(chain.from_iterable(kept)))
        self._ends += [before + n for n in accumulate(map(len, kept))]
        self._count()

    def truncate(self, length: int) -> None:
        if not 0 <= length <= len(self._ends):
            raise BackendError(f"cannot cut {len(self._ends)} tokens to {length}")
        self._backend.truncate(self._ends[length - 1] if length else 0)
        del self._ends[length:]
        self._count()

    def abort(self, on: bool) -> None:
        self._backend.abort(on)

    def close(self) -> None:
        self._backend.close()


def _grown(parts: Sequence[range], parents: Sequence[int]) -> list[int]:
    """Parents of rows, each part being a chain."""
    grown: list[int] = []
    for part, parent in zip(parts, parents, strict=True):
        grown += [parts[parent][-1] if parent >= 0 else -1, *part[:-1]]
    return grown
