"""Counters of one answer. Every figure says what it is a ratio of."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field

from edgespec.rates import Rates
from edgespec.types import FinishReason, StepEvent


@dataclass(slots=True)
class Summary(Rates):
    """`tokens`: emitted. `rounds`: verify passes, the prompt's included; `end_rounds`: those that brought
    only the end. Times are seconds.

    `draft_n`: drafted tokens that were verified, `draft_n_accepted` of these accepted.
    `t_first`: from the request to the first token. `t_decode`: rounds after the first token.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    rounds: int = 0
    end_rounds: int = 0
    draft_n: int = 0
    draft_n_accepted: int = 0
    t_first: float = 0.0
    t_decode: float = 0.0
    sources: Counter[str] = field(default_factory=Counter)
    finish: FinishReason | None = None

    def add(self, event: StepEvent) -> None:
        """Count one event of a generation, in order."""
        outcome = event.outcome
        if outcome is not None:
            seconds = outcome.t_propose + outcome.t_verify + outcome.t_other
            if self.rounds == 0:
                self.t_first = seconds
            else:
                self.t_decode += seconds
            self.rounds += 1
            self.end_rounds += event.sampled == 0
            self.draft_n += len(outcome.draft)
            self.draft_n_accepted += outcome.accepted
        self.tokens += event.sampled
        for piece in event.pieces:
            self.sources[piece.source] += 1
        self.finish = event.finish or self.finish

    @property
    def shares(self) -> dict[str, float]:
        """Share of the emitted tokens that each source proposed."""
        total = sum(self.sources.values())
        return {source: n / total for source, n in self.sources.most_common()} if total else {}

    def as_dict(self) -> dict[str, object]:
        """For JSON: the counters and the ratios."""
        return {
            **asdict(self),
            "sources": dict(self.sources),
            "tokens_per_second": self.tokens_per_second,
            "acceptance_rate": self.acceptance_rate,
            "mean_acceptance_length": self.mean_acceptance_length,
        }
