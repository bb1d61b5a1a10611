"""Which backend is the fastest for a model here, and what is expected of each."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path

from edgespec.api.backends import convertible
from edgespec.api.choosing import Candidate, best
from edgespec.doctor.sections import Section, Table
from edgespec.doctor.subject import Subject

_HEADER = ("backend", "one row", "exact up to", "expected")
_WHAT = "exact passes with speculation, over copying and drafts of several kinds alike"


def choice(subject: Subject) -> Section | None:
    """Nothing to tell where only one backend can load the model, or one was asked for by name."""
    candidates = subject.candidates
    if len(candidates) < 2:
        return None
    chosen = best(candidates)
    facts = [("chosen", f"{chosen or 'none could be measured'}, for --backend auto from now on")]
    facts += [(c.backend, c.excluded) for c in candidates if c.excluded is not None]
    if subject.path is not None:
        facts += [(name, _convert(name, subject.path)) for name in convertible(subject.path)]
    facts += [("expected", _WHAT), ("again", "edgespec doctor --measure MODEL decides anew")]
    rows = tuple(_row(candidate) for candidate in candidates if candidate.excluded is None)
    figures = {"chosen": chosen, "candidates": [asdict(candidate) for candidate in candidates]}
    return Section("Choice of the backend", tuple(facts), table=Table(_HEADER, rows), figures=figures)


def _convert(name: str, path: Path) -> str:
    return f"not compared; edgespec convert {shlex.quote(str(path))} --to {name} makes it possible"


def _row(c: Candidate) -> tuple[str, ...]:
    rows = f"{c.exact} rows" if c.exact > 1 else "1 row"
    return c.backend, f"{c.single * 1e3:.1f} ms", rows, f"{c.rate:.1f} tok/s"
