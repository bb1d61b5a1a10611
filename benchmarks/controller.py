"""What the controller costs a round, on a scripted run without a model.

python benchmarks/controller.py

Copying: plan, trim and observe of a draft of 16. Drafting: also every choice on the way to a draft of 8.
Off: what is left of a round when nothing is worth drafting. Target: under 50 microseconds a round. Prints
a markdown table.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from edgespec.control import Controller, CostModel
from edgespec.types import NO_DRAFT, Draft, Offer, Outcome, Plan, chain

ROUNDS = 3000
SECONDS = {1: 0.033, 2: 0.058, 3: 0.081, 4: 0.088, 8: 0.176, 16: 0.241, 32: 0.46, 64: 0.8}
COPIED = chain(range(16), "suffix", [(6.0 + i, 1.0, 2.0) for i in range(16)])
DOUBTFUL = chain(range(4), "suffix", [(1.0 + i, 0.3, 1.0) for i in range(4)])


def copying(plan: Plan, i: int) -> Draft:
    return COPIED


def doubtful(plan: Plan, i: int) -> Draft:
    return DOUBTFUL


def drafting(plan: Plan, i: int) -> Draft:
    evidence = [(0.9 + 0.01 * ((i + j) % 10), 0.0) for j in range(8)]
    for j in range(8):
        plan.choose(evidence[:j], ())
    return chain(range(8), "draft", evidence)


def measure(propose: Callable[[Plan, int], Draft], draft_seconds: float) -> list[float]:
    """Microseconds of each round."""
    policy = Controller(("suffix", "draft"), CostModel(SECONDS, {"draft": draft_seconds}))
    policy.begin()
    times = []
    for i in range(ROUNDS):
        began = time.perf_counter()
        offered = propose(policy.plan(64), i)
        draft = policy.trim(offered)
        middle = time.perf_counter()
        n = len(draft)
        accepted = n if i % 3 else n // 2
        seconds = policy.cost.verify(n + 1) * (0.97 + 0.01 * (i % 7))
        matched = accepted if n else i % 2
        offer = Offer(offered, tuple((j, j < matched) for j in range(min(len(offered), matched + 1))))
        t_propose = draft_seconds * 8 if offered.sources[0] == "draft" else 0.0
        outcome = Outcome(draft, accepted, accepted + 1, 100, t_propose, seconds, 0.0, (offer,))
        resumed = time.perf_counter()
        policy.observe(outcome)
        times.append(1e6 * (middle - began + time.perf_counter() - resumed))
    return times


def main() -> None:
    policy = Controller(("suffix",), CostModel(SECONDS))
    assert policy.trim(NO_DRAFT) == NO_DRAFT
    print("| round | median us | 99% us |")
    print("|---|---|---|")
    for name, propose, each in (
        ("copying, 16 tokens", copying, 0.02),
        ("nothing worth it", doubtful, 0.02),
        ("drafting, 8 tokens", drafting, 0.002),
    ):
        times = sorted(measure(propose, each))
        print(f"| {name} | {statistics.median(times):.0f} | {times[int(0.99 * len(times))]:.0f} |")


if __name__ == "__main__":
    main()
