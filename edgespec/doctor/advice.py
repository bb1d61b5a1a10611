"""What is set badly for a model, and what would put it right."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from edgespec.backends.device import usable_cores
from edgespec.backends.registry import ADAPTERS, adapter
from edgespec.calibration import Measured, price_of_exactness
from edgespec.control import CostModel
from edgespec.control.attainable import best_depth, steady
from edgespec.doctor.sections import Finding
from edgespec.doctor.subject import CROWDED, Picture

_MANY_FAULTS = 32
_WORTH = 1.1
_LLAMA = ("llamacpp", "ik")
_INVARIANT = ("Q4_0", "Q4_1", "Q8_0", "F16", "F32", "BF16")
"""Weights whose rows are the same in passes of any size on llama.cpp's CPU kernels."""


def advice(picture: Picture) -> tuple[Finding, ...]:
    """The findings of a model, those with the greatest effect first."""
    return (*_crowd(picture), *_memory(picture), *_threads(picture), *_exactness(picture), *_slow(picture))


def _crowd(picture: Picture) -> Iterator[Finding]:
    if picture.others is not None and picture.others > CROWDED:
        yield Finding(
            f"Other processes took {picture.others:.0%} of the cores while this was measured: the figures are"
            " those of a busy machine.",
            "end them, then measure again: edgespec doctor",
        )


def _memory(picture: Picture) -> Iterator[Finding]:
    mode = picture.info.settings.get("load_mode")
    if picture.faults is not None and picture.faults > _MANY_FAULTS and mode in ("auto", "mmap"):
        yield Finding(
            f"The system took pages of the mapped file away while it was in use: {picture.faults} had to be"
            " read again from the disk.",
            "--load-mode none",
        )


def _threads(picture: Picture) -> Iterator[Finding]:
    threads, cores = picture.info.settings.get("n_threads"), usable_cores()
    asked = picture.threads or threads
    if not isinstance(threads, int) or not isinstance(asked, int) or _on_gpu(picture):
        return
    if asked > cores:
        more = f"{asked} threads are too many for {cores} usable {'core' if cores == 1 else 'cores'}"
        used = "they wait for each other" if threads > cores else f"{threads} are used"
        yield Finding(f"{more}: {used}.", f"leave -t out, or -t {cores}")
    elif threads < cores:
        yield Finding(f"Only {threads} of {cores} cores are used.", f"leave -t out, or -t {cores}")


def _exactness(picture: Picture) -> Iterator[Finding]:
    """Why exact verification is not free, and what would make it so."""
    costs, settings = picture.costs, picture.info.settings
    price = price_of_exactness(Measured(costs.exact, costs.seconds), picture.each)
    if price < 0.005:
        return
    loss = f"exact verification costs {price:.1%} of the attainable rate"
    if settings.get("flash_attn") is False:
        yield Finding(
            f"Flash attention is off, and no pass of several rows is exact without: {loss}.", "-fa on"
        )
        return
    if _splits_single_rows(picture):
        yield Finding(
            f"Keys and values are both {settings['type_k']}: over more than 256 tokens one row then takes"
            f" another kernel than several, and {loss}.",
            "-ctk f16 -ctv bf16, or leave both out",
        )
        return
    most, kind = max(costs.exact), picture.info.quantization
    text = f"Only passes of up to {most} rows are exact with {kind}, and {loss}."
    first, *others = _free(picture)
    yield Finding(f"{text} What would make it free, or do without:", first, tuple(others))


def _splits_single_rows(picture: Picture) -> bool:
    """llama.cpp on a CPU spreads the cache of a single row over its threads where both types are these."""
    settings = picture.info.settings
    types = {settings.get("type_k"), settings.get("type_v")}
    return types in ({"f16"}, {"f32"}) and settings.get("n_threads") != 1 and not _on_gpu(picture)


def _free(picture: Picture) -> Iterator[str]:
    """Quantisations and backends whose rows do not depend on the size of the pass."""
    info = picture.info
    if info.backend in _LLAMA and info.quantization not in _INVARIANT:
        yield "the same model as Q8_0 or Q4_0"
    yield from _other_backends(picture)
    yield "--numerics near"


def _other_backends(picture: Picture) -> Iterator[str]:
    """Those that verify exactly on this kind of device, with what they need before."""
    path = Path(picture.info.path)
    exact = ("mlx",) if sys.platform == "darwin" else () if _on_gpu(picture) else ("ik", "onnx")
    for name in exact:
        if name == picture.info.backend or name not in ADAPTERS:
            continue
        needs = [f"pip install 'edgespec[{name}]'"] if adapter(name).missing() else []
        if adapter(name).refuses(path):
            needs.append(f"edgespec convert {shlex.quote(path.name)} --to {name}")
        if name != "ik" or not adapter(name).refuses(path):
            yield f"--backend {name}" + (f" after {' and '.join(needs)}" if needs else "")


def _slow(picture: Picture) -> Iterator[Finding]:
    """Does a draft that is right four times in five gain anything?"""
    relative = CostModel(picture.costs.seconds).relative
    if best_depth(relative, steady(0.8))[1] >= _WORTH:
        return
    fixes = list(_other_backends(picture))
    if picture.info.backend in _LLAMA and picture.info.quantization not in ("Q8_0", "Q4_0"):
        fixes.insert(0, "a Q8_0 or Q4_0 file of the same model")
    yield Finding(
        f"Verifying is slow with {picture.info.quantization} here: 4 rows cost {relative[4]:.1f} single ones,"
        " so only drafts that are nearly always right pay.",
        fixes[0] if fixes else None,
        tuple(fixes[1:]),
    )


def _on_gpu(picture: Picture) -> bool:
    return bool(picture.info.settings.get("n_gpu_layers"))
