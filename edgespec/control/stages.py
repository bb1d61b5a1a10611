"""Which of several draft models drafts: the one with the best rate to expect, answer by answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from edgespec.control.controller import Controller
from edgespec.types import Draft, Outcome, Plan, Source, Status, Window

SMALL: Source = "small"
"""The smaller of two draft models, where it drafts for the target itself."""


class Stages:
    """A controller for each draft model, by the name of its proposer; one of them has each answer.

    It is the one whose draft model has the best rate to expect by what it cost and how often it was right.
    That fades from answer to answer, so that the other is tried again. Every answer has its own ledger, so
    that the worst case is that of one controller.
    """

    def __init__(self, ways: Mapping[Source, Controller]) -> None:
        self._ways = dict(ways)
        self.now = next(iter(self._ways))
        """Whose draft model has the present answer."""

    @property
    def controller(self) -> Controller:
        return self._ways[self.now]

    def begin(self) -> tuple[Source, ...]:
        active = {name: way.begin() for name, way in self._ways.items()}
        self.now = max(self._ways, key=lambda name: self._ways[name].expected())
        return self._named(active[self.now])

    def _named(self, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        return tuple(self.now if source == "draft" else source for source in sources)

    def plan(self, limit: int, tree: bool = False) -> Plan:
        plan = self.controller.plan(limit, tree)
        return replace(plan, proposers=self._named(plan.proposers))

    def trim(self, draft: Draft) -> Draft:
        return self.controller.trim(draft)

    def window(self, draft: Draft) -> Window:
        return self.controller.window(draft)

    def observe(self, outcome: Outcome) -> None:
        self.controller.observe(outcome)
        for name, way in self._ways.items():
            if name != self.now:
                way.cost.observe_verify(len(outcome.draft) + 1, outcome.t_verify)

    @property
    def status(self) -> Status:
        return self.controller.status
