"""Suffix automaton with occurrence counts, built online in O(1) amortised a token."""

from __future__ import annotations

from edgespec.types import Tokens

_COUNTED_LINKS = 64


class SuffixAutomaton:
    """Blumer et al. 1985. A state is a set of substrings with the same ending positions.

    `longest[s]`: length of its longest string. `link[s]`: the state of its longest suffix that occurs
    elsewhere too. `next[s]`: token -> state. `count[s]`: occurrences (links deeper than 64 uncounted).
    `best[s]`: the token that most often followed, the latest among equals; -1 where none did.
    `last`: the state of the whole text, so link[last] is the longest suffix that was seen before.
    """

    def __init__(self) -> None:
        self.next: list[dict[int, int]] = [{}]
        self.link: list[int] = [-1]
        self.longest: list[int] = [0]
        self.count: list[int] = [0]
        self.best: list[int] = [-1]
        self.last = 0
        self.size = 0

    def extend(self, tokens: Tokens) -> None:
        for token in tokens:
            self._add(token)

    def _add(self, token: int) -> None:
        nexts, link, longest, count, best = self.next, self.link, self.longest, self.count, self.best
        new, before = len(nexts), self.last
        nexts.append({})
        longest.append(longest[before] + 1)
        count.append(0)
        best.append(-1)
        link.append(0)
        at = before
        while at != -1 and token not in nexts[at]:
            nexts[at][token] = new
            if best[at] < 0:
                best[at] = token
            at = link[at]
        if at != -1:
            old = nexts[at][token]
            link[new] = old if longest[at] + 1 == longest[old] else self._clone(at, token, old)
        self.last = new
        self.size += 1
        for _ in range(_COUNTED_LINKS):
            if new <= 0:
                break
            count[new] += 1
            new = link[new]
        self._follow(before, token)

    def _follow(self, at: int, token: int) -> None:
        """`token` followed all suffixes of the text up to state `at`: is it the best now?"""
        nexts, link, count, best = self.next, self.link, self.count, self.best
        for _ in range(_COUNTED_LINKS):
            if at < 0:
                break
            old = best[at]
            if old != token and count[nexts[at][token]] >= count[nexts[at][old]]:
                best[at] = token
            at = link[at]

    def _clone(self, at: int, token: int, old: int) -> int:
        nexts, link = self.next, self.link
        clone = len(nexts)
        nexts.append(dict(nexts[old]))
        self.longest.append(self.longest[at] + 1)
        self.count.append(self.count[old])
        self.best.append(self.best[old])
        link.append(link[old])
        link[old] = clone
        while at != -1 and nexts[at].get(token) == old:
            nexts[at][token] = clone
            at = link[at]
        return clone
