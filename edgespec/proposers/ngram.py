"""n-gram proposer (prompt lookup, Saxena 2023): copy what followed the last occurrence."""

from __future__ import annotations

from edgespec.types import NO_DRAFT, Draft, Plan, Source, Tokens, Verdict, chain


class NgramProposer:
    """Index of where every 4-, 3- and 2-gram was last seen; O(1) a token and a lookup."""

    name: Source = "ngram"

    def __init__(self, longest: int = 4, shortest: int = 2) -> None:
        self._sizes = range(longest, shortest - 1, -1)
        self._tokens: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}

    def begin(self, history: Tokens) -> None:
        n = len(self._tokens)
        if len(history) < n or list(history[:n]) != self._tokens:
            self._tokens, self._after = [], {}
        self._extend(history)

    def _extend(self, history: Tokens) -> None:
        """Index all n-grams that end before the last token, so that a lookup finds an earlier one."""
        tokens, after = self._tokens, self._after
        for end in range(len(tokens), len(history)):
            for size in self._sizes:
                if end >= size:
                    after[tuple(tokens[end - size : end])] = end
            tokens.append(history[end])

    def propose(self, history: Tokens, plan: Plan) -> Draft:
        self._extend(history)
        tokens = self._tokens
        for size in self._sizes:
            at = self._after.get(tuple(tokens[-size:])) if len(tokens) > size else None
            if at is not None:
                return self._copy(at, size, plan.max_draft)
        return NO_DRAFT

    def _copy(self, at: int, length: int, most: int) -> Draft:
        """Copy from position `at`; past the end the draft copies itself, as a loop does."""
        tokens, n = self._tokens, len(self._tokens)
        out: list[int] = []
        for i in range(most):
            out.append(tokens[at + i] if at + i < n else out[at + i - n])
        return chain(out, self.name, [(float(length + i), 1.0, 1.0) for i in range(most)])

    def observe(self, verdict: Verdict) -> None:
        pass
