"""Suffix proposer (SuffixDecoding, Oliaro et al. 2024): continue the longest match as it mostly went on."""

from __future__ import annotations

from heapq import heappop, heappush

from edgespec.proposers.automaton import SuffixAutomaton
from edgespec.types import NO_DRAFT, Draft, Evidence, Plan, Source, Tokens, Verdict, chain

_WIDTH = 3
_LEAST_WEIGHT = 0.03
"""Of a branch that is not its match's most frequent continuation."""
_HOPELESS, _DOUBT = 0.01, 0.68
"""A match of n tokens goes on as before with a chance of about 1 - 0.68 / n^0.75."""
_SUMMED = 16
"""Continuations that are added up; of more, the state's own count is near enough."""


class Match:
    """Where a text stands in an automaton: its longest ending that was seen before."""

    def __init__(self, automaton: SuffixAutomaton, state: int, length: int) -> None:
        self._automaton, self._state, self.length = automaton, state, length

    def copy(self) -> Match:
        return Match(self._automaton, self._state, self.length)

    def after(self, tokens: Tokens) -> Match:
        """Where the text stands with these behind it."""
        match = self.copy()
        for token in tokens:
            match.advance(token)
        return match

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

    def continuations(self, most: int) -> list[tuple[int, Evidence]]:
        """The most frequent continuations, most of them first."""
        first = self.next()
        if first is None:
            return []
        a, nexts = self._automaton, self._automaton.next[self._state]
        if len(nexts) == 1 or most < 2:
            return [first]
        total = first[1][2] / first[1][1]
        others = [(a.count[state], token) for token, state in nexts.items() if token != first[0]]
        others.sort(reverse=True)
        length = float(self.length)
        return [first, *((t, (length, min(0.999, n / total), float(n))) for n, t in others[: most - 1])]

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


def tree(match: Match, most: int) -> Draft:
    """What follows a match, branching where it went on in several ways: the likeliest nodes first.

    A node's weight is the product of the shares on its path, as in SuffixDecoding, and of what a match of
    that length is worth; hopeless nodes are left out.
    """
    tokens: list[int] = []
    parents: list[int] = []
    evidence: list[Evidence] = []
    heap: list[tuple[float, int, int, int, Evidence, Match]] = []

    def add(parent: int, weight: float, at: Match) -> None:
        for rank, (token, why) in enumerate(at.continuations(_WIDTH)):
            share = weight * why[1] * (1.0 - _DOUBT * why[0] ** -0.75)
            if share >= (_LEAST_WEIGHT if rank else _HOPELESS):
                heappush(heap, (-share, len(tokens) + rank, parent, token, why, at))

    add(-1, 1.0, match)
    while heap and len(tokens) < most:
        weight, _, parent, token, why, at = heappop(heap)
        tokens.append(token)
        parents.append(parent)
        evidence.append(why)
        following = at.copy()
        following.advance(token)
        add(len(tokens) - 1, -weight, following)
    sources: list[Source] = ["suffix"] * len(tokens)
    return Draft(tuple(tokens), tuple(parents), tuple(evidence), tuple(sources))


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
        return self.ahead(history)

    def ahead(self, text: Tokens) -> Match:
        """Where `text` stands, which goes on from what was taken in; no more of it is."""
        a = self._automaton
        state = max(a.link[a.last], 0)
        return Match(a, state, a.longest[state]).after(text[len(self._tokens) :])

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        return _following(self.match(history), plan)

    def observe(self, verdict: Verdict) -> None:
        pass


class SuffixAhead:
    """The matches of another for texts that are only guessed: none of them is taken in."""

    name: Source = "suffix"

    def __init__(self, suffix: SuffixProposer) -> None:
        self._suffix = suffix

    def begin(self, history: Tokens) -> None:
        self._suffix.begin(history)

    def match(self, history: Tokens) -> Match:
        return self._suffix.ahead(history)

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        return _following(self.match(history), plan)

    def observe(self, verdict: Verdict) -> None:
        pass


def _following(match: Match, plan: Plan) -> Draft:
    if plan.tree:
        return tree(match, plan.max_draft)
    tokens, evidence = match.run(plan.max_draft)
    return chain(tokens, "suffix", evidence) if tokens else NO_DRAFT
