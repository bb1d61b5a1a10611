"""Time to extend the history by a token and propose 16, on histories up to 50,000 tokens.

python benchmarks/proposing.py

The histories: random text with copied stretches, a loop, and a table whose separator is followed by
ever new tokens. Prints a markdown table, microseconds a round.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from edgespec.proposers import NgramProposer, SuffixProposer
from edgespec.types import Plan

SIZES = (1_000, 10_000, 50_000)
ROUNDS = 500
PLAN = Plan(("suffix", "ngram"), 16)


def copied(n: int) -> list[int]:
    rng, out = np.random.default_rng(1), list[int]()
    while len(out) < n:
        if len(out) > 200 and rng.random() < 0.5:
            at = int(rng.integers(len(out) - 100))
            out += out[at : at + int(rng.integers(5, 80))]
        else:
            out += rng.integers(0, 5000, 20).tolist()
    return out[:n]


def loop(n: int) -> list[int]:
    return [i % 7 for i in range(n)]


def table(n: int) -> list[int]:
    return [(1, 2, 10 + i // 3)[i % 3] for i in range(n)]


def measure(proposer: NgramProposer | SuffixProposer, text: list[int]) -> list[float]:
    history, times = text[:-ROUNDS], []
    proposer.begin(history)
    proposer.propose(history, PLAN)
    for token in text[-ROUNDS:]:
        history.append(token)
        started = time.perf_counter()
        proposer.propose(history, PLAN)
        times.append(1e6 * (time.perf_counter() - started))
    return times


def main() -> None:
    print("| history | proposer | tokens | median us | 99% us |")
    print("|---|---|---|---|---|")
    for make in (copied, loop, table):
        for kind in (SuffixProposer, NgramProposer):
            for size in SIZES:
                times = sorted(measure(kind(), make(size)))
                high = times[int(0.99 * len(times))]
                median = statistics.median(times)
                print(f"| {make.__name__} | {kind.name} | {size:,} | {median:.0f} | {high:.0f} |")


if __name__ == "__main__":
    main()
