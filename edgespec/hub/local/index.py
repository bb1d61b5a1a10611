"""What the headers of models on disk say, read once and kept by size and time of every file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from edgespec.errors import EdgespecError, UnsupportedModelError
from edgespec.hub import cachedir, gguf
from edgespec.hub.gguf import Header, whole
from edgespec.hub.gguf_reader import KnownLists
from edgespec.hub.local.found import Found
from edgespec.hub.reference import visible

_VERSION = 1
Condition = Literal["ok", "broken", "unsupported"]


@dataclass(frozen=True, slots=True)
class Facts:
    """A model in few words. `size`: bytes on disk of all files; `problem`: why it is not "ok", in one line.

    `tokenizer`, `n_vocab`, `bos`, `eos` and `add_bos` are those of its vocabulary, None where it says
    nothing; `template` has the marks between turns of its chat template, None without a template.
    """

    size: int
    condition: Condition = "ok"
    problem: str | None = None
    architecture: str | None = None
    title: str | None = None
    quantization: str | None = None
    context: int | None = None
    n_params: int | None = None
    tokenizer: str | None = None
    n_vocab: int | None = None
    bos: int | None = None
    eos: int | None = None
    add_bos: bool | None = None
    template: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A model on disk with its facts."""

    found: Found
    facts: Facts

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def quantization(self) -> str | None:
        return self.found.quantization or self.facts.quantization


def listed(models: Iterable[Found]) -> tuple[Listed, ...]:
    """The facts of each; only headers that are new or have changed since the last time are read."""
    path = cachedir.folder() / "headers.json"
    before, now, changed = _read(path), {}, False
    known: KnownLists = {}
    found: list[Listed] = []
    for model in models:
        key, stamp = str(model.path), _stamp(model)
        facts = _restored(before.get(key), stamp)
        if facts is None:
            facts, changed = read_facts(model, known), True
        now[key] = [stamp, {name: getattr(facts, name) for name in Facts.__slots__}]
        found.append(Listed(model, facts))
    if changed or now.keys() != before.keys():
        cachedir.write(path, json.dumps({"version": _VERSION, "models": now}).encode())
    return tuple(found)


def read_facts(model: Found, known: KnownLists | None = None) -> Facts:
    """The facts from the model's files themselves."""
    size = sum(stamp[0] for stamp in _stamp(model) if stamp)
    try:
        return replace(facts_of(gguf.check(model.path, known)), size=size)
    except EdgespecError as error:
        condition: Condition = "unsupported" if isinstance(error, UnsupportedModelError) else "broken"
        problem = str(error).removeprefix(visible(model.path)).lstrip(": ")
        return Facts(size=size, condition=condition, problem=problem)


def facts_of(header: Header) -> Facts:
    """The facts of a header; `size` is what it needs."""
    tokens = header.lists.get("tokenizer.ggml.tokens")
    kind, pre = header.text("tokenizer.ggml.model"), header.text("tokenizer.ggml.pre")
    add_bos = header.metadata.get("tokenizer.ggml.add_bos_token")
    template = header.text("tokenizer.chat_template")
    return Facts(
        size=header.size,
        architecture=header.architecture,
        title=header.name,
        quantization=header.quantization,
        context=header.context,
        n_params=header.n_params,
        tokenizer=kind and f"{kind}/{pre}" if pre else kind,
        n_vocab=tokens.count if tokens else None,
        bos=whole(header.metadata.get("tokenizer.ggml.bos_token_id")),
        eos=whole(header.metadata.get("tokenizer.ggml.eos_token_id")),
        add_bos=add_bos if isinstance(add_bos, bool) else None,
        template=None if template is None else turn_marks(template),
    )


def turn_marks(template: str) -> tuple[str, ...]:
    """The special texts that a chat template puts around turns, sorted."""
    import re

    marks = re.findall(
        r"<\|[^|<>\s]{1,40}\|>|<(?:start|end)_of_turn>|\[/?INST\]|<[^<>\s]*[|｜][^<>\s]*>", template
    )
    return tuple(sorted(set(marks)))[:64]


def _stamp(model: Found) -> list[list[int]]:
    """Size and time of every file; an empty one for a file that is not there."""
    stamps = []
    for path in model.files:
        try:
            status = path.stat()
            stamps.append([status.st_size, status.st_mtime_ns])
        except OSError:
            stamps.append([])
    return stamps


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
        models = content["models"]
        return models if content["version"] == _VERSION and isinstance(models, dict) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _restored(kept: Any, stamp: list[list[int]]) -> Facts | None:
    """The facts as they were kept, if they are of the files as they are now."""
    try:
        then, facts = kept
        template = facts.get("template")
        whole = {**facts, "template": None if template is None else tuple(template)}
        return Facts(**whole) if then == stamp else None
    except (AttributeError, TypeError, ValueError):
        return None
