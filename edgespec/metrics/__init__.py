"""Adds up events."""

from edgespec.metrics.summary import Summary
from edgespec.metrics.trace import TraceWriter

__all__ = ["Summary", "TraceWriter"]
