"""The least time in which anyone could emit a recorded answer: what a policy is measured against.

It knows how many tokens of each draft the target would accept, and picks the cheapest sequence of rounds:

    T(i) = min over source s and n <= run_s(i) of D_s(n) + V(n + 1) + T(i + n + 1)

The copying source continues the longest earlier match (the latest of equals), of at least 2 tokens, for
at most 64; the recorded draft model drafts at most 32. Times are milliseconds from the first token on.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from edgespec.bench.replay import Replayed
from edgespec.bench.traces import Curve, Record

MOST_COPIED, MOST_DRAFTED, LONGEST_MATCH, SHORTEST_MATCH = 64, 32, 32, 2


def copied_runs(prompt: Sequence[int], output: Sequence[int]) -> list[int]:
    """How many tokens from output position i on copying gets right, `[len(output)]`."""
    text = [*prompt, *output]
    ends: defaultdict[int, list[int]] = defaultdict(list)
    runs = [0] * len(output)
    for last, token in enumerate(text):
        i = last + 1 - len(prompt)
        if 1 <= i < len(output):
            end, length = _longest(text, last, ends[token])
            if length >= SHORTEST_MATCH:
                copied = text[end + 1 : min(end + 1 + MOST_COPIED, last + 1)]
                runs[i] = _agreeing(copied, output[i:])
        ends[token].append(last)
    return runs


def _longest(text: Sequence[int], last: int, ends: Sequence[int]) -> tuple[int, int]:
    """(where the longest earlier copy of the text's ending ends, its length)."""
    best, longest = -1, 0
    for end in reversed(ends):
        n = 0
        while n < LONGEST_MATCH and end >= n and text[end - n] == text[last - n]:
            n += 1
        if n > longest:
            best, longest = end, n
        if longest == LONGEST_MATCH:
            break
    return best, longest


def _agreeing(a: Sequence[int], b: Sequence[int]) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def drafted_runs(match: Sequence[bool]) -> list[int]:
    """How many positions in a row from i on the draft model gets right, at most 32."""
    runs = [0] * (len(match) + 1)
    for i in reversed(range(len(match))):
        runs[i] = min(runs[i + 1] + 1, MOST_DRAFTED) if match[i] else 0
    return runs


def least_ms(record: Record, curve: Curve, *, draft: bool = True) -> float:
    n = len(record.output)
    copied = copied_runs(record.prompt, record.output)
    drafted = drafted_runs(record.match if draft else ())
    drafted += [0] * (n - len(drafted))
    verify = [1e3 * curve.verify(rows) for rows in range(1, MOST_COPIED + 2)]
    each = 1e3 * curve.draft
    least = [0.0] * (n + 1)
    for i in reversed(range(1, n)):
        runs = ((0.0, copied[i]), (each, drafted[i]))
        least[i] = min(
            cost * k + verify[k] + least[min(i + k + 1, n)]
            for cost, run in runs
            for k in range(min(run, n - i - 1, MOST_COPIED) + 1)
        )
    return least[1] if n > 1 else 0.0


def efficiency(results: Iterable[Replayed], least: dict[tuple[str, str], float]) -> dict[str, float]:
    """Least time / time of the policy, geometric mean over records, by curve."""
    logs: defaultdict[str, list[float]] = defaultdict(list)
    for r in results:
        logs[r.curve].append(math.log(least[r.id, r.curve] / r.policy_ms))
    return {curve: math.exp(sum(found) / len(found)) for curve, found in logs.items()}
