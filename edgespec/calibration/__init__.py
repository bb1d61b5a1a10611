"""What is measured once for a model on a device, and kept."""

from edgespec.calibration.cost import DRAFT_SECONDS, SECONDS, draft_seconds
from edgespec.calibration.numerics import Measured, RowCounts, choose_numerics, measured
from edgespec.calibration.store import Measurements, fingerprint

__all__ = [
    "DRAFT_SECONDS",
    "SECONDS",
    "Measured",
    "Measurements",
    "RowCounts",
    "choose_numerics",
    "draft_seconds",
    "fingerprint",
    "measured",
]
