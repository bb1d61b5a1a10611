"""Which proposer, how deep, or not at all."""

from edgespec.control.base import Policy
from edgespec.control.controller import Controller
from edgespec.control.cost import CostModel
from edgespec.control.fixed import FixedPolicy
from edgespec.control.stages import SMALL, Stages
from edgespec.control.survival import Calibration

__all__ = ["SMALL", "Calibration", "Controller", "CostModel", "FixedPolicy", "Policy", "Stages"]
