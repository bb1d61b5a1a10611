"""What was answered becomes what may be copied: the memory proposer, and what it keeps on the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue

import numpy as np

from edgespec.memory import MemoryStoreError, Store
from edgespec.proposers.memory import MemoryProposer
from edgespec.proposers.textindex import Text, TextIndex

_SHORTEST = 16
"""Answers of fewer tokens are not worth keeping."""
_SAME = 0.9
_USEFUL = 16
_LATEST = 64
"""Texts that are there at once."""
_PART = 1 << 21
_PAUSE = 3.0
"""Seconds between parts: a third of a second of work each, beside the first answer."""
_PATIENCE = 2.0


class Remembering:
    """Feeds a `MemoryProposer`. `store` None: answers of this run only. `keep` False: nothing is written.

    A thread reads the store, while answers go on, and writes to it; what fails there is told once.
    """

    def __init__(self, store: Store | None, *, keep: bool, notify: Callable[[str], None]) -> None:
        self.proposer = MemoryProposer()
        self._store, self._keep, self._notify = store, keep, notify
        self._told = False
        self._new = 0
        self._numbers: dict[int, int] = {}
        self._closing = threading.Event()
        self._jobs: SimpleQueue[Callable[[Store], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="edgespec-memory", daemon=True)
        if store is not None:
            self._jobs.put(self._load)
            self._thread.start()

    def answered(self, tokens: Sequence[int]) -> None:
        """An answer has ended, whole or not. One that repeats an earlier one is not kept twice."""
        recalled = dict(self.proposer.recalled)
        useful = [number for number, n in recalled.items() if n >= _USEFUL]
        if self._keep and useful:
            self._jobs.put(lambda store: store.used([self._numbers.get(n, n) for n in useful]))
        if len(tokens) < _SHORTEST or max(recalled.values(), default=0) >= _SAME * len(tokens):
            return
        self._new -= 1
        kept = [*self.proposer.anchor, *tokens]
        number, text = self._new, np.array(kept, np.int32)
        self.proposer.remember(number, text)
        if self._keep:
            self._jobs.put(lambda store: self._numbers.update({number: store.add(kept)}))

    def close(self) -> None:
        """Wait for the disk, a little. May be called again."""
        self._closing.set()
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join(_PATIENCE)

    def _work(self) -> None:
        assert self._store is not None
        while (job := self._jobs.get()) is not None:
            try:
                job(self._store)
            except MemoryStoreError as error:
                if not self._told:
                    self._told = True
                    self._notify(str(error))

    def _load(self, store: Store) -> None:
        latest = store.load(_LATEST)
        if latest:
            self.proposer.take_in(TextIndex(latest[::-1]))
        if len(latest) < _LATEST or self._closing.wait(_PAUSE):
            return
        known = {number for number, _ in latest}
        for part in _parts([text for text in store.load() if text[0] not in known]):
            self.proposer.take_in(TextIndex(part))
            if self._closing.wait(_PAUSE):
                return


def _parts(texts: list[tuple[int, Text]]) -> Iterator[list[tuple[int, Text]]]:
    """The latest first, each part in the order in which its texts were used."""
    part: list[tuple[int, Text]] = []
    size = 0
    for text in texts:
        part.append(text)
        size += len(text[1])
        if size >= _PART:
            yield part[::-1]
            part, size = [], 0
    if part:
        yield part[::-1]
