"""Several backends, each in its own way to speculate, on the same prompts in turns.

    python benchmarks/choice.py --prompts dev.jsonl --categories edit,refactor -n 128 \
        llamacpp:off:model.gguf llamacpp:auto:model.gguf auto:auto:model.gguf

Each contender is BACKEND:SPEC:MODEL; the first is the base of all ratios. All models stay loaded. Prints
a row a contender and prompt, and the geometric mean of the ratios to the base. Greedy, exact mode.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import edgespec
from edgespec.bench import answers, prompts
from edgespec.bench.local import LocalContender
from edgespec.bench.machine import EnergyMeter
from edgespec.bench.report import table
from edgespec.bench.runner import Plan, measure


def say(line: str) -> None:
    print(line, file=sys.stderr)


def contender(text: str, numerics: str) -> LocalContender:
    backend, spec, model = text.split(":", 2)
    loaded = edgespec.load(
        model, backend=backend, draft="none", numerics=numerics, calibrate="first", notify=say
    )
    name = f"{loaded.info.backend} {spec} {Path(model).stem}"
    say(f"{name}: {loaded.rows.mode}, {loaded.rows.reason}")
    return LocalContender(name, loaded, loaded.speculation(spec), EnergyMeter())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("contenders", nargs="+")
    parser.add_argument("--prompts", type=Path)
    parser.add_argument("--categories", default="")
    parser.add_argument("--numerics", default="exact")
    parser.add_argument("-n", type=int, default=128)
    parser.add_argument("-r", type=int, default=1)
    a = parser.parse_args()
    suite = prompts.read(a.prompts) if a.prompts else prompts.suite()
    wanted = set(a.categories.split(",")) - {""}
    suite = [p for p in suite if not wanted or p.category in wanted]
    contenders = [contender(text, a.numerics) for text in a.contenders]
    speeds: dict[tuple[str, str], list[float]] = defaultdict(list)
    texts: dict[tuple[str, str], set[object]] = defaultdict(set)
    for row in measure(contenders, suite, Plan(a.n, a.r), say):
        if isinstance(row, answers.Answer) and (speed := row.taken.tokens_per_second):
            where = (row.configuration, f"{row.place.prompt}.{row.place.turn}")
            speeds[where].append(speed)
            texts[where].add(row.taken.tokens)
    base = contenders[0].name
    places = sorted({place for _, place in speeds})
    lines, ratios = [], defaultdict(list)
    for c in contenders:
        for place in places:
            speed = statistics.median(speeds[c.name, place])
            ratio = speed / statistics.median(speeds[base, place])
            ratios[c.name].append(ratio)
            same = "yes" if texts[c.name, place] == texts[base, place] else "no"
            lines.append((c.name, place, f"{speed:.1f}", f"{ratio:.2f}", same))
    print("\n".join(table(("contender", "prompt", "tok/s", "of the base", "same text as the base"), lines)))
    print()
    for c in contenders:
        mean = math.exp(statistics.fmean(map(math.log, ratios[c.name])))
        print(f"{c.name}: geometric mean {mean:.2f} over {len(places)} prompts")


if __name__ == "__main__":
    main()
