"""The model on a thread of its own. What happens there lies in a queue until the screen fetches it.

Nothing here waits for the screen and the screen never waits for anything here.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from edgespec import Chat, Message, Model, SamplingSettings, StepEvent
from edgespec.api import Progress
from edgespec.errors import Cancelled, EdgespecError
from edgespec.history import Figures
from edgespec.types import FinishReason, Piece

Loader = Callable[[Progress], Model]
Phase = Literal["empty", "loading", "warming", "measuring", "reading", "answering", "idle"]
BACKGROUND = ("warming", "measuring")


@dataclass(frozen=True, slots=True)
class Pieces:
    """More of the answer."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model is ready."""

    model: Model


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer has ended."""

    finish: FinishReason | None
    figures: Figures


@dataclass(frozen=True, slots=True)
class Failed:
    """Something went wrong, in one line; `doing` says what."""

    doing: Phase
    message: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the user."""

    text: str


News = Pieces | Loaded | Finished | Failed | Notice


def name_of(model: Model) -> str:
    """What the user knows the model by: its file."""
    return Path(model.info.path).stem


@dataclass(frozen=True, slots=True)
class Question:
    """What an answer needs: the messages, the last one the user's, and how to answer."""

    messages: tuple[Message, ...]
    sampling: SamplingSettings
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Activity:
    """What the thread does now. `share`: from 0 to 1, of a step that knows its end."""

    phase: Phase = "empty"
    label: str = ""
    share: float = 0.0


class Engine:
    """Jobs run one after another. All methods return at once; `news` has what they led to."""

    def __init__(self) -> None:
        self.news: deque[News] = deque()
        self.activity = Activity()
        self.model: Model | None = None
        self._speculation = contextlib.ExitStack()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._chat: Chat | None = None
        self._submitted = self._done = self._stopped = 0
        self._thread = threading.Thread(target=self._work, name="edgespec-engine", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Is a job running or waiting?"""
        return self._submitted > self._done

    def notify(self, line: str) -> None:
        """From any thread: a notice for the user."""
        self.news.append(Notice(line))

    def load(self, loader: Loader) -> None:
        """Load a model; the one before is closed when the new one is there."""
        self._submit(lambda: self._load(loader))

    def ask(self, question: Question) -> None:
        """Answer; background work gives way."""
        if self.activity.phase in BACKGROUND:
            self.stop()
        self._submit(lambda: self._answer(question))

    def warm(self, messages: Sequence[Message]) -> None:
        """Evaluate a conversation that was resumed, while the user reads it."""
        self._submit(lambda: self._warm(tuple(messages)))

    def measure(self) -> None:
        """Measure a model that is new to this device, while nobody waits."""
        self._submit(self._measure)

    def speculate(self, spec: str) -> None:
        """Speculate in another way from the next answer on."""
        self._submit(lambda: self._speculate(spec))

    def stop(self) -> None:
        """End what is running and waiting soon. May be called again and again."""
        self._stopped = self._submitted
        if self.model is not None:
            self.model.cancel()

    def close(self, patience: float = 1.0) -> bool:
        """Free the model; False if native work did not end in time."""
        self.stop()
        self._jobs.put(None)
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _submit(self, job: Callable[[], None]) -> None:
        self._submitted += 1
        self._jobs.put(job)

    # On the thread

    @property
    def _is_stopped(self) -> bool:
        return self._stopped > self._done

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Cancelled:
                self.news.append(Failed(self.activity.phase, "stopped"))
            except EdgespecError as error:
                self.news.append(Failed(self.activity.phase, str(error)))
            except MemoryError:
                self.news.append(
                    Failed(self.activity.phase, "out of memory: choose a smaller context or model")
                )
            except Exception as error:
                what = f"internal error, {type(error).__name__}: {error}"
                self.news.append(Failed(self.activity.phase, what))
            finally:
                self.activity = Activity("empty" if self.model is None else "idle")
                self._done += 1
        if self.model is not None:
            self.model.close()

    def _load(self, loader: Loader) -> None:
        self.activity = Activity("loading", "loading")
        model = loader(self._progress)
        self._speculation.close()
        before, self.model = self.model, model
        if before is not None:
            before.close()
        self._chat = model.chat()
        model.on_prefill(self._reading)
        self.news.append(Loaded(model))

    def _progress(self, label: str, share: float) -> None:
        if self._is_stopped:
            raise Cancelled("stopped")
        self.activity = Activity("loading", label, share)

    def _reading(self, done: int, total: int) -> None:
        self.activity = replace(self.activity, label=f"{done:,} of {total:,} tokens", share=done / total)

    def _answer(self, question: Question) -> None:
        chat = self._required()
        self.activity = Activity("reading")
        chat.sampling, chat.stop, chat.max_tokens = question.sampling, question.stop, question.max_tokens
        chat.messages[:] = question.messages[:-1]
        chat.finish = None
        with contextlib.closing(chat.send(question.messages[-1].content)) as events:
            try:
                if not self._is_stopped:
                    self._follow(events, chat)
            finally:
                self.news.append(Finished(chat.finish, Figures.of(chat.model.stats)))

    def _follow(self, events: Iterator[StepEvent], chat: Chat) -> None:
        for event in events:
            if self.activity.phase == "reading":
                self.activity = Activity("answering")
            if event.pieces:
                self.news.append(Pieces(event.pieces))
            if self._is_stopped:
                chat.cancel()

    def _warm(self, messages: tuple[Message, ...]) -> None:
        if self._chat is not None and not self._is_stopped:
            self.activity = Activity("warming")
            self._chat.restore(messages)
            self._chat.warm()

    def _measure(self) -> None:
        model = self.model
        if model is not None and not model.calibrated and not self._is_stopped:
            self.activity = Activity("measuring")
            model.calibrate(progress=self._measured)

    def _measured(self, share: float) -> None:
        self.activity = Activity("measuring", "", share)

    def _speculate(self, spec: str) -> None:
        model = self._required().model
        chosen = model.speculation(spec)
        self._speculation.close()
        self._speculation.enter_context(model.using(chosen))
        self.news.append(Notice(f"speculation: {spec}"))

    def _required(self) -> Chat:
        if self._chat is None:
            raise EdgespecError("no model is loaded: /model NAME loads one")
        return self._chat
