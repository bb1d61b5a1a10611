"""The machine: processor, cores, memory, GPUs."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from edgespec.backends.device import cpu_name, usable_cores
from edgespec.doctor.sections import Finding, Section
from edgespec.doctor.subject import Subject

MATRIX_BUILD = (
    "CMAKE_ARGS='-DCMAKE_CXX_FLAGS=\"-fno-tree-dse -fno-dse\"' pip install --no-binary :all: --no-deps"
    " --force-reinstall llama-cpp-python"
)
_SECONDS = 5


def machine(subject: Subject) -> Section:
    """Looked up, not measured; takes well under a second."""
    total, free = memory()
    cores, present = usable_cores(), os.cpu_count() or 1
    present_gpus, used = system_gpus(), _llamacpp_gpus()
    facts = [
        ("processor", cpu_name()),
        ("cores", f"{cores} of {present} usable" + _what_counts(cores, present)),
        ("memory", f"{_gigabytes(total)}, {_gigabytes(free)} of it free" if total else "unknown"),
        ("GPU", ", ".join(used or present_gpus) or "none found"),
        ("system", f"{platform.system()} {platform.release()}, Python {platform.python_version()}"),
    ]
    figures = {
        "processor": cpu_name(),
        "cores_usable": cores,
        "cores_present": present,
        "memory_bytes": total,
        "memory_free_bytes": free,
        "gpus": list(used or present_gpus),
        "gpus_used_by_llamacpp": list(used),
    }
    findings = (*_gpu_findings(present_gpus, used), *_matrix_findings())
    return Section("Machine", tuple(facts), findings=findings, figures=figures)


def _what_counts(cores: int, present: int) -> str:
    return " (physical ones within this process's affinity and quota)" if cores < present else ""


def _gpu_findings(present: tuple[str, ...], used: tuple[str, ...]) -> tuple[Finding, ...]:
    if not present or used:
        return ()
    flag = "METAL" if sys.platform == "darwin" else "CUDA"
    fix = f'CMAKE_ARGS="-DGGML_{flag}=on" pip install --no-cache-dir --force-reinstall llama-cpp-python'
    return (Finding(f"{present[0]} is here, but this build of llama.cpp cannot use it.", fix),)


def _matrix_findings() -> tuple[Finding, ...]:
    """Without the matrix unit several rows cost more, and those of many quantisations are not exact."""
    if "amx_int8" not in _flags() or not _has_llamacpp():
        return ()
    from edgespec.backends.llamacpp.amx import amx_is_safe
    from edgespec.backends.llamacpp.library import has_amx

    if not has_amx():
        text = "The processor has a matrix unit (AMX) that this build of llama.cpp does not use."
    elif not amx_is_safe():
        text = (
            "This build of llama.cpp would crash in the matrix unit (AMX), so it is left unused: several rows"
            " cost more, and those of many quantisations are not exact."
        )
    else:
        return ()
    return (Finding(text, MATRIX_BUILD),)


@cache
def _flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        return frozenset(next(line for line in lines if line.startswith("flags")).split())
    except (OSError, StopIteration):
        return frozenset()


def _has_llamacpp() -> bool:
    from edgespec.backends.registry import adapter

    return adapter("llamacpp").missing() is None


def _llamacpp_gpus() -> tuple[str, ...]:
    if not _has_llamacpp():
        return ()
    from edgespec.backends.llamacpp.library import gpu_names

    try:
        return gpu_names()
    except (ImportError, OSError, RuntimeError):
        return ()


def system_gpus() -> tuple[str, ...]:
    """The GPUs that the system itself tells of, whether a backend can use them or not."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return (cpu_name(),)
    command = shutil.which("nvidia-smi")
    if command is None:
        return ()
    query = [command, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError, ValueError):
        return ()
    return tuple(line.strip() for line in done.stdout.splitlines() if line.strip())


def memory() -> tuple[int | None, int | None]:
    """(bytes in all, bytes that can be had now), within the limit of a control group; None where unknown."""
    total, free = _system_memory()
    limit, used = (_number(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    if total and limit is not None and limit < total:
        room = limit - (used or 0)
        return limit, max(0, room if free is None else min(free, room))
    return total, free


def _system_memory() -> tuple[int | None, int | None]:
    try:
        if sys.platform.startswith("linux"):
            lines = Path("/proc/meminfo").read_text("ascii", "replace").splitlines()
            table = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if "kB" in line}
            return table.get("MemTotal"), table.get("MemAvailable")
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_PHYS_PAGES"), None
    except (OSError, ValueError, IndexError, AttributeError):
        return None, None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None


def _gigabytes(n: int | None) -> str:
    return "an unknown part" if n is None else f"{n / 1e9:.1f} GB"
