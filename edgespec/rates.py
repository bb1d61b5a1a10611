"""What counters of an answer amount to. Every figure says what it is a ratio of."""

from __future__ import annotations


class Rates:
    """Ratios of the counters that `Summary` describes, for whoever has them as fields."""

    __slots__ = ()

    tokens: int
    rounds: int
    end_rounds: int
    draft_n: int
    draft_n_accepted: int
    t_decode: float

    @property
    def tokens_per_second(self) -> float:
        """Emitted tokens after the first, over decode wall time; 0 before there are any."""
        return (self.tokens - 1) / self.t_decode if self.tokens > 1 and self.t_decode > 0 else 0.0

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted out of verified drafted tokens; None if nothing was drafted."""
        return self.draft_n_accepted / self.draft_n if self.draft_n else None

    @property
    def mean_acceptance_length(self) -> float:
        """Emitted tokens per round that emitted any; 1.0 for plain decoding."""
        rounds = self.rounds - self.end_rounds
        return self.tokens / rounds if rounds else 0.0
