"""Many texts in 9 bytes a token, found by how they go on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Text = NDArray[np.int32]

LONGEST = 32
"""Matches are compared no further back."""
LEAST = 3
BEYOND = 1 << 30
"""No token id is as large; from here on a number may stand for what comes before a text."""
_ORDERED = 8
_NEAR = 24
_END = -1


class TextIndex:
    """Positions of the texts in the order of the eight tokens before them, the last of these first.

    A suffix array (Manber and Myers 1990) of the reversed texts, ordered by a byte of each token's hash:
    neighbours are candidates, which the tokens themselves confirm. `texts`: (a number to know it by,
    int32 `[n]`), at most 2^31 tokens.
    """

    def __init__(self, texts: Sequence[tuple[int, Text]]) -> None:
        end = np.array([_END], np.int32)
        parts: list[Text] = [np.full(LONGEST, _END, np.int32)]
        for _, text in texts:
            parts += [text, end]
        self.tokens: Text = np.concatenate(parts)
        self._numbers = [number for number, _ in texts]
        self._starts = np.cumsum([LONGEST, *(len(text) + 1 for _, text in texts)])
        codes = _codes(self.tokens)
        self._codes = codes.tobytes()
        self._order = self._ordered(codes)

    def __len__(self) -> int:
        return len(self.tokens)

    def _ordered(self, codes: NDArray[np.uint8]) -> Text:
        inside = (self.tokens >= 0) & (self.tokens < BEYOND)
        for back in range(1, LEAST + 1):
            inside[back:] &= self.tokens[:-back] >= 0
        inside[:LONGEST] = False
        at = np.flatnonzero(inside)
        key = np.zeros(len(at), np.uint64)
        for back in range(1, _ORDERED + 1):
            key = (key << np.uint64(8)) | codes[at - back]
        order: Text = at[np.argsort(key)].astype(np.int32)
        return order

    def find(self, tail: Sequence[int]) -> tuple[int, list[int]]:
        """(length, positions) of the longest matches with a text whose last tokens are `tail`, the last
        of them first. The positions are those of what follows, later texts later; none below `LEAST`.
        """
        last = np.array(tail[:LONGEST], np.int32)
        key = int.from_bytes(_codes(last[_ORDERED - 1 :: -1]).tobytes().rjust(_ORDERED, b"\0"), "little")
        place = bisect_right(self._order, key, key=self._key)
        near = np.sort(self._order[max(0, place - _NEAR) : place + _NEAR // 4])
        if not len(near):
            return 0, []
        same = self.tokens[near[:, None] - 1 - np.arange(len(last))] == last
        lengths = np.logical_and.accumulate(same, axis=1).sum(axis=1)
        length = int(lengths.max())
        return (length, near[lengths == length].tolist()) if length >= LEAST else (0, [])

    def _key(self, position: int) -> int:
        return int.from_bytes(self._codes[position - _ORDERED : position], "little")

    def number(self, position: int) -> int:
        """Of the text that a position is in."""
        return self._numbers[int(np.searchsorted(self._starts, position, side="right")) - 1]


def _codes(tokens: Text) -> NDArray[np.uint8]:
    codes: NDArray[np.uint8] = ((tokens.astype(np.uint32) * np.uint32(2654435761)) >> np.uint32(24)).astype(
        np.uint8
    )
    return codes
