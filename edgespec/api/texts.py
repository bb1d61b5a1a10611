"""Files that answers may quote: into the memory as the tokens of a model whose weights are not read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from edgespec import hub
from edgespec.api.loading import Settings
from edgespec.backends.vocabulary import read_vocabulary
from edgespec.calibration import fingerprint
from edgespec.errors import EdgespecError
from edgespec.memory import MOST_BYTES, Ids, Store
from edgespec.proposers.textindex import LEAST, LONGEST

MOST_TOKENS = MOST_BYTES // 8
"""Half of what the memory holds: other files and the answers keep the rest."""
_PART = 2048
"""Tokens that are of use, or give way, together; the next ones begin with the last that a match looks at."""
_BLOCK = 1 << 16


class TextError(EdgespecError):
    """A text is not worth keeping, or too much of it."""


class TextMemory:
    """Keeps texts where the memory proposer of `load(model, settings, memory="read")` finds them.

    `model` and `settings` as in `load`, which loads the weights; this does not. Raises what `load` does
    where it does not find the model.
    """

    def __init__(
        self, model: str | Path | None = None, settings: Settings | None = None, **changes: object
    ) -> None:
        s = (settings or Settings()).having(**changes)

        def arrived(done: int, total: int, label: str) -> None:
            s.progress(label, done / total if total else 0.0)

        path = hub.resolve(None if model is None else str(model), progress=arrived, notify=s.notify)
        self._store = Store(fingerprint(path), path.name)
        self._vocabulary, _ = read_vocabulary(path)

    def keep(
        self, text: str, name: str | None = None, progress: Callable[[float], None] = lambda _: None
    ) -> int:
        """Keep a text, instead of what was kept under its name before; without a name it is kept once.

        Returns its number of tokens. Raises TextError or MemoryStoreError, or what `progress` raises; then
        nothing was changed.
        """
        if not text.strip():
            raise TextError("it is empty")
        blocks: list[Ids] = []
        size = done = 0
        for block in _blocks(text):
            blocks.append(np.array(self._vocabulary.tokenize(block, special=False), np.int32))
            size, done = size + len(blocks[-1]), done + len(block)
            if size > MOST_TOKENS:
                raise TextError(
                    f"it is too long: it has more than {MOST_TOKENS:,} tokens, half of what the memory holds"
                )
            progress(done / len(text))
        if size <= LEAST:
            raise TextError("there is too little in it to guess from")
        tokens = np.concatenate(blocks)
        parts = [tokens[at : at + _PART] for at in range(0, max(size - LONGEST, 1), _PART - LONGEST)]
        self._store.add_file(name or hashlib.sha256(tokens.tobytes()).hexdigest(), parts)
        return size


def _blocks(text: str) -> Iterator[str]:
    """Whole lines where they are not too long, so that one can see it go on, and stop it."""
    at = 0
    while len(text) - at > _BLOCK:
        end = text.rfind("\n", at, at + _BLOCK) + 1 or at + _BLOCK
        yield text[at:end]
        at = end
    yield text[at:]
