"""(draft, target rows, noise) -> verdict, as pure functions."""

from edgespec.verify.coupled import verify_coupled
from edgespec.verify.rejection import verify_rejection

__all__ = ["verify_coupled", "verify_rejection"]
