"""Keeps a conversation while it happens, on a thread of its own."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from edgespec.errors import EdgespecError
from edgespec.history.records import Conversation, Figures, State, Turn, runs_of
from edgespec.history.store import History, RenewedError
from edgespec.history.sync import Kept, sync

if TYPE_CHECKING:
    from edgespec.types import FinishReason, Piece

INTERVAL = 0.5
"""Seconds of an answer that may be lost when the process is killed."""
_RETRY = 5.0
_CLOSING = 3.0


def _ignore(_: str) -> None:
    pass


@dataclass(slots=True)
class _Document:
    """A conversation as it is now, and as the file holds it; `kept` belongs to the thread."""

    wanted: Conversation
    kept: Kept
    dirty: bool = False
    deleted: bool = False


@dataclass(slots=True)
class _Answer:
    """`turn`: still without content. `before`: the turns that it follows."""

    turn: Turn
    before: tuple[Turn, ...]
    pieces: list[Piece] = field(default_factory=list)

    def so_far(self) -> Turn:
        return replace(self.turn, content="".join(piece.text for piece in self.pieces))


class Recorder:
    """One conversation and its place in the history. Only `flush` and `close` wait for the disk.

    The thread brings the file to what the conversation is now, so that a failed write is made up for by
    the next one. The first failure is told to `notify`, from that thread, and the chat goes on. Where
    another process has changed or deleted the conversation, it is kept as a new one.

    `path` None is the user's file; `on=False` keeps nothing.
    """

    def __init__(
        self,
        path: Path | None = None,
        conversation: Conversation | None = None,
        *,
        notify: Callable[[str], None] = _ignore,
        on: bool = True,
    ) -> None:
        self._path, self._notify, self._on = path, notify, on
        self._document = _document(conversation)
        self._earlier: list[_Document] = []
        self._answer: _Answer | None = None
        self._state = threading.Condition()
        self._due: float | None = None
        self._posted = self._written = self._failures = 0
        self._closing = False
        self._thread: threading.Thread | None = None

    @property
    def conversation(self) -> Conversation:
        """What there is now, with what the running answer has so far."""
        with self._state:
            return self._now()

    @property
    def id(self) -> int | None:
        """The conversation's number; None before its first turn is on the disk."""
        return self._document.kept.id

    def begin(self, conversation: Conversation | None = None) -> None:
        """Go over to another conversation. None is a new one with the same system message and model.

        To load a conversation again that was just left, `flush` before.
        """
        with self._state:
            self._settle(None, None)
            if self._document.dirty:
                self._earlier.append(self._document)
            old = self._document.wanted
            self._document = _document(conversation, Conversation(system=old.system, model=old.model))

    def delete(self) -> None:
        """Take the conversation out of the history and begin a new one."""
        with self._state:
            self._answer = None
            self._document.deleted = True
            self._post(0)
        self.begin()

    def describe(self, **changes: str | None) -> None:
        """Set `system`, `title`, or `model`: the reference that loads the model again."""
        with self._state:
            self._change(replace(self._document.wanted, **changes))  # type: ignore[arg-type]

    def ask(self, content: str) -> None:
        """The user's turn."""
        with self._state:
            self._settle(None, None)
            wanted = self._document.wanted
            self._change(replace(wanted, turns=(*wanted.turns, Turn("user", content, time.time()))))

    def answering(self, model: str | None = None, *, again: bool = False) -> None:
        """An answer begins; `model` is the name to show. `again`: it takes the place of the last one, as
        soon as there is any of it."""
        with self._state:
            self._settle(None, None)
            turns = self._document.wanted.turns
            n = len(turns) - (again and turns[-1:] != () and turns[-1].role == "assistant")
            self._answer = _Answer(Turn("assistant", "", time.time(), "partial", model), turns[:n])

    def add(self, pieces: Iterable[Piece]) -> None:
        """More of the answer."""
        with self._state:
            if self._answer is not None:
                self._answer.pieces += pieces
                self._post(INTERVAL)

    def answered(self, finish: FinishReason | None, figures: Figures | None = None) -> None:
        """The answer has ended. "cancelled" or None: it was stopped; it is no turn if it is empty."""
        with self._state:
            self._settle(finish, figures)

    def cut(self, n: int) -> None:
        """Keep the first n turns: what follows is to be written or answered anew."""
        with self._state:
            self._settle(None, None)
            if n < len(self._document.wanted.turns):
                self._change(replace(self._document.wanted, turns=self._document.wanted.turns[:n]))

    def flush(self, seconds: float = 2.0) -> bool:
        """Wait until everything so far is on the disk. False if it could not be written by then."""
        with self._state:
            wanted, failures = self._posted, self._failures
            if self._written >= wanted:
                return True
            self._post(0, new=False)
            self._state.wait_for(lambda: self._written >= wanted or self._failures > failures, seconds)
            return self._written >= wanted

    def close(self) -> None:
        """Write what is left. May be called again."""
        with self._state:
            self._settle(None, None)
        self.flush(_CLOSING)
        with self._state:
            self._closing = True
            self._state.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSING)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _now(self) -> Conversation:
        wanted = self._document.wanted
        if self._answer is None or not self._answer.pieces:
            return wanted
        return replace(wanted, turns=(*self._answer.before, self._answer.so_far()))

    def _settle(self, finish: FinishReason | None, figures: Figures | None) -> None:
        """The running answer becomes a turn."""
        answer, self._answer = self._answer, None
        if answer is None or (not answer.pieces and finish in (None, "cancelled")):
            return
        state: State = "stopped" if finish in (None, "cancelled") else "complete"
        runs = runs_of(answer.pieces)
        turn = replace(answer.so_far(), state=state, finish=finish, figures=figures, runs=runs)
        self._change(replace(self._document.wanted, turns=(*answer.before, turn)))

    def _change(self, wanted: Conversation) -> None:
        """What never had a turn is not written."""
        if wanted != self._document.wanted:
            written = wanted.turns or self._document.wanted.turns or wanted.id is not None
            self._document.wanted = wanted
            if written:
                self._post(0)

    def _post(self, delay: float, *, new: bool = True) -> None:
        """Have the thread write within so many seconds."""
        if not self._on or self._closing:
            return
        self._posted += new
        self._document.dirty |= new
        due = time.monotonic() + delay
        if self._due is None or due < self._due:
            self._due = due
            self._state.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="edgespec-history", daemon=True)
            self._thread.start()

    # The thread

    def _work(self) -> None:
        history: History | None = None
        while (work := self._next()) is not None:
            posted, documents = work
            try:
                history = self._opened(history)
                self._write(history, documents)
                error = None
            except (EdgespecError, OSError, sqlite3.Error) as found:
                error = found
            with self._state:
                self._ended(posted, error)
                first = error is not None and self._failures == 1
            if first:
                self._notify(f"this chat is not kept: {error}")
        if history is not None:
            history.close()

    def _next(self) -> tuple[int, list[tuple[_Document, Conversation]]] | None:
        """Wait for something to write; None at the end."""
        with self._state:
            while self._due is None or self._due > time.monotonic():
                if self._closing:
                    return None
                self._state.wait(None if self._due is None else self._due - time.monotonic())
            self._due = None
            work = [(document, document.wanted) for document in self._earlier]
            if self._document.dirty:
                work.append((self._document, self._now()))
            for document, _ in work:
                document.dirty = False
            return self._posted, work

    def _opened(self, history: History | None) -> History:
        if history is not None and not history.moved:
            return history
        if history is not None:
            history.close()
            self._forget()
        return History(self._path, self._notify)

    def _write(self, history: History, work: list[tuple[_Document, Conversation]]) -> None:
        try:
            self._sync(history, work)
        except RenewedError:
            self._forget()
            self._sync(history, work)

    def _sync(self, history: History, work: list[tuple[_Document, Conversation]]) -> None:
        for document, wanted in work:
            with history.transaction() as db:
                if document.deleted:
                    db.execute("DELETE FROM conversation WHERE id = ?", (document.kept.id,))
                    kept = Kept()
                else:
                    kept = sync(db, document.kept, wanted, time.time())
            document.kept = kept

    def _forget(self) -> None:
        """The file is another one: nothing of these conversations is in it."""
        for document in (*self._earlier, self._document):
            document.kept = Kept()

    def _ended(self, posted: int, error: Exception | None) -> None:
        if error is None:
            self._written = posted
            self._earlier = [document for document in self._earlier if document.dirty]
        else:
            self._failures += 1
            self._document.dirty = True
            if not self._closing:
                self._post(_RETRY, new=False)
        self._state.notify_all()


def _document(conversation: Conversation | None, new: Conversation | None = None) -> _Document:
    if conversation is None:
        return _Document(new or Conversation(), Kept())
    # what a killed process left unfinished was stopped, now that the conversation goes on
    turns = tuple(replace(t, state="stopped") if t.state == "partial" else t for t in conversation.turns)
    return _Document(replace(conversation, turns=turns), Kept(conversation.id, conversation))
