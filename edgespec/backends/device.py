"""What the machine offers: its name and the cores this process may use."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path


@cache
def cpu_name() -> str:
    """The processor's marketing name, or the machine type where the system does not tell."""
    try:
        if sys.platform == "darwin":
            command = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith(("model name", "hardware")):
                return line.split(":", 1)[1].strip()
    except (OSError, subprocess.SubprocessError, IndexError):
        pass
    return platform.processor() or platform.machine()


def _quota() -> float | None:
    """CPUs that a control group grants, None without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        cpu = Path("/sys/fs/cgroup/cpu")
        quota_us = int((cpu / "cpu.cfs_quota_us").read_text())
        return quota_us / int((cpu / "cpu.cfs_period_us").read_text()) if quota_us > 0 else None
    except (OSError, ValueError):
        return None


def _siblings(cpu: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        return path.read_text().strip()
    except OSError:
        return str(cpu)


def _mac_fast_cores() -> int | None:
    try:
        command = ["sysctl", "-n", "hw.perflevel0.physicalcpu"]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


@cache
def usable_cores() -> int:
    """Physical cores within this process's affinity and quota; on a Mac the fast ones."""
    if sys.platform == "darwin":
        return _mac_fast_cores() or os.cpu_count() or 1
    if sys.platform == "win32":
        return max((os.cpu_count() or 1) // 2, 1)
    cores = len({_siblings(cpu) for cpu in os.sched_getaffinity(0)})
    quota = _quota()
    return max(cores if quota is None else min(cores, round(quota)), 1)
