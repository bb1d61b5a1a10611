"""Which proposer, how deep, or not at all."""

from edgespec.control.base import Policy
from edgespec.control.controller import Controller
from edgespec.control.cost import CostModel
from edgespec.control.fixed import FixedPolicy
from edgespec.control.survival import Calibration

__all__ = ["Calibration", "Controller", "CostModel", "FixedPolicy", "Policy"]
