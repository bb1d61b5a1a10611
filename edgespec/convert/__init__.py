"""Model files into other forms: weights block for block where the other form has the same blocks."""

from __future__ import annotations

from edgespec.convert.folders import FORMS, convert, prepare, prepared

__all__ = ["FORMS", "convert", "prepare", "prepared"]
