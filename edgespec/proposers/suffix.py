"""Suffix proposer (SuffixDecoding, Oliaro et al. 2024): continue the longest match as it mostly went on."""

from __future__ import annotations

from edgespec.proposers.automaton import SuffixAutomaton
from edgespec.types import NO_DRAFT, Draft, Evidence, Plan, Source, Tokens, Verdict, chain


class SuffixProposer:
    """Matches of any length over prompt and output; the draft grows with the match."""

    name: Source = "suffix"

    def __init__(self, shortest: int = 1) -> None:
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
        evidence: list[Evidence] = []
        while length >= self._shortest and len(out) < plan.max_draft:
            while state > 0 and not a.next[state]:
                state = a.link[state]
                length = min(length, a.longest[state])
            if state <= 0:
                break
            token, share, times = self._best(state)
            out.append(token)
            evidence.append((float(length), share, times))
            state = a.next[state][token]
            length += 1
        return chain(out, self.name, evidence) if out else NO_DRAFT

    def _best(self, state: int) -> tuple[int, float, float]:
        """The most frequent continuation, the most recent among equals, its share of all, its count."""
        nexts, count = self._automaton.next[state], self._automaton.count
        if len(nexts) == 1:
            ((token, after),) = nexts.items()
            return token, 1.0, float(count[after])
        token = max(nexts, key=lambda t: (count[nexts[t]], nexts[t]))
        times = float(count[nexts[token]])
        return token, min(times / sum(count[s] for s in nexts.values()), 0.999), times

    def observe(self, verdict: Verdict) -> None:
        pass
