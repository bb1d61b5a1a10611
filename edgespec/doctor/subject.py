"""What is examined: a machine, and a model on it if there is one."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from edgespec import api, hub
from edgespec.api import Costs, Model, Settings, choosing
from edgespec.api.backends import able
from edgespec.api.choosing import Candidate, is_usual
from edgespec.api.pairing import AUTO, wanted
from edgespec.backends.base import ModelInfo
from edgespec.calibration import RowCounts
from edgespec.errors import EdgespecError, ModelFileError

Progress = Callable[[str, float], None]
_SECONDS = 10.0
CROWDED = 0.2
"""The share of the cores' time that makes a machine a busy one when others take it."""
_LOADING, _MEASURING = "loading", "measuring what passes cost"


@dataclass(frozen=True, slots=True)
class Picture:
    """A model as it runs here. `threads`: what was asked for. `pairing`: why there is this draft, or none.

    `faults`: pages read from the disk while it was measured, None where the system does not tell. `others`:
    the share of the usable cores' time that other processes took meanwhile, 0 to 1.
    """

    info: ModelInfo
    draft: ModelInfo | None
    costs: Costs
    rows: RowCounts
    load_seconds: float
    threads: int | None
    pairing: str
    faults: int | None
    others: float | None

    @property
    def each(self) -> float:
        """What a token of the draft model costs, in tokens of the target."""
        return (self.costs.draft or 0.0) / self.costs.seconds[1]


class Subject:
    """`reference`: as the user gave it, None for the default model. Nothing is ever fetched.

    `running` is called with the loaded model before it is measured, so that it can be cancelled. `measure`:
    compare backends anew.
    """

    def __init__(
        self,
        reference: str | None,
        settings: Settings,
        running: Callable[[Model], None] = lambda _: None,
        *,
        measure: bool = False,
    ) -> None:
        self.reference, self.settings, self._measure = reference, settings, measure
        self._running = running

    @cached_property
    def path(self) -> Path | None:
        """The model's file or folder, None where the default model is not on this machine.

        Raises UsageError or ModelFileError.
        """
        name = hub.default_card().name if self.reference is None else self.reference
        where = hub.locate(name)
        if isinstance(where, Path):
            return where
        if self.reference is None:
            return None
        raise ModelFileError(f"{name} is not on this machine: edgespec pull {name} fetches it")

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The backends that can load the model: as they were measured before, or now where `measure` asks for
        it or one of them never was. None where one was asked for by name, or the model cannot be loaded.
        """
        if self.path is None or self.settings.backend != AUTO or not is_usual(self.settings.options):
            return ()
        try:
            path = hub.opened(str(self.path)).path
        except EdgespecError:
            return ()
        present, kept = {place.backend for place in able(path)}, choosing.known(path)
        if len(present) < 2 or (not self._measure and {c.backend for c in kept} == present):
            return kept if len(present) > 1 else ()
        return choosing.compare(path, self.settings.options, self.settings.progress)

    @cached_property
    def picture(self) -> Picture | None:
        """The model, loaded and measured; None without one. Raises as `edgespec.load` does."""
        if self.path is None:
            return None
        for draft in (self.settings.draft, self.settings.cascade):
            named = wanted(draft) and draft != AUTO
            if named and not isinstance(hub.locate(str(draft)), Path):
                raise ModelFileError(f"{draft} is not on this machine: edgespec pull {draft} fetches it")
        began = time.perf_counter()
        with api.load(self.path, replace(self.settings, spec="auto", calibrate="idle")) as model:
            loaded = time.perf_counter() - began
            self._running(model)
            watch = _Watch()
            costs = model.measure(
                _SECONDS,
                lambda share: self.settings.progress(_MEASURING, share),
                trusted=lambda: (watch.others or 0.0) <= CROWDED,
            )
            return Picture(
                model.info,
                model.draft_info,
                costs,
                model.rows,
                load_seconds=loaded,
                threads=self.settings.options.n_threads,
                pairing=model.pairing,
                faults=watch.faults,
                others=watch.others,
            )


class _Watch:
    """What has happened on the machine since it was made."""

    def __init__(self) -> None:
        self._began = _faults(), _busy(), time.process_time(), time.perf_counter()

    @property
    def faults(self) -> int | None:
        before, now = self._began[0], _faults()
        return None if now is None or before is None else now - before

    @property
    def others(self) -> float | None:
        _, before, mine, began = self._began
        now = _busy()
        if before is None or now is None:
            return None
        seconds = max(time.perf_counter() - began, 1e-3)
        share = (now[0] - before[0] - (time.process_time() - mine)) / (now[1] * seconds)
        return min(max(share, 0.0), 1.0)


def _faults() -> int | None:
    """Pages that this process had to wait for."""
    with contextlib.suppress(ImportError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    return None


def _busy() -> tuple[float, int] | None:
    """(seconds that the processors open to this process have worked for anybody, how many they are)."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        names = {f"cpu{n}" for n in os.sched_getaffinity(0)}
        rows = [line.split() for line in Path("/proc/stat").read_text("ascii", "replace").splitlines()]
        tick = os.sysconf("SC_CLK_TCK")
        # user, nice, system, (idle, iowait,) irq, softirq, steal
        mine = [[int(t) for t in row[1:9]] for row in rows if row and row[0] in names]
        return sum(sum(t) - t[3] - t[4] for t in mine) / tick, len(mine)
    except (OSError, ValueError, IndexError):
        return None
