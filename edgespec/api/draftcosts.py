"""What a draft model costs on this device, measured once and kept with what is known of its target."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from edgespec.backends.base import LoadedModel
from edgespec.calibration import Measurements, draft_passes, draft_seconds, fingerprint
from edgespec.types import Tokens


class DraftCosts:
    """Seconds of a token and of passes of a draft model."""

    def __init__(self, stored: Measurements, draft: LoadedModel, path: Path) -> None:
        self._stored, self._draft = stored, draft
        self.key = fingerprint(path)
        self.names = (f"draft_seconds:{self.key}", f"draft_passes:{self.key}")
        """What is kept, in the store."""

    @property
    def seconds(self) -> float | None:
        """Of a token, None if it was not measured."""
        seconds = self._stored.get(self.names[0])
        return seconds if _is_time(seconds) else None

    @property
    def passes(self) -> dict[int, float]:
        """Of a pass by its row count, with 1 if any."""
        kept = self._stored.get(self.names[1])
        try:
            passes = {int(n): s for n, s in kept.items()}
        except (AttributeError, TypeError, ValueError):
            return {}
        return passes if 1 in passes and all(map(_is_time, passes.values())) else {}

    @property
    def row(self) -> float | None:
        """What another row adds to a pass, as a share of one row; None where it cannot branch."""
        return self.late if len(self.passes) > 1 and self._draft.backend.capabilities.tree else None

    @property
    def late(self) -> float:
        """What another token of a text adds to a pass, as a share of one; 0 where it was not measured."""
        passes = self.passes
        most = max(passes, default=1)
        return 0.0 if most == 1 else max(0.0, passes[most] / passes[1] - 1.0) / (most - 1)

    @property
    def known(self) -> bool:
        return self.seconds is not None and bool(self.passes)

    def measure(self, text: Tokens) -> None:
        each = draft_seconds(self._draft.backend, text)
        self._stored.put(self.names[0], each)
        passes = draft_passes(self._draft.backend, text, each)
        self._stored.put(self.names[1], {str(n): seconds for n, seconds in passes.items()})


def _is_time(seconds: Any) -> bool:
    return isinstance(seconds, float) and 0.0 < seconds < math.inf
