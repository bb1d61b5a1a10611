"""How much memory this process may still take."""

from __future__ import annotations

import sys
from pathlib import Path


def free_memory(root: Path = Path("/")) -> int:
    """Bytes: what the system has to give, within the limits of control groups and of the process.

    Pages of files that can be dropped count as free.
    """
    import psutil

    limits = (int(psutil.virtual_memory().available), _from_groups(root), _address_space())
    return max(0, min(n for n in limits if n is not None))


def _from_groups(root: Path) -> int | None:
    """What the tightest of the control groups around this process leaves, None without one."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    left: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2) if line.count(":") >= 2 else ("", "-", "")
        if controllers == "":
            left += _tree(root / "sys/fs/cgroup", path, "memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            left += _tree(top, path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
    return min(left, default=None)


def _tree(top: Path, path: str, limit: str, usage: str, prefix: str) -> list[int]:
    """What each group from this one up to the top leaves."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    folders = [top.joinpath(*parts[:n]) for n in range(len(parts), -1, -1)]
    return [n for folder in folders if (n := _left(folder, limit, usage, prefix)) is not None]


def _left(folder: Path, limit: str, usage: str, prefix: str) -> int | None:
    try:
        most = (folder / limit).read_text().strip()
        used = int((folder / usage).read_text())
        if most == "max":
            return None
        stat = dict(line.split()[:2] for line in (folder / "memory.stat").read_text().splitlines())
        files = sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("inactive", "active"))
        return int(most) - max(used - files, 0)
    except (OSError, ValueError):
        return None


def _address_space() -> int | None:
    """What `ulimit -v` leaves."""
    if sys.platform == "win32":
        return None
    import resource

    import psutil

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most - int(psutil.Process().memory_info().vms)
