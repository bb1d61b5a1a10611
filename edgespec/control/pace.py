"""How fast an answer has gone of late."""

_MEMORY = 0.9


class Pace:
    """Tokens per plain token's time, decayed; with a cautious start."""

    def __init__(self) -> None:
        self._tokens = self._cost = 0.0

    def add(self, tokens: int, cost: float) -> None:
        self._tokens = _MEMORY * self._tokens + tokens
        self._cost = _MEMORY * self._cost + cost

    @property
    def now(self) -> float:
        """At least 1: plain decoding is always to be had."""
        return max(1.0, (self._tokens + 2.0) / (self._cost + 2.0))
