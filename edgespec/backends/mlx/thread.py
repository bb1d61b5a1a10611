"""The thread that MLX runs on, whoever calls.

What MLX keeps for a thread it takes down after Python has seen the thread end, and needs Python for it. When
the interpreter is shutting down by then, the process is aborted. So its thread never ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache
from queue import SimpleQueue
from typing import Any, Literal, TypeVar

from edgespec.backends.base import Backend, Capabilities
from edgespec.types import FloatArray, Tokens

T = TypeVar("T")


class Lane:
    """Does one thing after another on a thread of its own, for as long as the process lives."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="mlx", daemon=True)
        self._thread.start()

    def run(self, job: Callable[[], T]) -> T:
        """The job's result, or what it raised. Waits for jobs that came before."""
        done: Future[T] = Future()
        self._jobs.put((job, done))
        return done.result()

    def _work(self) -> None:
        while True:
            job, done = self._jobs.get()
            try:
                done.set_result(job())
            except BaseException as error:
                done.set_exception(error)
            # The next job may be long in coming, and the last one's model should be gone until then.
            del job, done


@cache
def lane() -> Lane:
    """The process's one."""
    return Lane()


class OnLane:
    """A `Backend` whose passes run on the lane."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._lane = backend, lane()
        self.n_vocab, self.n_ctx = backend.n_vocab, backend.n_ctx
        self.abort = backend.abort

    @property
    def capabilities(self) -> Capabilities:
        return self._backend.capabilities

    @property
    def length(self) -> int:
        """Tokens that are committed to the cache."""
        return self._backend.length

    def forward(
        self,
        tokens: Tokens,
        parents: Sequence[int] | None = None,
        *,
        rows: Literal["all", "last", "none"] = "all",
    ) -> FloatArray:
        """See `Backend.forward`."""
        return self._lane.run(lambda: self._backend.forward(tokens, parents, rows=rows))

    def commit(self, keep: Sequence[int]) -> None:
        """See `Backend.commit`."""
        self._lane.run(lambda: self._backend.commit(keep))

    def truncate(self, length: int) -> None:
        """See `Backend.truncate`."""
        self._lane.run(lambda: self._backend.truncate(length))

    def close(self) -> None:
        """Free the model; may be called again."""
        self._lane.run(self._backend.close)
