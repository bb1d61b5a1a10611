"""Which proposer, how deep, or not at all."""

from edgespec.control.adaptive import AdaptivePolicy, FixedPolicy
from edgespec.control.base import Policy

__all__ = ["AdaptivePolicy", "FixedPolicy", "Policy"]
