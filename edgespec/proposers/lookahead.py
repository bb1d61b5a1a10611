"""Lookahead decoding (Fu et al. 2024) and its smallest case, Jacobi decoding (Santilli et al. 2023)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from edgespec.types import (
    NO_WINDOW,
    Draft,
    Evidence,
    Plan,
    Source,
    Tokens,
    Verdict,
    Window,
    chain,
    merge,
)

_GRAMS = 6
"""N-grams that are kept, and offered, of one first token (G)."""
_FIRSTS = 1 << 13
"""First tokens that are kept."""
_RANKS, _DEEPER, _REFINED = 4, 4, 5
"""Evidence: 0 to 3 is the first token of an n-gram, by how lately it was seen, 4 one further on; 5 to 8 is a
guess, by the passes that refined it.
"""
_MOST_REFINED = 3


@dataclass(slots=True)
class _Column:
    """A guess at one coming token and what the target said after it, pass by pass; `passes` made of it."""

    tokens: list[int]
    passes: int = 0


class LookaheadProposer:
    """Guesses at the next W tokens, each answered by the target in every pass with the guesses before it.

    A column's answers are appended to it and asked on, until it is an n-gram of N tokens. That goes into a
    pool by its first token, and the column moves on by one. N-grams behind the pending token are offered as
    branches. Without branches, and with N = 2, the answers are simply the next guesses: Jacobi decoding.
    """

    def __init__(self, name: Source = "lookahead") -> None:
        self.name = name
        self._columns: list[_Column] = []
        self._window = NO_WINDOW
        self._pool: OrderedDict[int, OrderedDict[tuple[int, ...], None]] = OrderedDict()
        self._after: dict[int, int] = {}
        self._read = 0

    def begin(self, history: Tokens) -> None:
        self._columns.clear()
        self._window, self._read = NO_WINDOW, 0

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        """The n-grams of the pool that begin with the pending token, and the guesses."""
        most = plan.max_draft
        guesses = [column.tokens[0] for column in self._columns[:most]]
        known = [(float(_REFINED + column.passes),) for column in self._columns[:most]]
        drafts = [chain(guesses, self.name, known)] if guesses else []
        if plan.tree:
            drafts = [*self._grams(history[-1]), *drafts]
        return merge(drafts).first(most)

    def _grams(self, first: int) -> list[Draft]:
        """The latest first."""
        found = self._pool.get(first)
        if found is None:
            return []
        drafts = []
        for rank, gram in enumerate(reversed(found)):
            evidence: list[Evidence] = [
                (float(min(rank, _RANKS - 1)),),
                *[(float(_DEEPER),)] * (len(gram) - 1),
            ]
            drafts.append(chain(gram, self.name, evidence))
        return drafts

    def window(self, history: Tokens, window: Window) -> Draft:
        """The guesses and what was said after each of them: W chains on one, (W)(N - 1) nodes."""
        self._window = window
        self._fill(history)
        tokens = [column.tokens[0] for column in self._columns]
        parents = list(range(-1, len(tokens) - 1))
        for j, column in enumerate(self._columns):
            for i, token in enumerate(column.tokens[1:]):
                parents.append(len(tokens) - 1 if i else j)
                tokens.append(token)
        known = [(float(_REFINED + column.passes),) for column in self._columns]
        known += [(float(_REFINED),)] * (len(tokens) - len(known))
        n = len(tokens)
        return Draft(tuple(tokens), tuple(parents), tuple(known), (self.name,) * n, survival=(0.0,) * n)

    def _fill(self, history: Tokens) -> None:
        """W columns of at most N - 1 tokens; a new one guesses what last followed the token before it."""
        self._after.update(pairwise(history[self._read :]))
        self._read = len(history) - 1
        del self._columns[self._window.columns :]
        for column in self._columns:
            del column.tokens[: 1 - self._window.levels]
        while len(self._columns) < self._window.columns:
            before = self._columns[-1].tokens[0] if self._columns else history[-1]
            guess = self._after.get(before, history[len(self._columns) % len(history)])
            self._columns.append(_Column([guess]))

    def refine(self, draft: Draft, verdict: Verdict, answer: Callable[[int], int]) -> None:
        """Every column that was in the pass has one more answer."""
        if not self._columns:
            return
        child = {edge: i for i, edge in enumerate(zip(draft.parents, draft.tokens, strict=True))}
        node, idle = -1, 1
        for column in self._columns:
            found = child.get((node, column.tokens[0]))
            if found is None:
                break
            node = found
            end: int | None = node
            for token in column.tokens[1:]:
                end = None if end is None else child.get((end, token))
            if end is None:
                continue
            said, idle = answer(end), 0
            self._after[column.tokens[-1]] = said
            column.tokens.append(said)
            column.passes = min(column.passes + 1, _MOST_REFINED)
            if len(column.tokens) >= self._window.levels:
                self._keep(column.tokens)
                del column.tokens[0]
        del self._columns[: len(verdict.path) + idle]

    def _keep(self, gram: Sequence[int]) -> None:
        if self._window.levels < 3:
            return
        first, rest = gram[0], tuple(gram[1:])
        known = self._pool.setdefault(first, OrderedDict())
        known[rest] = None
        known.move_to_end(rest)
        self._pool.move_to_end(first)
        if len(known) > _GRAMS:
            known.popitem(last=False)
        if len(self._pool) > _FIRSTS:
            self._pool.popitem(last=False)

    def observe(self, verdict: Verdict) -> None:
        pass
