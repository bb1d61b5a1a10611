"""Results kept in a file, and two of them compared."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import edgespec
from edgespec.api import Model
from edgespec.backends.base import ModelInfo
from edgespec.bench.answers import Answer, First, differences
from edgespec.bench.machine import peak_memory, processor
from edgespec.bench.prompts import BenchPrompt, digest
from edgespec.bench.report import Facts, ratio, table
from edgespec.bench.rows import ALL, rows
from edgespec.bench.runner import Plan
from edgespec.bench.stats import ratio_of_medians
from edgespec.calibration import fingerprint
from edgespec.errors import EdgespecError, UsageError

VERSION = 1
_LIBRARIES = ("llama-cpp-python", "numpy")


class SaveError(EdgespecError):
    """The results could not be written."""


@dataclass(frozen=True, slots=True)
class Results:
    facts: Facts
    answers: tuple[Answer, ...]
    firsts: tuple[First, ...]


def facts(
    model: Model,
    configurations: Sequence[str],
    prompts: tuple[str, Sequence[BenchPrompt]],
    plan: Plan,
    command: str,
    measured: tuple[Sequence[Answer], Sequence[First]],
    planned: int,
) -> Facts:
    """Everything needed to read the rows. `prompts`: the name of the set and what it holds."""
    name, asked = prompts
    answers, firsts = measured
    done = len(answers) + len(firsts)
    return {
        "version": VERSION,
        "date": datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        "command": command,
        "machine": processor(),
        "versions": {
            "edgespec": edgespec.__version__,
            "python": platform.python_version(),
            **{library: _version(library) for library in _LIBRARIES},
        },
        "model": _identity(model.info),
        "draft": _identity(model.draft_info) if model.draft_info else None,
        "cascade": _identity(model.cascade_info) if model.cascade_info else None,
        "configurations": list(configurations),
        "prompts": {"name": name, "count": len(asked), "digest": digest(asked)},
        "settings": {
            "n": plan.n,
            "repetitions": plan.repetitions,
            "temperature": plan.sampling.temperature,
            "seed": plan.sampling.seed,
            "n_ctx": model.n_ctx,
            "numerics": model.rows.mode,
            "numerics_reason": model.rows.reason,
            "exact_rows": list(model.rows.exact),
        },
        "peak_memory": peak_memory(),
        "done": done,
        "planned": planned,
        "complete": done == planned,
        "differences": [
            {"configuration": d.configuration, **asdict(d.place), "position": d.position}
            for d in differences(answers)
        ],
    }


def _identity(info: ModelInfo) -> dict[str, Any]:
    path = Path(info.path)
    return {
        "name": info.name,
        "file": path.name,
        "quantization": info.quantization,
        "fingerprint": fingerprint(path) if path.is_file() else None,
        "backend": info.backend,
        "device": info.device,
        "settings": info.settings,
    }


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def default_path(facts: Facts) -> Path:
    """In the user's data directory, or in `EDGESPEC_DATA`."""
    import platformdirs

    root = os.environ.get("EDGESPEC_DATA") or platformdirs.user_data_dir("edgespec")
    stamp = re.sub(r"[^0-9T]", "", facts["date"][:19])
    model = re.sub(r"[^\w.-]+", "-", Path(facts["model"]["file"]).stem)
    return Path(root) / "bench" / f"{stamp}-{model}.json"


def save(path: Path, results: Results) -> None:
    """Raises SaveError."""
    content = {
        **results.facts,
        "rows": [row.as_dict() for row in rows(results.answers, results.firsts)],
        "answers": [answer.as_dict() for answer in results.answers],
        "firsts": [asdict(first) for first in results.firsts],
    }
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(content, ensure_ascii=False) + "\n", "utf-8")
        part.replace(path)
    except OSError as error:
        raise SaveError(f"cannot save the results to {path}: {error.strerror or error}") from error


def read(path: Path) -> Results:
    """Raises UsageError if it is not a file that `save` wrote."""
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["version"] != VERSION:
            raise UsageError(f"{path} was saved in format {content['version']}; this is format {VERSION}")
        answers = tuple(map(Answer.from_dict, content.pop("answers")))
        firsts = tuple(First(**first) for first in content.pop("firsts"))
        del content["rows"]
        return Results(content, answers, firsts)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path} holds no results of edgespec bench --save") from error


_SAME: dict[str, Callable[[Facts], Any]] = {
    "models": lambda f: f["model"]["fingerprint"],
    "prompts": lambda f: f["prompts"]["digest"],
    "token limits": lambda f: f["settings"]["n"],
    "temperatures": lambda f: f["settings"]["temperature"],
}


def compare(a: Results, b: Results, *, anyway: bool = False) -> str:
    """What changed from a to b as markdown. Raises UsageError if they did not measure the same."""
    wrong = [
        f"{what} ({_named(what, a.facts)} and {_named(what, b.facts)})"
        for what, of in _SAME.items()
        if of(a.facts) != of(b.facts)
    ]
    if wrong and not anyway:
        raise UsageError(f"not comparable, different {', '.join(wrong)}; --anyway compares them all the same")
    lines = [
        f"- A: {a.facts['date']}, `{a.facts['command']}`",
        f"- B: {b.facts['date']}, `{b.facts['command']}`",
        *(f"- different {what}" for what in wrong),
        *(f"- {change}" for change in _changes(a.facts, b.facts)),
    ]
    titles = [
        "category",
        "configuration",
        "A tok/s",
        "B tok/s",
        "B / A (95%)",
        "A speedup",
        "B speedup",
        "texts",
    ]
    return "\n".join([*lines, "", *table(titles, _compared(a, b)), ""])


def _named(what: str, f: Facts) -> str:
    if what == "models":
        return str(f["model"]["file"])
    if what == "prompts":
        return f"{f['prompts']['name']}, {f['prompts']['count']}"
    return str(_SAME[what](f))


def _changes(a: Facts, b: Facts) -> list[str]:
    """Settings, versions and devices that are not the same."""
    before, after = _flat(a), _flat(b)
    keys = sorted(before.keys() | after.keys())
    return [f"{k}: {before.get(k)} -> {after.get(k)}" for k in keys if before.get(k) != after.get(k)]


def _flat(f: Facts) -> dict[str, Any]:
    return {
        "machine": f["machine"],
        **{which: (f.get(which) or {}).get("file") for which in ("draft", "cascade")},
        **{f"version of {name}": value for name, value in f["versions"].items()},
        **{f"setting {name}": value for name, value in f["settings"].items()},
        **{f"model setting {name}": value for name, value in f["model"]["settings"].items()},
    }


def _compared(a: Results, b: Results) -> list[list[str]]:
    before = {(r.category, r.configuration): r for r in rows(a.answers, a.firsts)}
    out = []
    for row in rows(b.answers, b.firsts):
        old = before.get((row.category, row.configuration))
        if old is None:
            continue
        pairs, changed = _pairs(a, b, row.category, row.configuration)
        out.append(
            [
                row.category,
                row.configuration,
                f"{old.tokens_per_second or 0:.1f}",
                f"{row.tokens_per_second or 0:.1f}",
                ratio(ratio_of_medians(pairs)),
                ratio(old.speedup),
                ratio(row.speedup),
                f"{changed} changed",
            ]
        )
    return out


def _pairs(
    a: Results, b: Results, category: str, configuration: str
) -> tuple[list[tuple[float, float]], int]:
    """(tok/s in a, in b) at every place that both have, and how many texts are not the same."""
    before = {
        x.place: x.taken
        for x in a.answers
        if x.configuration == configuration and category in (ALL, x.place.category)
    }
    both = [
        (before[y.place], y.taken)
        for y in b.answers
        if y.configuration == configuration and y.place in before
    ]
    rates = [(x.tokens_per_second, y.tokens_per_second) for x, y in both]
    return [(x, y) for x, y in rates if x and y], sum(x.text != y.text for x, y in both)
