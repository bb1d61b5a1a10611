"""The order of a measurement: contenders take turns on every prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from edgespec.bench.answers import Answer, First, Place, Taken
from edgespec.bench.prompts import BenchPrompt, in_turn
from edgespec.errors import PromptTooLongError
from edgespec.text.prompt import Message
from edgespec.types import SamplingSettings


class Contender(Protocol):
    """Something that answers: this model in one configuration, or a server. Raises EdgespecError."""

    name: str

    def first(self, messages: Sequence[Message], sampling: SamplingSettings) -> float:
        """Seconds to the first token of a prompt not read before; its prompt is cached afterwards."""
        ...

    def answer(self, messages: Sequence[Message], n: int, sampling: SamplingSettings) -> Taken:
        """At most n tokens."""
        ...

    def cancel(self) -> None:
        """From any thread: end the running answer with Cancelled."""
        ...


def _ignore(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Plan:
    """`n`: most tokens of an answer. The seed grows by one a repetition, the same for all contenders."""

    n: int = 128
    repetitions: int = 3
    sampling: SamplingSettings = field(default_factory=lambda: SamplingSettings(temperature=0.0))
    system: str | None = None

    def steps(self, prompts: Sequence[BenchPrompt], contenders: int) -> int:
        """How many answers and first tokens `measure` yields."""
        return sum(len(prompt.turns) for prompt in prompts) * contenders * (self.repetitions + 1)


def measure(
    contenders: Sequence[Contender],
    prompts: Sequence[BenchPrompt],
    plan: Plan,
    notify: Callable[[str], None] = _ignore,
) -> Iterator[Answer | First]:
    """Yield every measurement as it is made. The first contender is plain decoding.

    A turn begins with every contender's time to first token from an empty cache. Then each repetition
    has all of them answer, from the same cached prompt, in an order that moves on by one a repetition.
    Later turns follow the first contender's answer, so that all are asked the same.
    """
    for index, prompt in enumerate(in_turn(prompts)):
        messages = [Message("system", plan.system)] if plan.system else []
        for turn, text in enumerate(prompt.turns):
            messages.append(Message("user", text))
            said = None
            try:
                for row in _turn(contenders, prompt, messages, turn, index, plan):
                    if said is None and isinstance(row, Answer) and row.configuration == contenders[0].name:
                        said = row.taken.text
                    yield row
            except PromptTooLongError as error:
                notify(f"{prompt.id} is left out: {error}")
                break
            messages.append(Message("assistant", said or ""))


def _turn(
    contenders: Sequence[Contender],
    prompt: BenchPrompt,
    messages: Sequence[Message],
    turn: int,
    index: int,
    plan: Plan,
) -> Iterator[Answer | First]:
    for c in _rotated(contenders, index):
        seconds = c.first(messages, plan.sampling)
        yield First(c.name, prompt.id, prompt.category, turn, seconds)
    for repetition in range(plan.repetitions):
        place = Place(prompt.id, prompt.category, turn, repetition)
        sampling = replace(plan.sampling, seed=plan.sampling.seed + repetition)
        for c in _rotated(contenders, index + repetition):
            yield Answer(c.name, place, c.answer(messages, plan.n, sampling))


def _rotated(contenders: Sequence[Contender], by: int) -> list[Contender]:
    by %= len(contenders)
    return [*contenders[by:], *contenders[:by]]
