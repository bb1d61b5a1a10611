"""What the machine is, and what it tells about memory and energy."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


def processor() -> str:
    """The CPU's name with its cores and the system."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def peak_memory() -> int | None:
    """Most bytes that this process has had in memory; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class EnergyMeter:
    """Joules of the processor packages, from the counters of Linux's powercap (RAPL)."""

    def __init__(self, where: Path = POWERCAP) -> None:
        # the bare glob "intel-rapl:*" would also count the parts of a package a second time
        zones = [zone for zone in sorted(where.glob("intel-rapl:*")) if zone.name.count(":") == 1]
        self._zones = [zone for zone in zones if _number(zone / "energy_uj") is not None]

    def read(self) -> tuple[int, ...] | None:
        """The counters; None where there are none that may be read."""
        values = [_number(zone / "energy_uj") for zone in self._zones]
        counted = tuple(value for value in values if value is not None)
        return counted if counted and len(counted) == len(values) else None

    def joules(self, before: Sequence[int] | None, after: Sequence[int] | None) -> float | None:
        """Between two readings, at most one turn of a counter apart."""
        if before is None or after is None:
            return None
        used = 0
        for zone, a, b in zip(self._zones, before, after, strict=True):
            used += b - a if b >= a else b - a + (_number(zone / "max_energy_range_uj") or 0)
        return used / 1e6


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
