"""Traces of real answers, for `edgespec replay`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from edgespec.api import Model
from edgespec.bench.prompts import BenchPrompt
from edgespec.errors import Cancelled, PromptTooLongError
from edgespec.proposers import Proposer
from edgespec.text.prompt import Message
from edgespec.types import Plan, SamplingSettings

GREEDY = SamplingSettings(temperature=0.0)
_ONE = Plan(("draft",), max_draft=1)


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
    """One `{id, category, prompt, output, draft: {match, p}}` a turn, of plain greedy answers.

    `match[i]`: is the draft model's first choice after output[:i] the token output[i]? `p[i]`: the
    probability it gives that choice. Both are empty without a draft model.
    """
    drafting = model.speculation("draft").proposers["draft"] if model.draft_info else None
    with model.using(model.speculation("off")):
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
                yield {
                    "id": prompt.id if len(prompt.turns) == 1 else f"{prompt.id}/{turn + 1}",
                    "category": prompt.category,
                    "prompt": ids,
                    "output": output,
                    "draft": _drafted(drafting, ids, output),
                }


def _answer(model: Model, messages: Sequence[Message], n: int) -> tuple[list[int], list[int], str]:
    prompt = model.template.render(messages)
    ids = model.ids(prompt)
    stream = model.stream(thinking_open=prompt.thinking_open)
    with contextlib.closing(model.generate(ids, stream, GREEDY, n)) as events:
        pieces = [piece for event in events for piece in event.pieces]
    if model.stats.finish == "cancelled":
        raise Cancelled("stopped")
    return ids, [piece.token for piece in pieces], "".join(piece.text for piece in pieces)


def _drafted(proposer: Proposer | None, prompt: Sequence[int], output: Sequence[int]) -> dict[str, Any]:
    """One token at a time, as it drafts, whatever it drafted before; all zero without a draft model."""
    if proposer is None:
        return {"match": [False] * len(output), "p": [0.0] * len(output)}
    match: list[bool] = []
    p: list[float] = []
    history = list(prompt)
    proposer.begin(history)
    for token in output:
        draft = proposer.propose(history, _ONE)
        match.append(draft.tokens[:1] == (token,))
        p.append(round(draft.evidence[0][0], 4) if draft.tokens else 0.0)
        history.append(token)
    return {"match": match, "p": p}
