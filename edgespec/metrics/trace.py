"""One JSON line a round: what was planned, what it took, what came of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TextIO

from edgespec.types import Status, StepEvent


class TraceWriter:
    """Writes to an open text file. A failing disk raises OSError to the caller."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._round = 0

    def header(self, **facts: Any) -> None:
        self._write({"type": "header", **facts})

    def round(self, event: StepEvent, status: Status) -> None:
        o = event.outcome
        line: dict[str, Any] = {"type": "round", "round": self._round, "tokens": event.sampled}
        if o is not None:
            line |= {
                "context": o.context,
                "drafted": list(o.draft.tokens),
                "parents": list(o.draft.parents),
                "sources": list(o.draft.sources),
                "evidence": [list(e) for e in o.draft.evidence],
                "survival": [round(s, 4) for s in o.draft.survival],
                "accepted": o.accepted,
                "t_propose": o.t_propose,
                "t_verify": o.t_verify,
                "t_other": o.t_other,
                "offers": [
                    {
                        "source": x.draft.sources[0],
                        "tokens": len(x.draft),
                        "matched": sum(hit for _, hit in x.told),
                        "known": len(x.told),
                    }
                    for x in o.offers
                ],
            }
            if o.plan is not None:
                line["plan"] = {"proposers": list(o.plan.proposers), "max_draft": o.plan.max_draft}
        line["status"] = asdict(status)
        if event.finish is not None:
            line["finish"] = event.finish
        self._write(line)
        self._round = 0 if event.finish is not None else self._round + 1

    def _write(self, line: dict[str, Any]) -> None:
        self._out.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._out.flush()
