"""Suffix proposer (SuffixDecoding, Oliaro et al. 2024): continue the longest match as it mostly went on."""

from __future__ import annotations

from edgespec.proposers.automaton import SuffixAutomaton
from edgespec.types import NO_DRAFT, Draft, Evidence, Plan, Source, Tokens, Verdict, chain

_SUMMED = 16
"""Continuations that are added up; of more, the state's own count is near enough."""


class Match:
    """Where a text stands in an automaton: its longest ending that was seen before."""

    def __init__(self, automaton: SuffixAutomaton, state: int, length: int) -> None:
        self._automaton, self._state, self.length = automaton, state, length

    def copy(self) -> Match:
        return Match(self._automaton, self._state, self.length)

    def next(self) -> tuple[int, Evidence] | None:
        """The most frequent continuation, the latest among equals; None if the match has none."""
        a = self._automaton
        while self._state > 0 and not a.next[self._state]:
            self._state = a.link[self._state]
            self.length = min(self.length, a.longest[self._state])
        state = self._state
        if state <= 0 or self.length < 1:
            return None
        nexts, count, token = a.next[state], a.count, a.best[state]
        times = count[nexts[token]]
        if len(nexts) == 1:
            return token, (float(self.length), 1.0, float(times))
        total = sum(count[s] for s in nexts.values()) if len(nexts) <= _SUMMED else count[state]
        return token, (float(self.length), min(0.999, times / total), float(times))

    def advance(self, token: int) -> None:
        """Append one token to the text."""
        a, state = self._automaton, self._state
        while state > 0 and token not in a.next[state]:
            state = a.link[state]
            self.length = a.longest[state]
        if token in a.next[state]:
            self._state, self.length = a.next[state][token], self.length + 1
        else:
            self._state, self.length = 0, 0

    def run(self, most: int) -> tuple[list[int], list[Evidence]]:
        """What follows, as long as something does."""
        tokens: list[int] = []
        evidence: list[Evidence] = []
        at = self.copy()
        while len(tokens) < most and (found := at.next()) is not None:
            tokens.append(found[0])
            evidence.append(found[1])
            at.advance(found[0])
        return tokens, evidence


class SuffixProposer:
    """Matches of any length over prompt and output; the draft grows with the match."""

    name: Source = "suffix"

    def __init__(self) -> None:
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

    def match(self, history: Tokens) -> Match:
        """Where `history` stands, for what may follow it."""
        self._extend(history)
        a = self._automaton
        state = max(a.link[a.last], 0)
        return Match(a, state, a.longest[state])

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        tokens, evidence = self.match(history).run(plan.max_draft)
        return chain(tokens, self.name, evidence) if tokens else NO_DRAFT

    def observe(self, verdict: Verdict) -> None:
        pass
