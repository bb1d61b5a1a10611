"""Rounds in order: the decoding step, and the session that holds a conversation's cache."""

from edgespec.engine.session import Request, Session
from edgespec.engine.step import VerifyMode

__all__ = ["Request", "Session", "VerifyMode"]
