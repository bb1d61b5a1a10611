"""Time of sampling and verification in one round: 151,936 tokens, 8 of them drafted.

python benchmarks/sampling.py

Every drafted token is accepted, so all 9 rows are looked at. Prints a markdown table.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from edgespec.engine.step import Judge
from edgespec.sampling import Sampler
from edgespec.types import SamplingSettings, chain

N_VOCAB, DRAFTED, REPEATS = 151_936, 8, 300
HISTORY = list(range(1000))
CASES = {
    "temperature 0": SamplingSettings(temperature=0.0),
    "temperature 0.8, top-k 40": SamplingSettings(top_p=1.0, min_p=0.0),
    "the default (0.8, top-k 40, top-p 0.95, min-p 0.05)": SamplingSettings(),
    "the default with a repeat penalty": SamplingSettings(repeat_penalty=1.1),
    "temperature 0.8, top-p 0.95 alone": SamplingSettings(top_k=0, min_p=0.0),
}


def accepted_everywhere(judge: Judge, rows: np.ndarray) -> list[int]:
    path: list[int] = []
    for row in rows[:DRAFTED]:
        path.append(judge.sampler.choose(row, HISTORY, path))
    return path


def main() -> None:
    rng = np.random.default_rng(1)
    rows = (rng.standard_normal((DRAFTED + 1, N_VOCAB)) * 2.5).astype(np.float32)
    print(f"| {N_VOCAB:,} tokens, {DRAFTED} drafted, coupled | median ms | min | max |")
    print("|---|---|---|---|")
    for name, settings in CASES.items():
        judge = Judge(Sampler(settings))
        draft = chain(accepted_everywhere(judge, rows), "draft", [(1.0, 0.0)] * DRAFTED)
        assert len(judge(draft, rows, HISTORY).path) == DRAFTED
        times = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            judge(draft, rows, HISTORY)
            times.append(1000 * (time.perf_counter() - started))
        print(f"| {name} | {statistics.median(times):.2f} | {min(times):.2f} | {max(times):.2f} |")


if __name__ == "__main__":
    main()
