"""Does a row computed among n rows equal the same row computed alone, and what does it cost?

    python benchmarks/row_invariance.py MODEL.gguf
    python benchmarks/row_invariance.py MODEL.gguf --speed

The first decodes a stretch of text token by token, goes back, decodes it again in passes of n rows and
compares every logit, so that what a pass leaves in the cache is compared too. The second times passes with
every cache type, taking turns, and prints medians of the ratios to the first type; with one thread it
counts processor time, which other programs do not disturb. Both print a markdown table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

from edgespec.backends.base import LoadedModel, LoadOptions
from edgespec.backends.llamacpp import load

TEXT = Path(__file__).read_text()


def open_model(args, kv, threads, repack) -> LoadedModel:
    type_k, type_v = kv.split("/")
    options = LoadOptions(
        n_ctx=max(args.contexts) + args.stretch + 64,
        n_threads=threads,
        n_threads_batch=threads,
        type_k=type_k,
        type_v=type_v,
    )
    return load(args.model, options, repack=repack)


def text_tokens(model: LoadedModel, n: int) -> list[int]:
    tokens = model.vocabulary.tokenize(TEXT, special=False)
    return (tokens * (n // len(tokens) + 1))[:n]


def extend(backend, tokens) -> None:
    """Append tokens, as a prompt is."""
    if tokens:
        backend.forward(tokens, rows="none")
        backend.commit(range(len(tokens)))


def decode(backend, tokens, n) -> np.ndarray:
    """Logits of `tokens`, decoded in passes of n rows; a remainder is left out."""
    rows = []
    for start in range(0, len(tokens) - n + 1, n):
        rows.append(backend.forward(tokens[start : start + n]).copy())
        backend.commit(range(n))
    return np.concatenate(rows)


def deviations(model: LoadedModel, args, context) -> dict[int, float]:
    """Largest logit difference to single rows, for each row count."""
    backend = model.backend
    tokens = text_tokens(model, context + args.stretch)
    extend(backend, tokens[backend.length : context])
    alone = decode(backend, tokens[context:], 1)
    found = {}
    for n in args.rows:
        backend.truncate(context)
        among = decode(backend, tokens[context:], n)
        found[n] = float(np.abs(among - alone[: len(among)]).max())
    backend.truncate(context)
    return found


def measure_exactness(args) -> None:
    print(f"| K/V | repack | threads | context | {' | '.join(f'n={n}' for n in args.rows)} |")
    print("|" + "---|" * (4 + len(args.rows)))
    for repack in args.repack:
        for kv in args.kv:
            for threads in args.threads:
                model = open_model(args, kv, threads, repack == "on")
                for context in args.contexts:
                    found = deviations(model, args, context)
                    cells = " | ".join("0" if d == 0 else f"{d:.2g}" for d in found.values())
                    print(f"| {kv} | {repack} | {threads} | {context} | {cells} |", flush=True)
                model.backend.close()


def timed(clock, backend, tokens) -> float:
    start = clock()
    backend.forward(tokens)
    elapsed = clock() - start
    backend.commit(())
    return elapsed


def timed_prompts(clock, models, tokens) -> list[float]:
    """Seconds a token for each model, taking turns every 256 tokens."""
    seconds = [0.0] * len(models)
    for start in range(0, len(tokens), 256):
        for i, model in enumerate(models):
            before = clock()
            extend(model.backend, tokens[start : start + 256])
            seconds[i] += clock() - before
    return [total / max(len(tokens), 1) for total in seconds]


BYTES = {"f32": 4, "f16": 2, "bf16": 2, "q8_0": 34 / 32, "q4_0": 18 / 32}


def cache_size(kv: str) -> str:
    """Size of the cache as a share of f16/f16."""
    return f"{sum(BYTES[kind] for kind in kv.split('/')) / 4:.2f}"


def measure_speed(args) -> None:
    threads, repack = args.threads[-1], args.repack[-1] == "on"
    clock = time.process_time if threads == 1 else time.perf_counter
    models = [open_model(args, kv, threads, repack) for kv in args.kv]
    tokens = text_tokens(models[0], max(args.contexts) + 64)
    head = " | ".join(f"n={n}" for n in (1, *args.rows))
    print(f"repack {args.repack[-1]}, {threads} threads; first line ms, then ratios to it\n")
    print(
        f"| context | K/V | cache size | prompt | {head} |\n"
        + "|---|---|---|---|"
        + "---|" * (1 + len(args.rows))
    )
    for context in args.contexts:
        prompt = timed_prompts(clock, models, tokens[models[0].backend.length : context])
        times = {
            n: [[timed(clock, m.backend, tokens[:n]) for m in models] for _ in range(args.repeat)]
            for n in (1, *args.rows)
        }
        for i, kv in enumerate(args.kv):
            if i == 0:
                cells = [f"{statistics.median(r[0] for r in times[n]) * 1e3:.1f}" for n in times]
                first = f"{prompt[0] * 1e3:.2f}"
            else:
                cells = [f"{statistics.median(r[i] / r[0] for r in times[n]):.3f}" for n in times]
                first = f"{prompt[i] / prompt[0]:.2f}"
            print(f"| {context} | {kv} | {cache_size(kv)} | {first} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument(
        "--kv", nargs="+", default=["f16/f16", "f16/f32", "f16/bf16", "bf16/bf16", "q8_0/q8_0", "f32/f32"]
    )
    parser.add_argument("--contexts", nargs="+", type=int, default=[100, 300, 700, 1500])
    parser.add_argument("--rows", nargs="+", type=int, default=[2, 3, 4, 5, 6, 8, 12, 16, 24, 32])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repack", nargs="+", choices=["on", "off"], default=["off"])
    parser.add_argument("--stretch", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--speed", action="store_true")
    args = parser.parse_args()
    measure_speed(args) if args.speed else measure_exactness(args)


if __name__ == "__main__":
    main()
