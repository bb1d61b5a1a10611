"""Contenders that share one loaded model: plain decoding, and ways to speculate."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from edgespec.api import Model, Speculation
from edgespec.bench.answers import Taken
from edgespec.bench.machine import EnergyMeter
from edgespec.errors import Cancelled
from edgespec.text.prompt import Message
from edgespec.types import Clock, Piece, SamplingSettings


class LocalContender:
    """One configuration of a model. It keeps what its policy learns; its proposers begin each answer anew."""

    def __init__(
        self,
        name: str,
        model: Model,
        speculation: Speculation,
        meter: EnergyMeter,
        clock: Clock = time.perf_counter,
    ) -> None:
        self.name = name
        self._model = model
        self._speculation = speculation
        self._meter = meter
        self._clock = clock

    def first(self, messages: Sequence[Message], sampling: SamplingSettings) -> float:
        """Seconds to the first token with an empty cache; the prompt is cached afterwards."""
        self._model.forget()
        return self._take(messages, 1, sampling).arrivals[0][0]

    def answer(self, messages: Sequence[Message], n: int, sampling: SamplingSettings) -> Taken:
        return self._take(messages, n, sampling)

    def cancel(self) -> None:
        self._model.cancel()

    def _take(self, messages: Sequence[Message], n: int, sampling: SamplingSettings) -> Taken:
        model, clock = self._model, self._clock
        arrivals: list[tuple[float, int]] = []
        pieces: list[Piece] = []
        with model.using(self._speculation):
            before = self._meter.read()
            started = clock()
            prompt = model.template.render(messages)
            stream = model.stream(thinking_open=prompt.thinking_open)
            with contextlib.closing(model.generate(model.ids(prompt), stream, sampling, n)) as events:
                for event in events:
                    arrivals.append((clock() - started, event.sampled))
                    pieces += event.pieces
            joules = self._meter.joules(before, self._meter.read())
        stats = model.stats
        if stats.finish == "cancelled":
            raise Cancelled("stopped")
        return Taken(
            "".join(piece.text for piece in pieces),
            tuple(piece.token for piece in pieces),
            stats.tokens,
            tuple(arrivals),
            stats.rounds - stats.end_rounds,
            stats.draft_n,
            stats.draft_n_accepted,
            joules,
        )
