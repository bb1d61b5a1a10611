"""What a policy is: it picks proposers and depth, and 0 is allowed."""

from __future__ import annotations

from typing import Protocol

from edgespec.types import Draft, Outcome, Plan, Source, Status, Window


class Policy(Protocol):
    def begin(self) -> tuple[Source, ...]:
        """A new answer. Returns the proposers that may run in it, to be made ready."""
        ...

    def plan(self, limit: int, tree: bool = False) -> Plan:
        """The next round. `limit`: most tokens that context, token limit and backend let it draft.

        `tree`: the backend can verify branches.
        """
        ...

    def trim(self, draft: Draft) -> Draft:
        """The part of a finished draft that is worth verifying."""
        ...

    def window(self, draft: Draft) -> Window:
        """Rows in which guesses are refined beside this draft; `NO_WINDOW` where that does not pay."""
        ...

    def observe(self, outcome: Outcome) -> None:
        """What the round did and how long it took."""
        ...

    @property
    def status(self) -> Status: ...
