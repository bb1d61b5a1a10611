"""What is measured for a model on a device, and kept."""

from edgespec.calibration.cost import draft_passes, draft_seconds
from edgespec.calibration.numerics import RowCounts, choose_numerics, price_of_exactness
from edgespec.calibration.store import Measurements, fingerprint
from edgespec.calibration.survey import NAMES, SECONDS, Measured, Survey

__all__ = [
    "NAMES",
    "SECONDS",
    "Measured",
    "Measurements",
    "RowCounts",
    "Survey",
    "choose_numerics",
    "draft_passes",
    "draft_seconds",
    "fingerprint",
    "price_of_exactness",
]
