"""A loaded model with its proposers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from edgespec.api.calibrating import Calibrator, Share
from edgespec.backends.base import LoadedModel, ModelInfo
from edgespec.calibration import RowCounts
from edgespec.control.base import Policy
from edgespec.engine import Request, Session, VerifyMode
from edgespec.errors import Cancelled, UsageError
from edgespec.metrics import Summary
from edgespec.proposers import Proposer
from edgespec.text.prompt import Prompt
from edgespec.text.stream import TokenStream
from edgespec.text.template import ChatTemplate
from edgespec.types import FloatArray, SamplingSettings, Source, Status, StepEvent

if TYPE_CHECKING:
    from edgespec.api.chat import Chat
    from edgespec.api.remembering import Remembering

When = Literal["first", "between", "idle"]
"""All of it when the model is loaded; a little after each answer; or when `Model.calibrate` is called."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """One way to speculate: who may propose, and the policy with what it has learnt. None is plain.

    `save` keeps that for the next start. `stages` says who drafted for the draft model in the last answer.
    """

    policy: Policy
    proposers: Mapping[Source, Proposer]
    save: Callable[[], None] | None = None
    stages: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class Costs:
    """`exact`: the row counts whose rows equal single rows. Seconds on this device: of a pass, by its row
    count, 1 included; and of a token of the draft model.
    """

    exact: tuple[int, ...]
    seconds: Mapping[int, float]
    draft: float | None


class Model:
    """A target, at most one draft model and one that drafts for it, and a cache that all chats share in turn.

    Use it as a context manager, or `close` it. `rows` says which row counts are exact, and the mode.
    """

    def __init__(
        self,
        target: LoadedModel,
        drafts: Sequence[LoadedModel],
        speculate: Callable[[str], Speculation],
        spec: str,
        rows: RowCounts,
        verify: VerifyMode,
        notify: Callable[[str], None],
        calibrator: Calibrator | None = None,
        when: When = "between",
        pairing: str = "",
        remembering: Remembering | None = None,
    ) -> None:
        self.info: ModelInfo = target.info
        infos: list[ModelInfo | None] = [draft.info for draft in drafts]
        self.draft_info, self.cascade_info, *_ = *infos, None, None
        """Of the draft model, and of one that drafts for it."""
        self.pairing = pairing
        """Why this draft model, or why none, in one line."""
        self.rows = rows
        self.verify: VerifyMode = verify
        self.stats = Summary()
        """Counters of the last answer, also while it is running."""
        self._target, self._drafts = target, tuple(drafts)
        self._calibrator, self._when = calibrator, when
        self._remembering = remembering
        self._speculate, self._spec = speculate, spec
        self._speculation = self._usual = now = speculate(spec)
        self._template = ChatTemplate(target.info.chat_template, target.vocabulary, notify)
        self._session = Session(
            target.backend,
            target.vocabulary.is_eog,
            now.policy,
            now.proposers,
            notify=notify,
            aborts=[draft.backend.abort for draft in drafts],
        )

    @property
    def n_ctx(self) -> int:
        """Tokens that prompt and answer may have together."""
        return self._target.backend.n_ctx

    @property
    def template(self) -> ChatTemplate:
        return self._template

    @property
    def status(self) -> Status:
        """Whether speculation is on, who proposes, and why."""
        status = self._session.status
        if status.on:
            stages = self._speculation.stages()
            return replace(status, reason=f"{status.reason}; {stages}") if stages else status
        if self.calibrated:
            return status
        return replace(status, reason="this model is not fully measured on this device yet")

    @property
    def calibrated(self) -> bool:
        """Is all known of the model on this device that speculation goes by?"""
        return self._calibrator is None or self._calibrator.complete

    @property
    def pause(self) -> float:
        """Seconds that measuring may take after the last answer: a tenth of its own, at least one."""
        return max(1.0, 0.1 * (self.stats.t_first + self.stats.t_decode))

    def calibrate(self, seconds: float = math.inf, progress: Share = lambda _: None) -> bool:
        """Between two answers: measure what is not known yet, for about so long. `cancel` ends it.

        What was measured is kept, also in parts, and followed from the next answer on. Returns `calibrated`.
        """
        if self._calibrator is None or self._calibrator.complete:
            return True
        with self._session.borrowed(), contextlib.suppress(Cancelled):
            self._calibrator.advance(seconds, progress)
        self._follow(self._calibrator)
        return self._calibrator.complete

    def measure(
        self,
        seconds: float = math.inf,
        progress: Share = lambda _: None,
        trusted: Callable[[], bool] = lambda: True,
    ) -> Costs:
        """Measure all of it anew, and with care: for about `seconds` more than it takes at least.

        What is not `trusted` afterwards, say since the machine was busy, does not replace what was known.
        Raises UsageError where nothing speculates, Cancelled after `cancel`; then what was known stays.
        """
        if self._calibrator is None:
            raise UsageError("with --spec off nothing is measured")
        with self._session.borrowed():
            found, each = self._calibrator.renew(seconds, progress, trusted)
        self._follow(self._calibrator)
        return Costs(found.exact, found.seconds or {}, each)

    def _follow(self, calibrator: Calibrator) -> None:
        """Speculate by what is known now."""
        self.rows = calibrator.rows
        before, self._usual = self._usual, self._speculate(self._spec)
        if self._speculation is before:
            self._use(self._usual)

    def _use(self, speculation: Speculation) -> None:
        self._speculation = speculation
        self._session.use(speculation.policy, speculation.proposers)

    def speculation(self, spec: str) -> Speculation:
        """Another way to speculate with this model, for `using`; `spec` is as in `Settings`.

        It knows of this run nothing yet and keeps what it learns. Raises UsageError.
        """
        return self._speculate(spec)

    @contextlib.contextmanager
    def using(self, speculation: Speculation) -> Iterator[None]:
        """Answers inside speculate this way, with nothing cached by its proposers at the start."""
        before = None if self._speculation is self._usual else self._speculation
        try:
            self._use(speculation)
            yield
        finally:
            self._use(before or self._usual)

    def forget(self) -> None:
        """Empty the cache: the next prompt is evaluated from its start."""
        self._session.forget()

    @property
    def context_used(self) -> int:
        """Tokens in the cache."""
        return self._target.backend.length

    def on_prefill(self, progress: Callable[[int, int], None]) -> None:
        """`progress(done, total)` is told while a prompt is evaluated."""
        self._session.progress = progress

    def chat(self, system: str | None = None, sampling: SamplingSettings | None = None) -> Chat:
        """A conversation. Several share the model's one cache; each reuses the prefix that still fits."""
        from edgespec.api.chat import Chat

        return Chat(self, system, sampling or SamplingSettings())

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids with BOS where the model wants one."""
        vocabulary = self._target.vocabulary
        ids = vocabulary.tokenize(text, special=special)
        bos = vocabulary.bos if vocabulary.add_bos else None
        return ids if bos is None or ids[:1] == [bos] else [bos, *ids]

    def complete(
        self,
        prompt: str | Sequence[int],
        sampling: SamplingSettings | None = None,
        *,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
    ) -> Generator[StepEvent, None, None]:
        """Continue a raw prompt, without the chat template."""
        tokens = self.tokenize(prompt) if isinstance(prompt, str) else list(prompt)
        return self.generate(tokens, self.stream(stop), sampling or SamplingSettings(), max_tokens)

    def stream(self, stop: Sequence[str] = (), *, thinking_open: bool = False) -> TokenStream:
        """Tokens to text for one answer; stop strings of the template come on top of `stop`."""
        return TokenStream(
            self._target.vocabulary,
            stops=(*stop, *self._template.stops),
            thinking=self._template.thinking,
            thinking_open=thinking_open,
        )

    def ids(self, prompt: Prompt) -> list[int]:
        """Token ids of a rendered prompt."""
        return prompt.tokens(self._target.vocabulary)

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of these tokens; control tokens have none."""
        return b"".join(map(self._target.vocabulary.piece, tokens)).decode("utf-8", "replace")

    def generate(
        self, tokens: Sequence[int], stream: TokenStream, sampling: SamplingSettings, max_tokens: int | None
    ) -> Generator[StepEvent, None, None]:
        """Answer a prompt of token ids; see `Session.generate`. Counts into `stats`."""
        events = self._session.generate(tokens, Request(sampling, self.verify, max_tokens), stream)
        self.stats = stats = Summary(prompt_tokens=len(tokens))

        def counted() -> Generator[StepEvent, None, None]:
            answer: list[int] = []
            with contextlib.closing(events), self._remembered(answer):
                for event in events:
                    answer.extend(piece.token for piece in event.pieces)
                    if stats.rounds == 0 and event.outcome is not None:
                        stats.cached_tokens = event.outcome.context
                    stats.add(event)
                    if event.finish is not None:
                        self._keep()
                    yield event
            if self._when == "between" and stats.finish != "cancelled":
                self.calibrate(self.pause)

        return counted()

    @contextlib.contextmanager
    def _remembered(self, answer: list[int]) -> Iterator[None]:
        """What the answer has when it ends may be copied by later ones, where the memory may propose."""
        try:
            yield
        finally:
            if self._remembering is not None and "memory" in self._speculation.proposers:
                self._remembering.answered(answer)

    def logits(self, tokens: Sequence[int], start: int, *, draft: bool = False) -> Iterator[FloatArray]:
        """What the target, or the draft model, makes of a text: the row before each of `tokens[start:]`.

        In chunks `[n, n_vocab]`, each valid until the next; nothing is sampled. Raises UsageError while an
        answer is running or where the text does not fit, Cancelled after `cancel`.
        """
        loaded = next(iter(self._drafts), None) if draft else self._target
        if loaded is None or not 0 < start < len(tokens) <= loaded.backend.n_ctx:
            raise UsageError(f"{len(tokens)} tokens from {start} on cannot be read")
        backend, most = loaded.backend, loaded.backend.capabilities.max_rows
        self.forget()
        with self.using(self.speculation("off")), self._session.borrowed():
            backend.truncate(0)
            try:
                rows = backend.forward(tokens[:start], rows="last")
                backend.commit(range(start))
                yield rows
                for begin in range(start, len(tokens) - 1, most):
                    chunk = tokens[begin : min(begin + most, len(tokens) - 1)]
                    rows = backend.forward(chunk)
                    backend.commit(range(len(chunk)))
                    yield rows
            finally:
                backend.truncate(0)

    def warm(self, tokens: Sequence[int]) -> int:
        """Evaluate the beginning of a prompt that is still to come; see `Session.warm`."""
        return self._session.warm(tokens)

    def _keep(self) -> None:
        if self._speculation.save is not None:
            self._speculation.save()

    def cancel(self) -> None:
        """From any thread: end the running answer at once; what it has stays."""
        self._session.cancel()

    def close(self) -> None:
        """Free the models and keep what was measured. May be called again."""
        self._keep()
        if self._remembering is not None:
            self._remembering.close()
        self._target.backend.close()
        for draft in self._drafts:
            draft.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
