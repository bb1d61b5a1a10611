"""The measured policy: which proposer, how deep, or plain decoding, by expected rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from edgespec.control.branching import LEVELS, depths, drawing, typical, work
from edgespec.control.cost import MOST_ROWS, CostModel
from edgespec.control.drafting import Drafting
from edgespec.control.expected import bets, chances, learn, reach
from edgespec.control.ledger import Bets, Branches, Ledger, price_of_risk, urgency
from edgespec.control.pace import Pace
from edgespec.control.survival import Calibration, table_of
from edgespec.control.windows import REFINING, Windows
from edgespec.types import (
    NO_DRAFT,
    NO_WINDOW,
    Choice,
    Draft,
    Evidence,
    Offer,
    Outcome,
    Plan,
    Source,
    Status,
    Window,
)

_ASKING, _BRANCHING = 0.1, 0.15
"""In plain tokens: the most that asking counts in a plain round; what rows cost where branches do not pay."""
_PRICE, _CHEAP = 0.02, 1e-4
_PROBE_SHARE = 0.01
_AHEAD = 64
_SURE = 0.85
_RECENT = _GIVE_UP = 32
_REVIEWED = 64
"""Rounds after which chains and trees of the draft model are compared anew."""
_CLEARLY = 1.03
_COUNTS = np.arange(1.0, MOST_ROWS + 1)


class Controller:
    """Renewal-reward: of all drafts that the ledger allows, the one with the best expected rate.

    A draft of n tokens emits 1 + a_1 + ... + a_n in expectation and costs D(n) + V(n+1). Plain decoding
    is n = 0. All row counts are compared, so the stairs of V do not matter. `row_counts`: those allowed
    (n + 1), None for all. `trees`: drafts may branch where the backend can; those of the draft model where
    that pays, by `cost.draft_row`.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        cost: CostModel,
        calibration: Calibration | None = None,
        *,
        draft_max: int = 64,
        row_counts: Sequence[int] | None = None,
        trees: bool = False,
    ) -> None:
        self._trees = trees
        self._sources = self._active = tuple(sources)
        self.cost = cost
        self.calibration = calibration or Calibration()
        most = min(draft_max, MOST_ROWS - 1)
        allowed = range(2, most + 2) if row_counts is None else row_counts
        self._row_counts = None if row_counts is None else tuple(sorted(row_counts))
        self._allowed = np.zeros(MOST_ROWS, bool)
        self._allowed[[n - 1 for n in allowed if 1 < n <= most + 1]] = True
        some = self._allowed.nonzero()[0]
        self._most, self._fewest = int(some.max(initial=0)), int(some.min(initial=MOST_ROWS - 1)) + 1
        self._ledger = Ledger()
        self._limit = 0
        self._plan = Plan()
        self._pace = Pace()
        self._taken, self._depth, self._drafted, self._rounds, self._last = "none", 0, 0, 0, 0
        self._missed: dict[Source, int] = {}
        self._drafting: Drafting | None = None
        self._windows, self._widened = Windows(sources, self.calibration), False
        self._levels, self._idle = 0, 0.0
        self._price = _PRICE * price_of_risk(cost.relative[2:])

    def begin(self) -> tuple[Source, ...]:
        """A new answer has its own ledger: each is at least as fast as plain.

        A draft model that cannot pay at the rate it is known to hit is left out, and not even given the
        prompt. What it is known for fades from answer to answer, so that it is tried again.
        """
        self._ledger = Ledger()
        self._taken, self._depth, self._drafted, self._rounds, self._last = "none", 0, 0, 0, 0
        self._missed.clear()
        self._idle = 0.0
        self._price = _PRICE * price_of_risk(self.cost.relative[2:])
        self.calibration.fade()
        self.cost.recall()
        self._active = tuple(name for name in self._sources if self._can_pay(name))
        return self._active

    def _can_pay(self, name: Source) -> bool:
        """Of what costs something unverified too: at the best that it is known for."""
        if name == "draft":
            return self.expected() > 1.0
        if name in REFINING:
            return self._windows.can_pay(name, self.cost.relative, self._allowed, self._trees)
        if name != "recycling":
            return True
        n = min(self._most, _AHEAD)
        won = Bets(np.full(n, self.calibration.chance((0.0,), table_of(name, False))))
        rate = won.emitted / self.cost.relative[2 : n + 2]
        return bool((rate[self._allowed[1 : n + 1]] > 1.0).any())

    def expected(self) -> float:
        """Tokens in the time of a plain one that the draft model may bring. Also settles whether it drafts
        trees: where a typical one clearly beats a chain, with leaves.
        """
        n = min(self._most, _AHEAD)
        cost = self.cost.relative[2 : n + 2] + np.arange(1, n + 1) * self._each
        rate = Bets(np.full(n, self.calibration.drafting)).emitted / cost
        best = float(rate.max(initial=0.0, where=self._allowed[1 : n + 1]))
        self._levels = 0
        if self._trees and self.cost.draft_row is not None and n:
            best = max(best, self._typical_rate(n, n, leaves=True))
            rates = {levels: self._typical_rate(n, levels) for levels in LEVELS}
            levels = max(rates, key=lambda levels: rates[levels])
            self._levels = levels if rates[levels] > _CLEARLY * max(best, 1.0) else 0
            best = max(best, rates[levels])
        return best

    def _typical_rate(self, most: int, levels: int, *, leaves: bool = False) -> float:
        tree, cost = self._typical_tree(most, levels, leaves)
        rate = tree.emitted / cost
        return float(rate.max(initial=0.0, where=self._allowed[1 : len(rate) + 1]))

    def _typical_tree(self, most: int, levels: int, leaves: bool = False) -> tuple[Bets, NDArray[np.float64]]:
        """What the draft model's likeliest 1, 2, ... nodes bring, and cost in plain tokens' time."""
        first, second = round(self.calibration.drafting, 2), round(self.calibration.second, 2)
        tree, depth = typical(first, second, levels, leaves)
        if len(depth) > most:
            tree, depth = Branches(tree.survival[:most], depth[:most]), depth[:most]
        passes = np.maximum.accumulate(depth) if leaves else work(depth, self.cost.draft_row or 0.0)
        drafting = self._each * passes
        return tree, self.cost.relative[2 : len(depth) + 2] + drafting

    def plan(self, limit: int, tree: bool = False) -> Plan:
        self._limit = min(limit, self._most)
        self._drafting = None
        if self._limit < 1 or not self._active:
            self._plan = Plan()
        else:
            tree = tree and self._trees and self.cost.row < _BRANCHING
            grow = self._grow if tree and self._levels else None
            self._plan = Plan(self._active, self._limit, self._row_counts, self._choose, tree, grow)
        return self._plan

    def trim(self, draft: Draft) -> Draft:
        """The part of a draft with the best expected rate, none if plain is better.

        A sampled draft is not cut: what its tokens tell must not decide whether they are kept.
        """
        if not draft.tokens or self._limit < 1 or self._is_wrong(draft):
            return NO_DRAFT
        drawn = self._drawn(draft)
        if not drawn and not self._ledger.bears(self.cost.relative[self._fewest]):
            return NO_DRAFT
        if not drawn and draft.is_chain:
            draft = draft.first(reach(self.calibration, draft, self.cost))
            if not draft.tokens:
                return NO_DRAFT
        order, won = bets(self.calibration, draft, self._limit)
        best, rate = self._best(won, self._costs(len(order), drawn, 0), drawn)
        if not drawn and "draft" in self._active and self._model_rate() > rate:
            best = 0
        if draft.q is not None:
            best = self._plan.fit(len(draft))
        if not best:
            return NO_DRAFT
        kept = order[:best]
        rank = kept.argsort()
        cut = draft.keep(kept[rank].tolist())
        return replace(cut, survival=tuple(won.survival[:best][rank].tolist()))

    def window(self, draft: Draft) -> Window:
        """Where it brings more than its rows cost, and the ledger can bear it besides the draft."""
        size, n = self._windows.size, len(draft)
        if not size.columns:
            return size
        rows = min(n + size.rows, self._limit)
        relative = self.cost.relative
        self._widened = (
            rows > n
            and self._windows.gain > self._pace.now * (relative[rows + 1] - relative[n + 1])
            and relative[rows + 1] - 1.0 <= self._ledger.budget
        )
        return size if self._widened else NO_WINDOW

    def _drawn(self, draft: Draft) -> float:
        """The draft model's work on it, in single tokens."""
        return drawing(draft, None if self._plan.grow is None else self.cost.draft_row or 0.0)

    def _best(self, won: Bets, cost: NDArray[np.float64], paid: float = 0.0) -> tuple[int, float]:
        """(tokens, expected rate in plain tokens) of the best draft; (0, 1.0) if none beats plain.

        `cost`: of the round, `[n]`; for `paid` tokens of the draft model it is spent already.
        """
        usable = self._usable(cost, won)
        if not usable.any():
            return 0, 1.0
        worth = won.emitted
        price = self._price * urgency(self._ledger.budget)
        if price > _CHEAP:
            worth = worth - price * won.shortfall(cost - 1.0)
        rate = worth / cost * usable
        best = int(rate.argmax())
        plain = 1.0 / (1.0 + paid * self._each)
        return (best + 1, float(rate[best])) if rate[best] > plain else (0, 1.0)

    def _costs(self, n: int, paid: float, ahead: int) -> NDArray[np.float64]:
        """Plain tokens' time of rounds with drafts of 1 ... n tokens.

        `paid` tokens have been drawn from the draft model; `ahead` more would be, one for each beyond.
        """
        cost = self.cost.relative[2 : n + 2] + paid * self._each
        if ahead:
            cost[n - ahead :] += _COUNTS[:ahead] * self._each
        return cost

    def _usable(self, cost: NDArray[np.float64], won: Bets) -> NDArray[np.bool_]:
        """Which of these drafts the row counts and the ledger allow."""
        usable: NDArray[np.bool_] = self._allowed[1 : len(cost) + 1] & self._ledger.allows(cost, won)
        return usable

    @property
    def _each(self) -> float:
        """What one token of the draft model costs, in plain tokens."""
        return self.cost.draft.get("draft", 0.0) / self.cost.plain

    @property
    def _late(self) -> float:
        """What it costs the draft model to read what was said since it last drafted, in plain tokens."""
        return self._each * self.cost.draft_late * self._idle

    def _model_rate(self) -> float:
        """What the draft model may be expected to bring before it has drafted."""
        n = min(self._limit, _AHEAD)
        if self._plan.grow is not None:
            rate = self._best(*self._typical_tree(n, self._levels))[1]
        else:
            rate = self._best(Bets(np.full(n, self.calibration.drafting)), self._costs(n, 0, n))[1]
        return max(rate, self._pace.now) if rate > 1.0 else 1.0

    def _choose(self, drafted: Sequence[Evidence], copied: Sequence[Evidence]) -> Choice:
        """How a draft goes on: a token of the model, copying to the end, or not at all.

        Each is worth its expected tokens less its cost at the pace of rounds like this. The model's
        next tokens are taken to be typical; all lengths are compared, since V has stairs.
        """
        model, j = self._drafting, len(drafted)
        if model is None or j < len(model.known):
            relative, rate = self.cost.relative, self.calibration.drafting
            model = Drafting(relative, self._each, rate, self._allowed, self._ledger, self._limit, self._late)
            self._drafting = model
        if j >= min(self._limit, _AHEAD):
            return "stop"
        if self._is_off("draft"):
            return "draft" if not j and self._each + self._late <= _PROBE_SHARE * self._idle else "stop"
        for evidence in drafted[len(model.known) :]:
            model.add(self.calibration.chance(evidence))
        pace = min(self._pace.now, model.believed) if j else 1.0
        now, going_on = model.value(pace), model.value_of_drawing(pace)
        if j and copied and "suffix" in self._active and self.calibration.chance(copied[0]) >= _SURE:
            following = chances(self.calibration, copied, repeat("suffix"), self._limit - j)
            won = Bets(np.concatenate((model.known, following)))
            copying = won.emitted - pace * self._costs(len(won.emitted), j, 0)
            if float(copying[j:].max(initial=-np.inf)) > max(going_on, now):
                return "copy"
        return "draft" if going_on > now else "stop"

    def _grow(self, tree: Draft) -> tuple[Draft, bool]:
        """The nodes whose rate is not under the pace, and whether one more level will hold some.

        Its nodes are taken to be typical; it costs a pass over all that is there.
        """
        each, pace = self._each, self._pace.now
        if self._is_off("draft"):
            return tree, not tree.tokens and each + self._late <= _PROBE_SHARE * self._idle
        if not tree.tokens:
            return tree, each + self._late <= self._ledger.budget and self._model_rate() > 1.0
        order, won = bets(self.calibration, tree, self._limit)
        value = self._worth(won.emitted, pace)
        best = int(value.argmax()) + 1 if value.max() > -np.inf else len(order)
        kept = np.sort(order[:best])
        tree = tree.keep(kept.tolist())
        survival = won.survival[:best][order[:best].argsort()]
        depth = depths(tree.parents)
        row = self.cost.draft_row or 0.0
        spent = float(work(depth, row)[-1]) * each
        costs = each * (1.0 + row * (best - 1))
        last = survival[depth == depth[-1]]
        first, second = self.calibration.drafting, self.calibration.second
        longer = np.concatenate((survival, last * first, last * (1.0 - first) * second))
        longer = -np.sort(-longer)[: self._limit]
        gain = self._worth(1.0 + longer.cumsum(), pace).max() - value.max()
        goes_on = best < self._limit and spent + costs <= self._ledger.budget and gain > pace * costs
        return replace(tree, survival=tuple(survival.tolist())), bool(goes_on)

    def _worth(self, emitted: NDArray[np.float64], pace: float) -> NDArray[np.float64]:
        """Expected tokens less cost at this pace, of verifying 1, 2, ... nodes."""
        n = len(emitted)
        return np.where(self._allowed[1 : n + 1], emitted - pace * self.cost.relative[2 : n + 2], -np.inf)

    def observe(self, outcome: Outcome) -> None:
        n = len(outcome.draft)
        counted = self.cost.observe_verify(n + 1, outcome.t_verify)
        drew = False
        if self._widened:
            self._windows.learn(outcome.offers)
        for offer in outcome.offers:
            self._learn(offer)
            if offer.draft.sources[0] == "draft":
                done = self._drawn(offer.draft) + self.cost.draft_late * self._idle
                self.cost.observe_draft("draft", done, outcome.t_propose)
                drew = True
        self._rounds += 1
        if self._rounds % _REVIEWED == 0 and "draft" in self._active:
            self.expected()
        self._idle = 0.0 if drew else self._idle + outcome.emitted
        if not n and not drew:
            asking = min(max(outcome.t_propose / self.cost.plain - _PROBE_SHARE, 0.0), _ASKING)
            self._ledger.add(outcome.emitted, outcome.emitted + asking)
            self._pace.add(outcome.emitted, float(outcome.emitted))
            return
        if n:
            self._taken, self._depth = outcome.draft.sources[0], n
            self._drafted, self._last = self._drafted + 1, self._rounds
        cost = (counted + outcome.t_propose + outcome.t_other) / self.cost.plain
        self._ledger.add(outcome.emitted, cost)
        if drew:
            self._pace.add(outcome.emitted, cost)

    def _is_off(self, source: Source) -> bool:
        """Wrong from the first token so often in a row that only probes are worth making.

        Free drafts are judged unverified, so that they are on again with the first that is right.
        """
        return self._missed.get(source, 0) >= _GIVE_UP

    def _is_wrong(self, draft: Draft) -> bool:
        """Have all who proposed its first token been wrong of late?"""
        first = (source for source, parent in zip(draft.sources, draft.parents, strict=True) if parent < 0)
        return all(map(self._is_off, first))

    def _learn(self, offer: Offer) -> None:
        draft, told = offer.draft, offer.told
        if told:
            source = draft.sources[0]
            hit = any(right for node, right in told if draft.parents[node] < 0)
            self._missed[source] = 0 if hit else self._missed.get(source, 0) + 1
        learn(self.calibration, offer)

    @property
    def saved(self) -> float:
        """Plain tokens' worth of time saved in this answer."""
        return self._ledger.saved

    @property
    def status(self) -> Status:
        if not self._sources:
            return Status(False, "none", 0, "switched off")
        if self._most < 1:
            return Status(False, "none", 0, "no row count above 1 is allowed")
        figures = {
            "saved_tokens": self._ledger.saved,
            "budget_tokens": self._ledger.budget,
            "pace": self._pace.now,
            "plain_seconds": self.cost.plain,
            "draft_token_cost": self._each,
            "drafting_rate": self.calibration.drafting,
        }
        if self._active and all(self._is_off(source) for source in self._active):
            wrong = min(self._missed[source] for source in self._active)
            why = f"the last {wrong} drafts were wrong from their first token"
            return Status(False, self._taken, 0, why, figures)
        if self._drafted and (self.saved > 0.0 or self._rounds - self._last <= _RECENT):
            side = "ahead of" if self.saved >= 0.0 else "behind"
            share = f"drafted in {self._drafted} of {self._rounds} rounds"
            why = f"{share}, {abs(self.saved):.1f} tokens {side} plain"
            return Status(True, self._taken, self._depth, why, figures)
        if "draft" in self._sources and "draft" not in self._active:
            why = f"a token of the draft model costs {self._each:.2f} of the target's, too much to pay here"
        else:
            why = "no draft was likely enough to pay for its rows" if self._rounds else "no answer yet"
        return Status(False, "none", 0, why, figures)
