"""How far a download is, how fast it goes, and how long it will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from edgespec.hub.store import Progress, amount

_WINDOW = 5.0  # seconds that the rate looks back
_STEP = 0.25  # seconds between its points


class Meter:
    """Turns counts of bytes into a label with amount, rate and time left.

    `total`: bytes of all files; `base`: bytes of those that are done, added to what is told of the next.
    """

    def __init__(
        self, progress: Progress, name: str, total: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name, self.total, self.base = name, total, 0
        self._progress, self._clock = progress, clock
        self._points: deque[tuple[float, int]] = deque()

    def moved(self, done: int) -> None:
        """So many bytes of the present file are here."""
        done += self.base
        now = self._clock()
        if self._points and done < self._points[-1][1]:
            self._points.clear()
        if not self._points or now - self._points[-1][0] >= _STEP:
            self._points.append((now, done))
        while now - self._points[0][0] > _WINDOW and len(self._points) > 1:
            self._points.popleft()
        label = f"downloading {self.name}, {amount(done)} of {amount(self.total)}"
        began, before = self._points[0]
        if now - began >= _STEP and done > before:
            rate = (done - before) / (now - began)
            label += f", {rate / 1e6:.1f} MB/s, {duration((self.total - done) / rate)} left"
        self._progress(done, self.total, label)

    def other(self, what: str, done: int) -> None:
        """Something else is done with the bytes, such as "unpacking"."""
        self._points.clear()
        self._progress(self.base + done, self.total, f"{what} {self.name}")


def duration(seconds: float) -> str:
    """A time to wait in one or two units."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
