"""The libraries that can compute here."""

from __future__ import annotations

from edgespec.backends.registry import ADAPTERS, adapter
from edgespec.doctor.sections import Section
from edgespec.doctor.subject import Subject


def backends(subject: Subject) -> Section:
    """Every registered one: found, or how to install it."""
    lacking = {name: adapter(name).missing() for name in ADAPTERS}
    facts = tuple((name, reason or "found") for name, reason in lacking.items())
    figures = {name: {"found": reason is None, "missing": reason} for name, reason in lacking.items()}
    return Section("Backends", facts, figures=figures)
