"""What passes computed anyway, handed to proposers that learn from it, within a share of the time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from edgespec.proposers.base import Learning, Proposer, Refining
from edgespec.sampling.transform import top_k
from edgespec.types import Clock, Draft, FloatArray, Verdict

_SHARE = 0.005


class Teaching:
    """The best successors of every row, those of the accepted path first.

    Looking for them may take a share of the time that passes take: where passes are quick, some rows are
    left out.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = 0.0

    def teach(
        self,
        proposers: Iterable[Proposer],
        pending: int,
        draft: Draft,
        n: int,
        rows: FloatArray,
        verdict: Verdict,
        seconds: float,
    ) -> None:
        """`rows` `[1 + len(draft), n_vocab]`: after the pending token and each drafted one.

        Behind the first `n` nodes come guesses of a window, in places that are unlikely to be reached.
        `seconds`: of the pass.
        """
        # isinstance of a protocol takes 8 us, for each in every round
        pupils = [cast(Learning, proposer) for proposer in proposers if hasattr(proposer, "learn")]
        if not pupils:
            return
        self._left = min(self._left, 0.0) + _SHARE * seconds
        most, started = max(pupil.n_best for pupil in pupils), self._clock()
        others = sorted(set(range(n)).difference(verdict.path))
        for node in (-1, *verdict.path, *others):
            if self._left - (self._clock() - started) < 0.0:
                break
            best = top_k(rows[node + 1], most)
            for pupil in pupils:
                pupil.learn(pending if node < 0 else draft.tokens[node], best[: pupil.n_best])
        self._left -= self._clock() - started


def refine(
    proposers: Iterable[Proposer], draft: Draft, verdict: Verdict, answer: Callable[[int], int]
) -> None:
    """Those that guess again are told of the draft; `answer(i)` is what the target says behind node i."""
    for proposer in proposers:
        if hasattr(proposer, "refine"):
            cast(Refining, proposer).refine(draft, verdict, answer)
