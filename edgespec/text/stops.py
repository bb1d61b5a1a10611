"""Stop strings in a stream of text."""

from __future__ import annotations

from collections.abc import Iterable


class StopFilter:
    """Passes text on, cut at the first stop string (the one that begins earliest).

    Text that may still become a stop string is withheld, all other text leaves at once, so that the
    results joined are the whole text cut at its first stop string, however it was split.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(dict.fromkeys(stop for stop in stops if stop))
        self._longest = max(map(len, self._stops), default=0)
        self._heads = frozenset(stop[0] for stop in self._stops)
        self._held = ""
        self.stopped = False
        self.passed = 0
        """Characters that were passed on."""

    def push(self, text: str) -> str:
        """The text that is certain now. After a stop always ""."""
        if self.stopped:
            return ""
        self._held += text
        match = self._first_match()
        possible = self._first_possible()
        if 0 <= match <= possible:
            return self._stop(match)
        return self._release(possible)

    def finish(self) -> str:
        """End of the text: what was withheld, cut at a stop string if there is one."""
        match = self._first_match()
        return self._stop(match) if match >= 0 else self._release(len(self._held))

    def _first_match(self) -> int:
        found = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        return min(found, default=-1)

    def _first_possible(self) -> int:
        """Where the text begins that is the beginning of a stop string; its length if nowhere."""
        held = self._held
        for at in range(max(0, len(held) - self._longest + 1), len(held)):
            if held[at] in self._heads and any(
                len(stop) > len(held) - at and stop.startswith(held[at:]) for stop in self._stops
            ):
                return at
        return len(held)

    def _release(self, length: int) -> str:
        out, self._held = self._held[:length], self._held[length:]
        self.passed += len(out)
        return out

    def _stop(self, at: int) -> str:
        self.stopped = True
        out = self._release(at)
        self._held = ""
        return out
