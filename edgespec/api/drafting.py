"""The draft models of a target: who drafts for whom, and by what was measured of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgespec.api.calibrating import Calibrator
from edgespec.api.pairing import InIds
from edgespec.backends.base import DRAFT_ROWS
from edgespec.control import SMALL, Calibration, Controller, CostModel, Policy, Stages
from edgespec.engine.cascade import Cascade
from edgespec.proposers import Proposer, SuffixProposer
from edgespec.proposers.suffix import SuffixAhead
from edgespec.types import Source


@dataclass(frozen=True, slots=True)
class Way:
    """A draft model that drafts for the target, by the name of its proposer.

    `pair`: its fingerprint, "alone" without one. `seconds`: of a drafted token. `row`, `late`: as in
    `DraftCosts`.
    """

    source: Source = "draft"
    pair: str = "alone"
    seconds: float | None = None
    row: float | None = None
    late: float = 0.0


class Drafting:
    """The draft model, for which copying drafts and, where there is one, a smaller model.

    `models`: the draft model, then the smaller one.
    """

    def __init__(
        self, models: Sequence[InIds], suffix: SuffixProposer, notify: Callable[[str], None]
    ) -> None:
        mid, *smaller = models
        ahead = SuffixAhead(suffix)
        inner: dict[Source, Proposer] = {"suffix": ahead}
        self.proposers: dict[Source, Proposer] = {}
        for small in smaller:
            inner["draft"] = self.proposers[SMALL] = small.proposer(notify, ahead)
        self._quick = Cascade(mid.model.backend, mid.n_shared, inner, notify)
        self.proposers["draft"] = mid.proposer(notify, suffix, self._quick)
        self._speculates = mid.text is None
        self._inner: Controller | None = None
        self._names = {"suffix": "copying", "draft": models[-1].path.name}

    def follow(self, calibrator: Calibrator) -> None:
        """Draft for the draft model where that pays by what was measured."""
        mid, small = calibrator.draft, calibrator.small
        if not self._speculates or mid is None or not mid.passes or (small is not None and not small.known):
            return
        sources: tuple[Source, ...] = ("suffix",) if small is None else ("suffix", "draft")
        self._inner = Controller(
            sources,
            CostModel(mid.passes, {"draft": small.seconds} if small and small.seconds else None),
            Calibration.from_json(calibrator.stored.get(_kept(calibrator))),
            draft_max=DRAFT_ROWS - 1,
        )
        self._quick.use(self._inner, self._inner.cost)

    def ways(self, calibrator: Calibrator) -> list[Way]:
        """Who may draft for the target; what drafts for the draft model makes that cheaper."""
        mid, small = calibrator.draft, calibrator.small
        if mid is None:
            return [Way()]
        if small is None:
            return [Way("draft", mid.key, mid.seconds, mid.row, mid.late)]
        helped = max(1.0, self._inner.expected()) if self._inner is not None else 1.0
        quicker = None if mid.seconds is None else mid.seconds / helped
        return [
            Way("draft", mid.key, quicker, mid.row, mid.late),
            Way(SMALL, small.key, small.seconds, small.row, small.late),
        ]

    def told(self, policy: Policy) -> str:
        """Who drafted for the draft model in this answer, and how often it agreed; "" for nobody."""
        if isinstance(policy, Stages) and policy.now == SMALL:
            return f"{self._names['draft']} drafts without the draft model"
        counts = [(self._names[who], *n) for who, n in list(self._quick.verified.items())]
        told = ", ".join(f"{name}, {right} of {drafted} right" for name, right, drafted in counts)
        return f"the draft model is drafted for by {told}" if told else ""

    def save(self, calibrator: Calibrator) -> None:
        """Keep what was learnt of drafting for the draft model."""
        if self._inner is not None:
            calibrator.stored.put(_kept(calibrator), self._inner.calibration.as_json())


def _kept(calibrator: Calibrator) -> str:
    small = calibrator.small
    return f"survival:{small.key if small else 'copying'}:{calibrator.pair}"
