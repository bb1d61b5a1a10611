"""Native work on a thread of its own, so that the main thread sees signals at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import Self, TypeVar

from edgespec.errors import Cancelled

T = TypeVar("T")
_POLL = 0.04


def _nothing() -> None:
    pass


class Worker:
    """One thread; jobs run on it one after another while the main thread waits and listens.

    The first SIGINT or SIGTERM asks the job to stop, again and again until it ends. A second one, or
    the end of the job's patience, ends the process. `tick` is called while waiting.
    """

    def __init__(self, tick: Callable[[], None] = _nothing) -> None:
        self._thread = ThreadPoolExecutor(1, "edgespec")
        self._tick = tick
        self.goodbyes: list[Callable[[], None]] = []
        """Called before the process is ended."""
        self.signal: int | None = None
        """What arrived during the last job."""

    @property
    def exit_code(self) -> int:
        return 0 if self.signal is None else 128 + self.signal

    def check(self) -> None:
        """For jobs that can be left by an exception: raises Cancelled once a signal has arrived."""
        if self.signal is not None:
            raise Cancelled("interrupted")

    def run(
        self, job: Callable[[], T], stop: Callable[[], None] = _nothing, *, patience: float | None = None
    ) -> T:
        """The job's result. `patience`: seconds that it may take to stop, None without limit."""
        self.signal = None
        waited = 0.0
        with self._listening():
            future = self._thread.submit(job)
            while not wait([future], timeout=_POLL).done:
                self._tick()
                if self.signal is not None:
                    stop()
                    waited += _POLL
                    if patience is not None and waited > patience:
                        self._leave()
            return future.result()

    @contextmanager
    def beside(self, job: Callable[[], None], stop: Callable[[], None]) -> Iterator[None]:
        """The job runs while the body does, and is stopped with it."""
        future = self._thread.submit(job)
        try:
            yield
        finally:
            stop()
            while not wait([future], timeout=_POLL).done:
                stop()

    @contextmanager
    def _listening(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        wanted = [s for s in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(s) is not signal.SIG_IGN]
        before = {s: signal.signal(s, self._received) for s in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _received(self, number: int, _: FrameType | None) -> None:
        if self.signal is not None:
            self._leave()
        self.signal = number

    def _leave(self) -> None:
        """End the process without waiting for native code."""
        for goodbye in self.goodbyes:
            goodbye()
        os._exit(self.exit_code)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
