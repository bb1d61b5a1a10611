"""Plain decoding through the whole runtime against a bare loop of llama_decode and argmax.

python benchmarks/overhead.py [--model FILE] [--threads N] [--pairs 20] [--tokens 16]

Both run in one process on one context, in short stretches that take turns. A stretch continues the same
cached prompt, so contexts are equal. Each pair gives a ratio of rates (1 is no overhead); the table has
the ratio of medians for every repetition, and the smallest and largest of them.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import statistics
import time
from collections.abc import Callable

import numpy as np

import edgespec
from edgespec.api import Model
from edgespec.types import SamplingSettings

WORDS = """quiet river stone lantern meadow copper window thunder velvet orchard signal harbour marble
compass feather garden winter pepper anchor candle ribbon forest mirror saddle tunnel"""
GREEDY = SamplingSettings(temperature=0.0)


def prompt_of(model: Model) -> list[int]:
    """Random words: nothing to copy."""
    words = WORDS.split()
    random.Random(3).shuffle(words)
    return model.tokenize("A story with these words: " + ", ".join(words) + ".\n\nOnce upon a time")


def bare(model: Model, prompt: list[int], n: int) -> float:
    """Seconds of n passes of one token each, the cache holding all of the prompt but its last token."""
    backend = model._target.backend
    native, context, memory = backend._native, backend._context, backend._memory
    pointer = native.llama_get_logits
    batch = native.llama_batch_init(1, 0, 1)
    start = len(prompt) - 1
    native.llama_memory_seq_rm(memory, 0, start, -1)
    token, position = prompt[-1], start
    started = time.perf_counter()
    for _ in range(n):
        batch.n_tokens = 1
        batch.token[0], batch.pos[0] = token, position
        batch.n_seq_id[0], batch.seq_id[0][0], batch.logits[0] = 1, 0, 1
        if native.llama_decode(context, batch):
            raise SystemExit("llama_decode failed")
        row = ctypes.cast(pointer(context), ctypes.POINTER(ctypes.c_float))
        token = int(np.ctypeslib.as_array(row, (backend.n_vocab,)).argmax())
        position += 1
    seconds = time.perf_counter() - started
    native.llama_batch_free(batch)
    native.llama_memory_seq_rm(memory, 0, start, -1)
    return seconds


def whole(model: Model, prompt: list[int], n: int) -> float:
    """Seconds of the same n passes through `Model.complete`, event by event."""
    started = time.perf_counter()
    tokens = sum(event.sampled for event in model.complete(prompt, GREEDY, max_tokens=n))
    seconds = time.perf_counter() - started
    if tokens != n:
        raise SystemExit(f"the answer ended after {tokens} tokens: choose fewer --tokens")
    return seconds


def compare(one: Callable[[], float], two: Callable[[], float], pairs: int) -> tuple[float, float, float]:
    """(ratio of medians of two to one, median seconds of both); who begins takes turns."""
    first, second = list[float](), list[float]()
    for i in range(pairs):
        for who in (one, two) if i % 2 else (two, one):
            (first if who is one else second).append(who())
    a, b = statistics.median(first), statistics.median(second)
    return a / b, a, b


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--model", help="path or catalogue name; the default model if missing")
    arguments.add_argument("--pairs", type=int, default=20, help="pairs of stretches a repetition")
    arguments.add_argument("--tokens", type=int, default=16, help="tokens in a stretch")
    arguments.add_argument("--repetitions", type=int, default=5)
    arguments.add_argument("--threads", type=int)
    args = arguments.parse_args()
    print("| spec | runtime / bare, median | min | max | bare ms/token | drafted, accepted |")
    print("|---|---|---|---|---|---|")
    for spec in ("off", "auto"):
        with edgespec.load(args.model, spec=spec, n_ctx=1024, n_threads=args.threads) as model:
            prompt = prompt_of(model)
            whole(model, prompt, args.tokens)
            bare(model, prompt, args.tokens)
            drafted = accepted = 0
            ratios, bare_seconds = list[float](), list[float]()

            def run(model: Model = model, prompt: list[int] = prompt) -> float:
                nonlocal drafted, accepted
                seconds = whole(model, prompt, args.tokens)
                drafted += model.stats.draft_n
                accepted += model.stats.draft_n_accepted
                return seconds

            for _ in range(args.repetitions):
                ratio, seconds, _ = compare(
                    lambda model=model, prompt=prompt: bare(model, prompt, args.tokens), run, args.pairs
                )
                ratios.append(ratio)
                bare_seconds.append(seconds)
            median, ms = statistics.median(ratios), 1000 * statistics.median(bare_seconds) / args.tokens
            print(
                f"| {spec} | {median:.3f} | {min(ratios):.3f} | {max(ratios):.3f} | {ms:.2f} "
                f"| {drafted}, {accepted} |"
            )


if __name__ == "__main__":
    main()
