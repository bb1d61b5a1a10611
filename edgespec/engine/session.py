"""A conversation's cache and the loop of rounds over it. Tokens in, events out."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from edgespec.backends.base import Backend, cut
from edgespec.control.base import Policy
from edgespec.engine.step import Decoder, Judge, ProposerError, Run, VerifyMode
from edgespec.engine.teaching import Teaching
from edgespec.errors import BackendError, Cancelled, PromptTooLongError, UsageError
from edgespec.proposers.base import Proposer, Sampling
from edgespec.sampling import Sampler
from edgespec.text.stream import TokenStream
from edgespec.types import (
    NO_DRAFT,
    Clock,
    FinishReason,
    FloatArray,
    Outcome,
    Piece,
    SamplingSettings,
    Source,
    Status,
    StepEvent,
    Tokens,
    common_prefix,
)

PREFILL_CHUNK = 512
_BUSY = "the session is still answering: cancel it or wait for its end"


@dataclass(frozen=True, slots=True)
class Request:
    """How to answer. `max_tokens` None goes on to the end of the context."""

    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    verify: VerifyMode = "coupled"
    max_tokens: int | None = None


def _ignore(*_: object) -> None:
    pass


class Session:
    """One sequence. Calls come from one thread at a time, `cancel` from any.

    Invariant: `tokens` is what the cache holds, after every way of leaving a generation.
    `is_eog(token)`: does it end an answer? `notify` takes one-line notices, `progress(done, total)`
    the prompt tokens evaluated so far.
    """

    def __init__(
        self,
        backend: Backend,
        is_eog: Callable[[int], bool],
        policy: Policy,
        proposers: Mapping[Source, Proposer] | None = None,
        *,
        clock: Clock = time.perf_counter,
        notify: Callable[[str], None] = _ignore,
        progress: Callable[[int, int], None] = _ignore,
        aborts: Sequence[Callable[[bool], None]] = (),
    ) -> None:
        self._backend = backend
        self._is_eog = is_eog
        self._proposers = dict(proposers or {})
        self._decoder = Decoder(backend, self._proposers, policy, clock, Teaching(clock))
        self._clock = clock
        self._notify = notify
        self.progress = progress
        self._aborts = (backend.abort, *aborts)
        self._cancelled = threading.Event()
        self._busy = threading.Lock()
        self._tokens: list[int] = []
        self._can_roll_back = True

    @property
    def tokens(self) -> tuple[int, ...]:
        """What the cache holds."""
        return tuple(self._tokens)

    @property
    def status(self) -> Status:
        """Whether speculation is on, who proposes, and why."""
        status = self._decoder.policy.status
        if not self._can_roll_back:
            return Status(False, status.proposer, 0, "the cache refused to drop rows")
        if self._proposers and self._backend.capabilities.rollback == "none":
            return Status(False, status.proposer, 0, "this model's cache cannot drop rows now")
        return status

    @property
    def policy(self) -> Policy:
        return self._decoder.policy

    def use(self, policy: Policy, proposers: Mapping[Source, Proposer]) -> None:
        """Speculate in another way from the next answer on; the proposers begin with nothing cached."""
        if self._busy.locked():
            raise UsageError(_BUSY)
        self._proposers = dict(proposers)
        self._decoder = Decoder(self._backend, self._proposers, policy, self._clock, Teaching(self._clock))
        for proposer in self._proposers.values():
            proposer.begin(())

    def forget(self) -> None:
        """Empty the cache: the next prompt is evaluated from its start."""
        if self._busy.locked():
            raise UsageError(_BUSY)
        self._cut(0)

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[None]:
        """Between two answers others may use the backend, if they leave the cache as it was.

        `cancel` ends that. A cache that cannot be cut is emptied first. Raises UsageError while an answer
        is running.
        """
        if not self._busy.acquire(blocking=False):
            raise UsageError(_BUSY)
        try:
            self._allow()
            if self._backend.capabilities.rollback != "exact":
                self._cut(0)
            yield
        finally:
            self._busy.release()

    def _allow(self) -> None:
        self._cancelled.clear()
        for abort in self._aborts:
            abort(False)

    def cancel(self) -> None:
        """From any thread: end the generation as soon as possible, with reason "cancelled"."""
        self._cancelled.set()
        for abort in self._aborts:
            abort(True)

    def generate(
        self, prompt: Tokens, request: Request, stream: TokenStream
    ) -> Generator[StepEvent, None, None]:
        """Answer `prompt`, reusing what the cache shares with it.

        Yields an event a round; the last has `finish`. Raises PromptTooLongError at once when the
        prompt does not fit, UsageError while another answer is running. Leaving the iterator early is
        a way to stop.
        """
        self._ready_for(prompt)
        budget = self._backend.n_ctx - len(prompt) + 1
        if request.max_tokens is not None:
            budget = min(budget, request.max_tokens)
        generation = _Generation(list(prompt), stream, budget, self._is_eog)
        return self._rounds(generation, request)

    def warm(self, prompt: Tokens) -> int:
        """Evaluate the beginning of a prompt that is still to come. Returns the tokens then cached.

        `cancel` ends it early; the chunks that are done stay. Raises as `generate` does.
        """
        self._ready_for(prompt)
        if not self._busy.acquire(blocking=False):
            raise UsageError(_BUSY)
        try:
            same = common_prefix(self._tokens, prompt)
            if same < len(prompt):
                self._cut(same)
                self._evaluate(prompt, rows="none")
        except Cancelled:
            pass
        finally:
            try:
                self._settle(len(self._tokens))
            finally:
                self._busy.release()
        return len(self._tokens)

    def _ready_for(self, prompt: Tokens) -> None:
        n, n_ctx = len(prompt), self._backend.n_ctx
        if n == 0:
            raise UsageError("the prompt is empty")
        if n > n_ctx:
            raise PromptTooLongError(
                f"the prompt has {n} tokens and the context holds {n_ctx}: "
                f"shorten it, or load with a larger context (-c {-(-n // 1024) * 1024 + 1024})"
            )
        if self._busy.locked():
            raise UsageError(_BUSY)
        self._allow()

    def _rounds(self, g: _Generation, request: Request) -> Generator[StepEvent, None, None]:
        if not self._busy.acquire(blocking=False):
            raise UsageError(_BUSY)
        judge = Judge(Sampler(request.sampling), request.verify)
        n_prompt = len(g.history)
        try:
            if g.budget < 1:
                yield StepEvent((), 0, finish="length")
                return
            for proposer in self._proposers.values():
                if isinstance(proposer, Sampling):
                    proposer.configure(request.sampling, request.verify)
            yield g.event(self._first(g, judge))
            while g.finish is None:
                yield g.event(self._round(g, judge))
        except Cancelled:
            g.finish = "cancelled"
            yield g.event(None)
        finally:
            try:
                self._settle(n_prompt + g.kept)
            finally:
                self._busy.release()

    def _first(self, g: _Generation, judge: Judge) -> Outcome:
        """The prompt's pass gives the first token; what the cache shares with the prompt is reused."""
        started = self._clock()
        same, row = self._prefill(g.history)
        wanted = self._decoder.policy.begin()
        for name in [name for name in wanted if name in self._proposers]:
            try:
                self._proposers[name].begin(g.history)
            except BackendError as error:
                self._drop(ProposerError(name, str(error)))
        computed = self._clock()
        verdict = judge(NO_DRAFT, row, g.history)
        _, emitted = g.take([(verdict.next_token, "target")])
        return Outcome(NO_DRAFT, 0, emitted, same, 0.0, computed - started, self._clock() - computed)

    def _prefill(self, prompt: list[int]) -> tuple[int, FloatArray]:
        """Bring the cache to `prompt`. Returns (tokens reused, the row after it)."""
        self._cut(min(common_prefix(self._tokens, prompt), len(prompt) - 1))
        same = len(self._tokens)
        row = self._evaluate(prompt, rows="last")
        assert row is not None
        return same, row

    def _evaluate(self, prompt: Tokens, rows: Literal["last", "none"]) -> FloatArray | None:
        """Go on from what the cache holds of `prompt`, in chunks. `rows`: which are wanted of it."""
        same, row = len(self._tokens), None
        for start in range(same, len(prompt), PREFILL_CHUNK):
            self._check_cancelled()
            chunk = prompt[start : start + PREFILL_CHUNK]
            last = start + len(chunk) == len(prompt)
            row = self._backend.forward(chunk, rows=rows if last else "none")
            self._backend.commit(range(len(chunk)))
            self._tokens += chunk
            self.progress(start + len(chunk) - same, len(prompt) - same)
        return row

    def _round(self, g: _Generation, judge: Judge) -> Outcome:
        self._check_cancelled()
        before, g.sampled = len(g.history), 0

        def rebuild(why: str) -> None:
            self._rebuild(g.history[: before + g.sampled - 1], why)

        try:
            outcome = self._decoder.step(g.history, self._limit(g), judge, g.take, rebuild)
        except ProposerError as error:
            self._drop(error)
            return self._round(g, judge)
        self._tokens += g.history[len(self._tokens) : before + g.sampled - 1]
        return outcome

    def _drop(self, error: ProposerError) -> None:
        del self._proposers[error.proposer]
        self._notify(str(error))

    def _limit(self, g: _Generation) -> int:
        """Most tokens that may be drafted now; rollback is asked every round."""
        can = self._backend.capabilities
        if can.rollback == "none" or not self._can_roll_back:
            return 0
        return max(0, min(g.budget - g.emitted, self._backend.n_ctx - len(g.history) + 1, can.max_rows) - 1)

    def _rebuild(self, tokens: list[int], why: str) -> None:
        """The cache could not drop rows: evaluate what it should hold anew, and decode plainly."""
        if self._can_roll_back:
            self._can_roll_back = False
            self._notify(f"speculation is off: {why}")
        self._cut(0)
        for start in range(0, len(tokens), PREFILL_CHUNK):
            chunk = tokens[start : start + PREFILL_CHUNK]
            self._backend.forward(chunk, rows="none")
            self._backend.commit(range(len(chunk)))
            self._tokens += chunk

    def _cut(self, length: int) -> None:
        """Cut the cache to `length`, or to nothing where it cannot be cut."""
        del self._tokens[cut(self._backend, length) :]

    def _settle(self, length: int) -> None:
        self._cut(min(length, len(self._tokens)))

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled("stopped")


class _Generation:
    """What one answer has so far, and where it ends."""

    def __init__(
        self, history: list[int], stream: TokenStream, budget: int, is_eog: Callable[[int], bool]
    ) -> None:
        self.history = history
        self.budget = budget
        self.finish: FinishReason | None = None
        self.emitted = 0
        self.reported = 0
        self.sampled = 0
        self._stream = stream
        self._is_eog = is_eog
        self._released: list[Piece] = []

    @property
    def kept(self) -> int:
        """Emitted tokens that belong to the answer: not those inside a stop string."""
        return self._stream.released if self.finish is not None else self.emitted

    def take(self, run: Run) -> tuple[int, int]:
        """Emit a run up to where the answer ends inside it. Returns (sampled, emitted)."""
        before = self.emitted
        self.sampled = 0
        for token, source in run:
            self.sampled += 1
            if self._is_eog(token):
                self.finish = "stop"
                break
            self._released += self._stream.push(token, source, len(self.history))
            self.history.append(token)
            self.emitted += 1
            if self._stream.stopped:
                self.finish = "stop"
            elif self.emitted >= self.budget:
                self.finish = "length"
            if self.finish is not None:
                break
        return self.sampled, self.emitted - before

    def event(self, outcome: Outcome | None) -> StepEvent:
        pieces = self._released
        if self.finish is not None:
            pieces += self._stream.finish()
        self._released = []
        sampled, self.reported = self.emitted - self.reported, self.emitted
        return StepEvent(tuple(pieces), sampled, outcome, self.finish)
