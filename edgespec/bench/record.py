"""Traces of real answers, for `edgespec replay`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from edgespec.api import Model
from edgespec.bench.prompts import BenchPrompt
from edgespec.errors import Cancelled, PromptTooLongError
from edgespec.sampling import confidence
from edgespec.sampling.transform import top_k
from edgespec.text.prompt import Message
from edgespec.types import FloatArray, SamplingSettings

GREEDY = SamplingSettings(temperature=0.0)
_BEST, _TOP = 8, 3


def _ignore(*_: object) -> None:
    pass


def record(
    model: Model,
    prompts: Sequence[BenchPrompt],
    n: int,
    *,
    system: str | None = None,
    notify: Callable[[str], None] = _ignore,
) -> Iterator[dict[str, Any]]:
    """One `{id, category, prompt, output, best, draft}` a turn, of plain greedy answers; see `extended`."""
    for prompt in prompts:
        messages = [Message("system", system)] if system else []
        for turn, text in enumerate(prompt.turns):
            messages.append(Message("user", text))
            try:
                ids, output, said = _answer(model, messages, n)
            except PromptTooLongError as error:
                notify(f"{prompt.id} is left out: {error}")
                break
            messages.append(Message("assistant", said))
            name = prompt.id if len(prompt.turns) == 1 else f"{prompt.id}/{turn + 1}"
            yield extended(model, {"id": name, "category": prompt.category, "prompt": ids, "output": output})


def extended(model: Model, trace: dict[str, Any]) -> dict[str, Any]:
    """The trace with what the models say of its answer, given all before each position. Known parts stay.

    `best[i]`: the target's 8 likeliest ids after output[:i], output[i] first. `draft.match[i]`: is the draft
    model's first choice output[i]? `draft.p[i]`: the probability it gives that choice. `draft.top[i]`: its 3
    likeliest `[id, probability]`. The parts of a draft are empty without a draft model.
    """
    prompt, output = trace["prompt"], trace["output"]
    old = trace.get("draft", {})
    match, p, top = _drafted(model, prompt, output) if model.draft_info and output else ([], [], [])
    if any(old.get("p", ())):
        match, p = old["match"], old["p"]
    best = []
    for token, row in zip(output, _rows(model, prompt, output), strict=True):
        likeliest = top_k(row, _BEST).tolist()
        best.append([token, *(other for other in likeliest if other != token)][:_BEST])
    return {**trace, "best": best, "draft": {"match": match, "p": p, "top": top}}


def _drafted(model: Model, prompt: Sequence[int], output: Sequence[int]) -> tuple[list[Any], ...]:
    match, p, top = [], [], []
    for token, row in zip(output, _rows(model, prompt, output, draft=True), strict=True):
        ids = top_k(row, _TOP)
        shares = confidence(row) * np.exp(row[ids] - row[ids[0]], dtype=np.float64)
        found = [[int(i), round(float(share), 4)] for i, share in zip(ids, shares, strict=True)]
        match.append(found[0][0] == token)
        p.append(found[0][1])
        top.append(found)
    return match, p, top


def _rows(
    model: Model, prompt: Sequence[int], output: Sequence[int], *, draft: bool = False
) -> Iterator[FloatArray]:
    """The row that each token of the output comes from."""
    for chunk in model.logits([*prompt, *output], len(prompt), draft=draft) if output else ():
        yield from chunk


def _answer(model: Model, messages: Sequence[Message], n: int) -> tuple[list[int], list[int], str]:
    prompt = model.template.render(messages)
    ids = model.ids(prompt)
    stream = model.stream(thinking_open=prompt.thinking_open)
    with (
        model.using(model.speculation("off")),
        contextlib.closing(model.generate(ids, stream, GREEDY, n)) as events,
    ):
        pieces = [piece for event in events for piece in event.pieces]
    if model.stats.finish == "cancelled":
        raise Cancelled("stopped")
    return ids, [piece.token for piece in pieces], "".join(piece.text for piece in pieces)
