"""What a model's speculation goes by, measured when there is time for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from edgespec.api.draftcosts import DraftCosts
from edgespec.api.pairing import InIds
from edgespec.backends.base import LoadedModel
from edgespec.calibration import (
    NAMES,
    Measured,
    Measurements,
    RowCounts,
    Survey,
    choose_numerics,
    fingerprint,
    price_of_exactness,
)

Share = Callable[[float], None]
"""The share that is done, 0 to 1. Whatever it raises ends the measuring."""

_TEXT = "The quick brown fox jumps over the lazy dog. 1, 2, 3, 5, 8, 13; def f(x): return x + 1\n"


class Calibrator:
    """Exact row counts, what passes and drafted tokens cost, and the numerics that follow. All is kept for
    the next start, and goes on there if it did not come to its end.
    """

    def __init__(
        self,
        target: LoadedModel,
        path: Path,
        drafts: Sequence[InIds],
        asked: Literal["auto", "exact", "near"],
        notify: Callable[[str], None],
    ) -> None:
        """`drafts`: the draft model, and one that drafts for it; as far as there are any."""
        self.stored = Measurements(fingerprint(path), target.info.settings)
        self._drafts = [DraftCosts(self.stored, draft.model, draft.path) for draft in drafts]
        self.draft, self.small, *_ = *self._drafts, None, None
        self.pair = self.draft.key if self.draft else "alone"
        self._price_name = f"price_of_exactness:{self.pair}"
        self._text = sample_text(target)
        self._survey = Survey(target.backend, self._text, self.stored)
        self._asked, self._notify = asked, notify
        self._told = False
        self.complete = False
        """Is all known that speculation goes by?"""
        self._settle()

    @property
    def found(self) -> Measured:
        return self._survey.known

    @property
    def rows(self) -> RowCounts:
        found, price = self.found, self._price if self._survey.complete else None
        return choose_numerics(self._asked, found.exact, price, found.trees)

    @property
    def _price(self) -> float | None:
        price = self.stored.get(self._price_name)
        return price if isinstance(price, float) and 0.0 <= price <= 1.0 else None

    def advance(self, seconds: float = math.inf, progress: Share = lambda _: None) -> None:
        """Measure what is not known yet, for about so long.

        Raises Cancelled when a backend is aborted; what was measured until then is kept.
        """
        for costs in self._drafts:
            if not costs.known:
                costs.measure(self._text)
        try:
            self._survey.advance(seconds, progress)
        finally:
            self._settle()
            if not self._survey.can_be_kept and not self._told:
                self._told = True
                folder = self.stored.path.parent
                self._notify(f"what was measured cannot be kept in {folder}: it is measured at every start")

    def renew(
        self,
        seconds: float,
        progress: Share = lambda _: None,
        trusted: Callable[[], bool] = lambda: True,
    ) -> tuple[Measured, float | None]:
        """Measure all of it anew, with care; see `Survey.renew`. Returns it, and seconds of a drafted token.

        What is not `trusted` afterwards does not replace what was known before.
        """
        names = (*NAMES, *(name for costs in self._drafts for name in costs.names), self._price_name)
        before = {name: self.stored.get(name) for name in names}
        complete = self.complete
        self.stored.put(self._price_name, None)
        for costs in self._drafts:
            costs.measure(self._text)
        try:
            self._survey.renew(seconds, progress)
            measured = self.found, self.draft.seconds if self.draft else None
            complete = complete and not trusted()
        finally:
            if complete:
                for name, value in before.items():
                    self.stored.put(name, value)
            self._settle()
        return measured

    def _settle(self) -> None:
        """Numerics are decided once, when all is measured: seconds that vary must not change the text."""
        found, each = self.found, self.draft.seconds if self.draft else None
        unknown = self.draft is not None and each is None
        if self._price is None and self._survey.complete and not unknown and found.seconds:
            price = price_of_exactness(found, (each or 0.0) / found.seconds[1])
            self.stored.put(self._price_name, max(price, 0.0))
        drafts = all(costs.known for costs in self._drafts)
        self.complete = self._survey.complete and self._price is not None and drafts


def sample_text(target: LoadedModel) -> list[int]:
    """Some text to measure on; long enough for the kernels of long contexts where these may differ."""
    kinds = [target.info.settings.get(name) for name in ("type_k", "type_v")]
    long = kinds[0] is not None and kinds[0] == kinds[1]
    return target.vocabulary.tokenize(_TEXT * (12 if long else 2), special=False)
