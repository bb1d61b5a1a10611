"""Plain decoding through the whole runtime against a bare loop of llama_decode and argmax.

python benchmarks/overhead.py [--model FILE] [--threads N] [--pairs 20] [--tokens 16]

Both run in one process on one context, in short stretches that take turns and continue the same cached
prompt of random words, where nothing can be copied. Each repetition gives the ratio of the median time
of a token (1 is no overhead, the target is at least 0.97); the table has the median of the ratios and
the range.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import statistics
import time

import numpy as np

import edgespec
from edgespec.api import Model
from edgespec.types import SamplingSettings

WORDS = """quiet river stone lantern meadow copper window thunder velvet orchard signal harbour marble
compass feather garden winter pepper anchor candle ribbon forest mirror saddle tunnel"""
GREEDY = SamplingSettings(temperature=0.0)


def prompt_of(model: Model) -> list[int]:
    words = WORDS.split()
    random.Random(3).shuffle(words)
    return model.tokenize("A story with these words: " + ", ".join(words) + ".\n\nOnce upon a time")


def bare(model: Model, prompt: list[int], n: int) -> list[float]:
    """Seconds of each of n passes, the cache holding all of the prompt but its last token."""
    backend = model._target.backend
    native, context, memory = backend._native, backend._context, backend._memory
    batch = native.llama_batch_init(1, 0, 1)
    start, token, times = len(prompt) - 1, prompt[-1], list[float]()
    native.llama_memory_seq_rm(memory, 0, start, -1)
    for position in range(start, start + n):
        started = time.perf_counter()
        batch.n_tokens = 1
        batch.token[0], batch.pos[0] = token, position
        batch.n_seq_id[0], batch.seq_id[0][0], batch.logits[0] = 1, 0, 1
        if native.llama_decode(context, batch):
            raise SystemExit("llama_decode failed")
        row = ctypes.cast(native.llama_get_logits(context), ctypes.POINTER(ctypes.c_float))
        token = int(np.ctypeslib.as_array(row, (backend.n_vocab,)).argmax())
        times.append(time.perf_counter() - started)
    native.llama_batch_free(batch)
    native.llama_memory_seq_rm(memory, 0, start, -1)
    return times


def whole(model: Model, prompt: list[int], n: int) -> list[float]:
    """Seconds of each of the same n tokens, from event to event of `Model.complete`."""
    times, before = list[float](), time.perf_counter()
    for event in model.complete(prompt, GREEDY, max_tokens=n):
        now = time.perf_counter()
        times += [(now - before) / event.sampled] * event.sampled if event.sampled else []
        before = now
    if len(times) != n:
        raise SystemExit(f"the answer ended after {len(times)} tokens: choose fewer --tokens")
    return times


def repetition(model: Model, prompt: list[int], pairs: int, n: int) -> tuple[float, float, int]:
    """Median seconds a token, bare and whole, and the drafted tokens; who begins takes turns."""
    alone, through, drafted = list[float](), list[float](), 0
    for i in range(pairs):
        if i % 2:
            alone += bare(model, prompt, n)
        through += whole(model, prompt, n)
        drafted += model.stats.draft_n
        if not i % 2:
            alone += bare(model, prompt, n)
    return statistics.median(alone), statistics.median(through), drafted


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--model", help="path or catalogue name; the default model if missing")
    arguments.add_argument("--threads", type=int)
    arguments.add_argument("--pairs", type=int, default=20, help="pairs of stretches a repetition")
    arguments.add_argument("--tokens", type=int, default=16, help="tokens in a stretch")
    arguments.add_argument("--repetitions", type=int, default=5)
    args = arguments.parse_args()
    print("| spec | bare / runtime | min | max | bare ms | runtime ms | drafted |")
    print("|---|---|---|---|---|---|---|")
    for spec in ("off", "auto"):
        with edgespec.load(
            args.model, spec=spec, n_ctx=1024, n_threads=args.threads, calibrate="first"
        ) as model:
            prompt = prompt_of(model)
            whole(model, prompt, args.tokens)
            bare(model, prompt, args.tokens)
            runs = [repetition(model, prompt, args.pairs, args.tokens) for _ in range(args.repetitions)]
        ratios = [alone / through for alone, through, _ in runs]
        alone, through = (1000 * statistics.median(run[i] for run in runs) for i in (0, 1))
        print(
            f"| {spec} | {statistics.median(ratios):.3f} | {min(ratios):.3f} | {max(ratios):.3f} "
            f"| {alone:.2f} | {through:.2f} | {sum(run[2] for run in runs)} |"
        )


if __name__ == "__main__":
    main()
