"""Always the same sources and depth: for measurements and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgespec.control.windows import usual_window
from edgespec.types import NO_WINDOW, Draft, Outcome, Plan, Source, Status, Window


class FixedPolicy:
    """`depth` drafted tokens a round, or what the row counts allow below it; in branches with `trees`."""

    def __init__(
        self,
        sources: Sequence[Source],
        depth: int,
        *,
        row_counts: Sequence[int] | None = None,
        trees: bool = False,
        window: Window | None = None,
    ) -> None:
        """`window` None is the usual one for these sources."""
        self._window, self._size = window, NO_WINDOW
        self._trees = trees
        self._sources = tuple(sources)
        self._depth = depth
        self._row_counts = None if row_counts is None else tuple(sorted(row_counts))
        self._plan = Plan()

    def begin(self) -> tuple[Source, ...]:
        return self._sources

    def plan(self, limit: int, tree: bool = False) -> Plan:
        loose = Plan(self._sources, min(self._depth, limit), self._row_counts)
        most = loose.fit(loose.max_draft)
        self._plan = Plan(self._sources, most, self._row_counts)
        tree = tree and self._trees
        self._size = self._window or usual_window(self._sources, most, tree)
        if tree:
            self._plan = replace(self._plan, tree=True, grow=lambda draft: (draft, len(draft) < most))
        return self._plan if self._plan.max_draft else Plan()

    def trim(self, draft: Draft) -> Draft:
        """All of it, but for the rows of the window."""
        room = self._plan.max_draft - (self._size.rows if self._size.levels > 2 else 0)
        return draft.first(self._plan.fit(min(len(draft), room)))

    def window(self, draft: Draft) -> Window:
        return self._size

    def observe(self, outcome: Outcome) -> None:
        pass

    @property
    def status(self) -> Status:
        on = bool(self._sources) and self._depth > 0
        return Status(on, "+".join(self._sources) or "none", self._depth, "fixed")
