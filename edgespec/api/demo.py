"""A model that needs no file: it says what a script says, through everything a real one goes through.

For tests, screenshots and benchmarks of programs built on edgespec.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from edgespec.api.model import Model, Speculation
from edgespec.backends.base import LoadedModel, ModelInfo
from edgespec.backends.scripted import Logits, ScriptedBackend
from edgespec.calibration import RowCounts
from edgespec.control import Controller, CostModel
from edgespec.errors import Cancelled, UsageError
from edgespec.proposers import ModelProposer, NgramProposer, Proposer, SuffixProposer
from edgespec.text.table import TableVocabulary
from edgespec.text.template import CHATML
from edgespec.types import FloatArray, Source, Tokens

_START, _END = "<|im_start|>", "<|im_end|>"
_SURE = 20.0
_WORDS = re.compile(r"\s?\w+|\s+|[^\w\s]")


def scripted(
    answers: Sequence[str],
    *,
    seconds: Callable[[int], float] | None = None,
    draft: Sequence[str] = (),
    spec: str = "auto",
    n_ctx: int = 32_768,
    words: bool = True,
    notify: Callable[[str], None] = lambda _: None,
) -> Model:
    """A model whose n-th answer is `answers[n]`, the last one again and again.

    `seconds(n)` is what a pass over n tokens takes; None takes no time. `draft`: answers of a draft model.
    A token is a word of the answers, or with `words=False` a byte.
    """
    pieces = sorted({word for text in (*answers, *draft) for word in _WORDS.findall(text)} if words else ())
    table = TableVocabulary.of_bytes(pieces, control=(_START,), eog=(_END,))
    backend = PacedBackend(_script(table, answers), table.n_vocab, n_ctx, seconds)
    proposers: dict[Source, Proposer] = {"suffix": SuffixProposer(), "ngram": NgramProposer()}
    if draft:
        second = PacedBackend(_script(table, draft), table.n_vocab, n_ctx)
        proposers["draft"] = ModelProposer(second, table.n_vocab, notify)

    def speculate(wanted: str) -> Speculation:
        names: list[Source] = [name for name in proposers if name in wanted.split(",")]
        if wanted == "auto":
            names = [name for name in proposers if name != "ngram"]
        elif not names and wanted != "off":
            raise UsageError(f"this model speculates with auto, off, {', '.join(proposers)}; not {wanted!r}")
        cost = CostModel({n: 0.01 * (1 + 0.05 * (n - 1)) for n in range(1, 66)}, {"draft": 0.001})
        return Speculation(Controller(names, cost), {name: proposers[name] for name in names})

    info = ModelInfo(
        path="scripted",
        name="Scripted",
        architecture="scripted",
        quantization="none",
        n_params=0,
        size_bytes=0,
        n_ctx_train=n_ctx,
        backend="scripted",
        device="this process",
        chat_template=CHATML,
        settings={},
    )
    rows = RowCounts("exact", "scripted rows are always equal", tuple(range(1, 66)))
    return Model(LoadedModel(backend, table, info), (), speculate, spec, rows, "coupled", notify)


class PacedBackend(ScriptedBackend):
    """A scripted backend that takes real time; `abort` ends the wait."""

    def __init__(
        self, logits: Logits, n_vocab: int, n_ctx: int, seconds: Callable[[int], float] | None = None
    ) -> None:
        super().__init__(logits, n_vocab, n_ctx=n_ctx)
        self._pass = seconds
        self._ended = threading.Event()

    def forward(
        self,
        tokens: Tokens,
        parents: Sequence[int] | None = None,
        *,
        rows: Literal["all", "last", "none"] = "all",
    ) -> FloatArray:
        if self._pass is not None and self._ended.wait(self._pass(len(tokens))):
            raise Cancelled("stopped")
        return super().forward(tokens, parents, rows=rows)

    def abort(self, on: bool) -> None:
        super().abort(on)
        if on:
            self._ended.set()
        else:
            self._ended.clear()


def _script(table: TableVocabulary, answers: Sequence[str]) -> Logits:
    """The answer that belongs to the turn, token by token; at its end the end token."""
    start = table.tokenize(_START, special=True)[0]
    end = table.eos or 0
    opening = table.tokenize("assistant\n", special=False)
    scripts = [[*table.tokenize(text, special=False), end] for text in answers]
    state: dict[str, Any] = {}

    def logits(context: tuple[int, ...]) -> FloatArray:
        at = len(context) - context[::-1].index(start) if start in context else 0
        # Turns are counted once for each answer, not for each token.
        if state.get("at") != at or state.get("head") != context[:at][-64:]:
            heads = [i + 1 for i, token in enumerate(context[:at]) if token == start]
            spoken = sum(list(context[i : i + len(opening)]) == opening for i in heads[:-1])
            state.update(at=at, head=context[:at][-64:], turn=spoken)
        script = scripts[min(state["turn"], len(scripts) - 1)]
        said = len(context) - at - len(opening)
        row = np.zeros(table.n_vocab, np.float32)
        row[script[min(max(said, 0), len(script) - 1)]] = _SURE
        return row

    return logits
