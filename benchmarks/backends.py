"""What a pass over n rows costs, and which n are exact, for pairs of backend and model, interleaved.

    python benchmarks/backends.py llamacpp:model.gguf onnx:folder ik:model.gguf

A GGUF file after `onnx:` or `mlx:` is converted into the cache first. All models stay loaded and take turns,
so that a busy moment of the machine hits all. Memory is what loading and measuring added to the process.
With --cpu the time is that of the processor, which other programs disturb less; use it with -t 1.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

from edgespec.backends.base import LoadOptions
from edgespec.backends.registry import ADAPTERS, adapter
from edgespec.backends.rows import exact_rows
from edgespec.convert import FORMS, prepare

ROWS = (1, 2, 3, 4, 5, 8, 16)
TEXT = "The tower is 324 metres tall, about as high as a building of 81 storeys. def f(x): return x + 1\n"


class Subject:
    """One loaded model, with the times of its passes in milliseconds by row count."""

    def __init__(self, name: str, context: int, threads: int | None, clock):
        self.clock = clock
        backend, path = name.split(":", 1)
        source = Path(path)
        if backend in FORMS and source.is_file() and adapter(backend).refuses(source):
            source = prepare(source, backend, notify=say, progress=lambda share: None)
        before = resident()
        options = LoadOptions(n_ctx=context + 512, max_rows=33, n_threads=threads, notify=say)
        self.model = adapter(backend).load(source, options)
        self.name, self.times = f"{backend} {Path(path).name}", {n: [] for n in ROWS}
        tokens = self.model.vocabulary.tokenize(TEXT * (context // 10), special=False)
        self.exact = sorted(exact_rows(self.model.backend, tokens[:100], (*ROWS, 6, 12, 24, 32)))
        self.model.backend.truncate(0)
        self.prefill = context / self.pass_over(tokens[:context], rows="none") * 1e3
        self.model.backend.commit(range(context))
        self.rest = tokens[context : context + max(ROWS)]
        self.memory = resident() - before

    def pass_over(self, tokens, **how):
        started = self.clock()
        self.model.backend.forward(tokens, **how)
        return (self.clock() - started) * 1e3

    def measure(self, n):
        self.times[n].append(self.pass_over(self.rest[:n]))
        self.model.backend.commit(())


def resident() -> float:
    """Megabytes of this process that are its own, without mapped files."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1e3


def say(line):
    print(line, file=sys.stderr)


def table(subjects, of):
    print("| ms, " + of.__name__ + " | " + " | ".join(map(str, ROWS)) + " |")
    print("|---" * (len(ROWS) + 1) + "|")
    for s in subjects:
        print(f"| {s.name} | " + " | ".join(f"{of(s.times[n]):.1f}" for n in ROWS) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="BACKEND:MODEL", help=f"backends: {', '.join(ADAPTERS)}")
    parser.add_argument("-r", "--rounds", type=int, default=15)
    parser.add_argument("-c", "--context", type=int, default=300)
    parser.add_argument("-t", "--threads", type=int, default=None)
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall time")
    args = parser.parse_args()
    clock = time.process_time if args.cpu else time.perf_counter
    subjects = [Subject(pair, args.context, args.threads, clock) for pair in args.pairs]
    for _ in range(args.rounds):
        for n in ROWS:
            for subject in subjects:
                subject.measure(n)
    for of in (statistics.median, min):
        table(subjects, of)
    for s in subjects:
        print(f"{s.name}: exact {s.exact}, prefill {s.prefill:.0f} tok/s, {s.memory:,.0f} MB")
    for s in subjects:
        s.model.backend.close()


if __name__ == "__main__":
    main()
