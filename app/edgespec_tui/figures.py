"""The line under an answer, and what the panel shows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from edgespec.history import Figures, Turn
from edgespec_tui.text import count


def answer_line(turn: Turn) -> str:
    """Tokens, rate, time to the first token and acceptance of a finished answer."""
    figures = turn.figures
    parts = [] if turn.state == "complete" else ["stopped" if turn.state == "stopped" else "interrupted"]
    if figures is not None and figures.tokens:
        parts += _counts(figures)
    if turn.state == "complete" and not turn.content.strip():
        parts.append("the model ended at once, without a word")
    if turn.finish == "length":
        parts.append("cut at the limit")
    return " · ".join(parts)


def _counts(figures: Figures) -> list[str]:
    parts = [count(figures.tokens, "token")]
    if figures.tokens_per_second:
        parts.append(f"{figures.tokens_per_second:.1f} tok/s")
    parts.append(f"first after {figures.t_first:.2f} s")
    rate = figures.acceptance_rate
    if rate is None:
        parts.append("nothing drafted")
    else:
        parts.append(f"accepted {figures.draft_n_accepted}/{figures.draft_n} ({rate:.0%})")
    return parts


def speedup(tokens: int, policy: Mapping[str, float]) -> float | None:
    """Time of plain decoding / time that was taken, for an answer of so many tokens.

    The controller counts each round in passes over one row, V(1) as measured at that moment.
    """
    taken = tokens - policy.get("saved_tokens", 0.0)
    return tokens / taken if "saved_tokens" in policy and tokens > 0 and taken > 0 else None


def memory() -> int | None:
    """Bytes of this process that are in memory; None where nobody tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        import resource

        return pages * resource.getpagesize()
    except (OSError, ValueError, IndexError, ImportError):
        pass
    try:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    except (ImportError, OSError):
        return None
