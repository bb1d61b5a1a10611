"""The measured policy: which proposer, how deep, or plain decoding, by expected rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.control.cost import MOST_ROWS, CostModel
from edgespec.control.ledger import Bets, Ledger, price_of_risk, urgency
from edgespec.control.survival import Calibration
from edgespec.types import NO_DRAFT, Draft, Evidence, Offer, Outcome, Plan, Source, Status

_PRICE = 0.03
_PROBE_SHARE = 0.01
_AHEAD = 16
_MEMORY = 0.9


class Controller:
    """Renewal-reward: of all drafts that the ledger allows, the one with the best expected rate.

    A draft of n tokens emits 1 + a_1 + ... + a_n in expectation and costs D(n) + V(n+1). Plain decoding
    is n = 0. All row counts are compared, so the stairs of V do not matter. `row_counts`: those allowed
    (n + 1), None for all.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        cost: CostModel,
        calibration: Calibration | None = None,
        *,
        draft_max: int = 64,
        row_counts: Sequence[int] | None = None,
    ) -> None:
        self._sources = tuple(sources)
        self.cost = cost
        self.calibration = calibration or Calibration()
        most = min(draft_max, MOST_ROWS - 1)
        allowed = range(2, most + 2) if row_counts is None else row_counts
        self._row_counts = None if row_counts is None else tuple(sorted(row_counts))
        self._allowed = np.zeros(MOST_ROWS, bool)
        self._allowed[[n - 1 for n in allowed if 1 < n <= most + 1]] = True
        self._most = int(self._allowed.nonzero()[0].max(initial=0))
        self._ledger = Ledger()
        self._limit = 0
        self._plan = Plan()
        self._pace_tokens, self._pace_cost = 0.0, 0.0
        self._taken = "none"
        self._depth = 0
        self._probed = 0.0
        self._elapsed = 0.0
        self._price = 0.0
        self._priced: NDArray[np.float64] | None = None

    def begin(self) -> None:
        """A new answer has its own ledger: each is at least as fast as plain."""
        self._ledger = Ledger()

    def plan(self, limit: int) -> Plan:
        self._limit = min(limit, self._most)
        if self._limit < 1 or not self._sources:
            self._plan = Plan()
        else:
            self._plan = Plan(self._sources, self._limit, self._row_counts, self._worth)
        return self._plan

    def trim(self, draft: Draft) -> Draft:
        """The part of a draft with the best expected rate, none if plain is better.

        A sampled draft is not cut: what its tokens tell must not decide whether they are kept.
        """
        n = len(draft)
        if not n:
            return NO_DRAFT
        source = draft.sources[0]
        chances = self._chances(source, draft.evidence)
        best, rate = self._best(source, chances, sunk=source == "draft")
        if source != "draft" and "draft" in self._sources and self._model_rate() > rate:
            best = 0
        if draft.q is not None:
            best = self._plan.fit(n)
        if not best:
            return NO_DRAFT
        cut = draft.first(best)
        survival = tuple(np.cumprod(chances[:best]).tolist())
        return Draft(cut.tokens, cut.parents, cut.evidence, cut.sources, cut.q, survival)

    def _chances(self, source: Source, evidence: Sequence[Evidence]) -> NDArray[np.float64]:
        chance = self.calibration.chance
        return np.array([chance(source, e) for e in evidence[: self._limit]])

    def _best(
        self, source: Source, chances: NDArray[np.float64], *, sunk: bool = False
    ) -> tuple[int, float]:
        """(tokens, expected rate in plain tokens) of the best draft; (0, 1.0) if none beats plain.

        `sunk`: drafting all of it has been paid for.
        """
        cost, bets, usable = self._bets(source, chances, sunk=sunk)
        if not usable.any():
            return 0, 1.0
        price = _PRICE * self._risk_price(self.cost.relative) * urgency(self._ledger.budget)
        rate = (bets.emitted - price * bets.shortfall(cost - 1.0)) / cost
        rate[~usable] = 0.0
        best = int(rate.argmax())
        plain = 1.0 / (1.0 + cost[0] - self.cost.relative[2]) if sunk else 1.0
        return (best + 1, float(rate[best])) if rate[best] > plain else (0, 1.0)

    def _bets(
        self, source: Source, chances: NDArray[np.float64], *, sunk: bool = False
    ) -> tuple[NDArray[np.float64], Bets, NDArray[np.bool_]]:
        """Cost in plain tokens, outcomes, and which may be tried, for drafts of n = 1, 2, ... tokens."""
        n = len(chances)
        each = self.cost.draft.get(source, 0.0) / self.cost.plain
        cost = self.cost.relative[2 : n + 2] + (n if sunk else np.arange(1, n + 1)) * each
        bets = Bets(chances)
        return cost, bets, self._allowed[1 : n + 1] & self._ledger.allows(cost, bets)

    def _risk_price(self, relative: NDArray[np.float64]) -> float:
        if relative is not self._priced:
            self._priced, self._price = relative, price_of_risk(relative[2:])
        return self._price

    def _model_rate(self) -> float:
        """What the draft model may be expected to bring before it has drafted."""
        chance = self.calibration.rate("draft")
        return self._best("draft", np.full(min(self._limit, _AHEAD), chance))[1]

    def _worth(self, evidence: Sequence[Evidence]) -> bool:
        """Is one more token of the draft model worth its time, at the pace of rounds like this?

        The next tokens are taken to be typical. The best of all longer drafts is compared, since V has
        stairs; what has been drafted is paid for either way.
        """
        drafted = len(evidence)
        if drafted >= self._limit:
            return False
        typical = self.calibration.rate("draft")
        chances = np.full(min(self._limit, drafted + _AHEAD), typical)
        if not drafted:
            return self._best("draft", chances)[0] > 0
        chances[:drafted] = self._chances("draft", evidence)
        cost, bets, usable = self._bets("draft", chances)
        usable[:drafted] = False
        value = bets.emitted - self._pace * cost
        return bool((usable & (value > value[drafted - 1])).any())

    def observe(self, outcome: Outcome) -> None:
        n = len(outcome.draft)
        counted = self.cost.observe_verify(n + 1, outcome.t_verify)
        drafting = 0.0
        for offer in outcome.offers:
            self._learn(offer)
            if offer.draft.sources[0] == "draft":
                self.cost.observe_draft("draft", len(offer.draft), outcome.t_propose)
                drafting = outcome.t_propose
        self._elapsed += outcome.t_propose + outcome.t_verify + outcome.t_other
        if not n and not drafting:
            self._ledger.add(outcome.emitted, float(outcome.emitted))
            self._taken, self._depth = "target", 0
            return
        self._taken = outcome.draft.sources[0] if n else "draft"
        self._depth = n
        cost = (counted + drafting) / self.cost.plain
        self._ledger.add(outcome.emitted, cost)
        if self._taken == "draft":
            self._pace_tokens = _MEMORY * self._pace_tokens + outcome.emitted
            self._pace_cost = _MEMORY * self._pace_cost + cost

    def _learn(self, offer: Offer) -> None:
        draft = offer.draft
        for i in range(offer.known):
            self.calibration.learn(draft.sources[i], draft.evidence[i], i < offer.matched)
            if i >= offer.matched:
                break

    @property
    def _pace(self) -> float:
        """Tokens per plain token's time of rounds with the draft model, at least 1."""
        return max(1.0, (self._pace_tokens + 2.0) / (self._pace_cost + 2.0))

    @property
    def saved(self) -> float:
        """Plain tokens' worth of time saved in this answer."""
        return self._ledger.saved

    @property
    def status(self) -> Status:
        if not self._sources:
            return Status(False, "none", 0, "no proposer is allowed")
        if self._most < 1:
            return Status(False, "none", 0, "no row count above 1 is allowed")
        if self._depth:
            return Status(True, self._taken, self._depth, f"{self._ledger.saved:+.1f} tokens ahead of plain")
        return Status(False, self._taken, 0, "no draft is likely enough to pay for its verification")


def estimates(controller: Controller) -> Mapping[str, object]:
    """What the controller believes now, for traces and reports."""
    return {"verify": controller.cost.as_json(), "survival": controller.calibration.as_json()}
