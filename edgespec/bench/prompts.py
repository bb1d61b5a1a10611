"""The prompts to measure with: a suite that ships with the package, or a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from edgespec.errors import UsageError


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """`turns`: what the user says, one after the other."""

    id: str
    category: str
    turns: tuple[str, ...]


def suite() -> list[BenchPrompt]:
    """The packaged prompts: chat, code, edit, summary, extraction and translation."""
    text = files("edgespec.bench").joinpath("prompts.jsonl").read_text("utf-8")
    return _parsed(text, "the packaged prompts", "suite")


def read(path: Path) -> list[BenchPrompt]:
    """JSON lines of `{id, category, turns}` or `{prompt}`, or one prompt a line. Raises UsageError."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the prompts {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the prompts {path} are not UTF-8 text (byte {error.start})") from error
    return _parsed(text, str(path), path.stem)


def digest(prompts: Sequence[BenchPrompt]) -> str:
    """The same for the same prompts, in any order."""
    lines = sorted(json.dumps([p.id, p.category, *p.turns]) for p in prompts)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def in_turn(prompts: Sequence[BenchPrompt]) -> list[BenchPrompt]:
    """One of each category after the other, so that a run that is stopped early has some of all."""
    by_category: dict[str, list[BenchPrompt]] = {}
    for prompt in prompts:
        by_category.setdefault(prompt.category, []).append(prompt)
    return [p for p in chain.from_iterable(zip_longest(*by_category.values())) if p is not None]


def _parsed(text: str, name: str, category: str) -> list[BenchPrompt]:
    prompts = list(_lines(text, name, category))
    if not prompts:
        raise UsageError(f"{name} has no prompts")
    ids = [prompt.id for prompt in prompts]
    if twice := next((i for i in ids if ids.count(i) > 1), None):
        raise UsageError(f"{name} has the id {twice!r} twice")
    return prompts


def _lines(text: str, name: str, category: str) -> Iterator[BenchPrompt]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            yield BenchPrompt(str(number), category, (line.strip(),))
            continue
        try:
            fields: dict[str, Any] = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{name}, line {number} is not JSON: {error}") from error
        turns = fields.get("turns", [fields["prompt"]] if "prompt" in fields else None)
        if not isinstance(turns, list) or not turns or not all(isinstance(t, str) and t for t in turns):
            raise UsageError(f'{name}, line {number} needs "turns", a list of texts, or "prompt", a text')
        own = fields.get("category", category)
        yield BenchPrompt(str(fields.get("id", number)), str(own), tuple(turns))
