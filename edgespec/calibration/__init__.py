"""What is measured once for a model on a device, and kept."""

from edgespec.calibration.numerics import RowCounts, choose_numerics, measured_rows
from edgespec.calibration.store import Measurements, fingerprint

__all__ = ["Measurements", "RowCounts", "choose_numerics", "fingerprint", "measured_rows"]
