"""A model as it runs here: how it is loaded, what passes cost, and which depth pays."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgespec import hub
from edgespec.control import CostModel
from edgespec.control.attainable import STEADY, best_depth, steady
from edgespec.doctor.advice import advice
from edgespec.doctor.sections import Bar, Finding, Section, Table
from edgespec.doctor.subject import Picture, Subject


def model(subject: Subject) -> Section:
    picture = subject.picture
    if picture is None:
        name = hub.default_card().name
        fix = f"edgespec pull {name}"
        return Section(
            "Model",
            (("model", "none on this machine"),),
            findings=(Finding("Without a model nothing can be measured.", fix),),
        )
    info, settings = picture.info, picture.info.settings
    facts = [
        ("model", f"{Path(info.path).name}, {info.quantization}, {info.size_bytes / 1e6:,.0f} MB"),
        ("runs on", f"{info.backend}, {info.device}"),
        ("threads", str(settings.get("n_threads", "chosen by the backend"))),
        ("load mode", f"{_load_mode(picture)}, loaded in {picture.load_seconds:.1f} s"),
        ("cache", _cache(picture)),
        ("numerics", f"{picture.rows.mode}: {picture.rows.reason}"),
    ]
    if picture.draft is not None:
        facts.append(("draft model", f"{Path(picture.draft.path).name}, {_draft_cost(picture)}"))
    elif picture.pairing:
        facts.append(("draft model", f"none: {picture.pairing}"))
    figures = {
        "path": info.path,
        "quantization": info.quantization,
        "backend": info.backend,
        "device": info.device,
        "settings": dict(settings),
        "load_seconds": picture.load_seconds,
        "numerics": picture.rows.mode,
        "numerics_reason": picture.rows.reason,
        "exact_rows": list(picture.costs.exact),
        "draft": picture.draft.path if picture.draft else None,
        "draft_seconds": picture.costs.draft,
        "page_faults": picture.faults,
        "other_processes": picture.others,
    }
    return Section("Model", tuple(facts), findings=advice(picture), figures=figures)


def _load_mode(picture: Picture) -> str:
    mode = str(picture.info.settings.get("load_mode", "the backend's own"))
    return "auto (memory mapping)" if mode == "auto" else mode


def _cache(picture: Picture) -> str:
    settings = picture.info.settings
    if "type_k" not in settings:
        return "the backend's own"
    flash = "on" if settings.get("flash_attn") else "off"
    return f"keys {settings['type_k']}, values {settings['type_v']}, flash attention {flash}"


def _draft_cost(picture: Picture) -> str:
    seconds = picture.costs.draft or 0.0
    return f"{seconds * 1e3:.1f} ms a token, {picture.each:.2f} of the target's"


def curve(subject: Subject) -> Section | None:
    """V(n) as measured."""
    if (picture := subject.picture) is None:
        return None
    seconds, exact = picture.costs.seconds, picture.costs.exact
    bars = tuple(Bar(n, s, s / seconds[1], n in exact) for n, s in sorted(seconds.items()))
    figures = {"n": [b.rows for b in bars], "ms": [b.seconds * 1e3 for b in bars]}
    return Section("V(n): a pass over n rows, by the time of one row", chart=bars, figures=figures)


def depths(subject: Subject) -> Section | None:
    """The depth that pays, by the controller's rule without its ledger."""
    if (picture := subject.picture) is None:
        return None
    relative = CostModel(picture.costs.seconds).relative
    kinds: list[tuple[str, Collection[int] | None, float]] = []
    for label, each in (("copying", 0.0), ("drafting", picture.each)):
        if label == "copying" or picture.draft is not None:
            kinds.append((label, picture.rows.allowed, each))
            if picture.rows.allowed is not None and not _covers(picture, relative, each):
                kinds.append((f"{label}, near", None, each))
    found = {(label, a): best_depth(relative, steady(a), allowed, each)
             for label, allowed, each in kinds for a in STEADY}  # fmt: skip
    header = ("acceptance", *(label for label, *_ in kinds))
    lines = tuple((f"{a:.2f}", *(_told(*found[label, a]) for label, *_ in kinds)) for a in STEADY)
    figures = {
        label: [dict(zip(("acceptance", "depth", "speedup"), (a, *found[label, a]), strict=True))
                for a in STEADY]
        for label, *_ in kinds
    }  # fmt: skip
    facts: tuple[tuple[str, str], ...] = ()
    if picture.draft is not None:
        facts = (("draft model", _least(relative, picture)),)
    return Section(
        "Depth that pays, and the expected speedup over plain", facts, (), Table(header, lines), (), figures
    )


def _covers(picture: Picture, relative: NDArray[np.float64], each: float) -> bool:
    """Are the exact row counts as good as all?"""
    return all(
        best_depth(relative, steady(a), picture.costs.exact, each)[1]
        > 0.995 * best_depth(relative, steady(a), None, each)[1]
        for a in STEADY
    )


def _told(depth: int, speedup: float) -> str:
    return f"depth {depth}, {speedup:.2f}x" if depth else "plain, 1.00x"


def _least(relative: NDArray[np.float64], picture: Picture) -> str:
    """From which acceptance on the draft model pays."""
    for percent in range(1, 101):
        if best_depth(relative, steady(percent / 100), picture.rows.allowed, picture.each)[0]:
            return f"pays from an acceptance of {percent / 100:.2f} on"
    return "cannot pay: its tokens cost too much beside those of the target"
