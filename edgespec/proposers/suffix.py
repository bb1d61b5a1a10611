"""Suffix proposer (SuffixDecoding, Oliaro et al. 2024): continue the longest match as it mostly went on."""

from __future__ import annotations

from edgespec.proposers.automaton import SuffixAutomaton
from edgespec.proposers.prior import copy_chance
from edgespec.types import NO_DRAFT, Draft, Plan, Source, Tokens, Verdict, chain

_SUMMED = 16
"""Continuations that are added up; of more, the state's own count is near enough."""


class SuffixProposer:
    """Matches of any length over prompt and output; the draft grows with the match."""

    name: Source = "suffix"

    def __init__(self, shortest: int = 2) -> None:
        self._shortest = shortest
        self._tokens: list[int] = []
        self._automaton = SuffixAutomaton()

    def begin(self, history: Tokens) -> None:
        n = len(self._tokens)
        if len(history) < n or list(history[:n]) != self._tokens:
            self._tokens, self._automaton = [], SuffixAutomaton()
        self._extend(history)

    def _extend(self, history: Tokens) -> None:
        new = history[len(self._tokens) :]
        self._automaton.extend(new)
        self._tokens += new

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        self._extend(history)
        a = self._automaton
        state = a.link[a.last]
        length = a.longest[state] if state > 0 else 0
        out: list[int] = []
        survival: list[float] = []
        reach = 1.0
        while length >= self._shortest and len(out) < plan.max_draft:
            while state > 0 and not a.next[state]:
                state = a.link[state]
                length = min(length, a.longest[state])
            if state <= 0:
                break
            token, share = self._best(state)
            reach *= copy_chance(length) * share
            out.append(token)
            survival.append(reach)
            state = a.next[state][token]
            length += 1
        return chain(out, self.name, survival) if out else NO_DRAFT

    def _best(self, state: int) -> tuple[int, float]:
        """The most frequent continuation, the latest among equals, and its share of all."""
        a = self._automaton
        nexts, count, token = a.next[state], a.count, a.best[state]
        few = len(nexts) <= _SUMMED
        total = sum(count[s] for s in nexts.values()) if few else count[state]
        return token, min(1.0, count[nexts[token]] / total)

    def observe(self, verdict: Verdict) -> None:
        pass
