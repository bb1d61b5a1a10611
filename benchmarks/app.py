"""The chat app under load: gaps of its event loop, and what it costs the generation.

python benchmarks/app.py            # both; two minutes
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import sys
import tempfile
import time

os.environ["EDGESPEC_DATA"] = tempfile.mkdtemp(prefix="edgespec-")

from edgespec_tui.app import ChatApp
from edgespec_tui.choices import Choices, Start
from edgespec_tui.engine import Engine, Finished, Question
from edgespec_tui.pauses import short_pauses

from edgespec import Message, SamplingSettings
from edgespec.api.demo import scripted
from edgespec.history import Conversation, Turn

RATE = 300.0
GREEDY = SamplingSettings(temperature=0.0)


def paragraphs(n: int) -> str:
    return "\n\n".join(
        f"Paragraph {i} has **bold**, *soft* and `code` words, and goes on for a while so that it wraps at "
        f"the edge of the screen, with a [link](http://example.org/{i}) near its end."
        for i in range(n)
    )


def table(rows: int) -> str:
    lines = [f"| {i} | item {i} | {i * i} | a longer cell of text {i} |" for i in range(rows)]
    return "\n".join(["| n | name | square | text |", "|---|---|---|---|", *lines])


def fence(lines: int) -> str:
    return "\n".join(["```python", *(f"step {i}" for i in range(lines)), "```"])


def long_answer() -> str:
    """About 6,000 tokens of prose and tables, and a fence of 2,000 lines."""
    return "\n\n".join([paragraphs(12), table(20), paragraphs(8), fence(2000), table(30), "The end."])


class Gaps:
    """The longest time that the event loop did not come round, by the clock and of its own work.

    On a busy machine the first holds what other processes took.
    """

    def __init__(self) -> None:
        self.clock, self.work, self.share = 0.0, 0.0, 0.0

    async def watch(self) -> None:
        last, worked = began, before = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(0.005)
            now, work = time.perf_counter(), time.thread_time()
            self.clock = max(self.clock, now - last - 0.005)
            self.work = max(self.work, work - worked)
            last, worked = now, work
            self.share = (work - before) / (now - began)

    def __str__(self) -> str:
        clock, work = self.clock * 1000, self.work * 1000
        return f"longest gap {clock:.0f} ms, of own work {work:.0f} ms; {self.share:.0%} of a core"


def start(answer: str, conversation: Conversation | None = None, rate: float = RATE) -> Start:
    def loader(*_):
        return lambda progress: scripted([answer], seconds=lambda n: 1 / rate, spec="off", n_ctx=200_000)

    choices = Choices(sampling=GREEDY, seed=1, spec="off")
    return Start(loader, "scripted", choices, conversation=conversation)


async def stream(answer: str, rate: float = RATE, watched: bool = True) -> tuple[Gaps, float, str]:
    """Gaps while an answer streams, its rate, and the text that was drawn."""
    app = ChatApp(start(answer, rate=rate))
    gaps = Gaps()
    async with app.run_test(size=(100, 40)) as pilot:
        while app.engine.model is None:
            await pilot.pause(0.05)
        await pilot.pause(0.3)
        gc.collect()
        # Watching costs as much as a small screen, so the generation is timed unwatched.
        watcher = asyncio.create_task(gaps.watch() if watched else asyncio.sleep(0))
        await app.say("go")
        while app.talk.answering:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        watcher.cancel()
        stats = app.engine.model.stats
        result = gaps, stats.tokens_per_second, app.talk.turns[-1].content
    app.close()
    return result


def bare(answer: str, rate: float = RATE) -> float:
    """Tokens a second of the engine thread alone."""
    engine = Engine()
    engine.load(start(answer, rate=rate).loader(None, Choices(), print))
    engine.ask(Question((Message("user", "go"),), GREEDY))
    while not any(isinstance(news, Finished) for news in list(engine.news)):
        time.sleep(0.02)
    rate = engine.model.stats.tokens_per_second
    engine.close()
    return rate


async def opening() -> tuple[Gaps, float]:
    """Gaps and seconds while a conversation of 500 messages opens."""
    answer = paragraphs(3) + "\n\n" + fence(20)
    pair = (Turn("user", "A question?", 0.0), Turn("assistant", answer, 0.0))
    turns = pair * 250
    app = ChatApp(start("short"))
    gaps = Gaps()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause(0.5)
        watcher = asyncio.create_task(gaps.watch())
        began = time.perf_counter()
        await app.open(Conversation(turns))
        await pilot.pause()
        took = time.perf_counter() - began
        watcher.cancel()
    app.close()
    return gaps, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="interleaved pairs for the cost")
    pairs = parser.parse_args().pairs
    sys.setswitchinterval(0.0005)
    with short_pauses():
        measure(pairs)


def measure(pairs: int) -> None:
    gaps, took = asyncio.run(opening())
    print(f"500 messages open in {took:.2f} s, {gaps}")
    text = paragraphs(30)
    ratios = []
    for _ in range(pairs):
        without = bare(text)
        gaps, within, _drawn = asyncio.run(stream(text, watched=False))
        ratios.append(within / without)
        print(f"bare {without:.1f} tok/s, in the app {within:.1f}, {gaps}")
    print(f"generation in the app / bare: {statistics.median(ratios):.3f} (median of {pairs})")
    answer = long_answer()
    gaps, rate, drawn = asyncio.run(stream(answer))
    assert drawn == answer
    print(f"long answer at {rate:.0f} tok/s: {gaps}")


if __name__ == "__main__":
    main()
