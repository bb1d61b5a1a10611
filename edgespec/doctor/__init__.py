"""What this machine is, what it makes of a model, and what is set badly.

A report is a list of sections, each made by one function of `SECTIONS` from the `Subject`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from edgespec.doctor.backends import backends
from edgespec.doctor.choice import choice
from edgespec.doctor.machine import machine
from edgespec.doctor.model import curve, depths, model
from edgespec.doctor.sections import Bar, Finding, Section, Table
from edgespec.doctor.stores import stores
from edgespec.doctor.subject import Picture, Subject

__all__ = ["SECTIONS", "Bar", "Finding", "Picture", "Section", "Subject", "Table", "examine"]

SECTIONS: tuple[Callable[[Subject], Section | None], ...] = (
    machine,
    backends,
    stores,
    choice,
    model,
    curve,
    depths,
)


def examine(subject: Subject) -> Iterator[Section]:
    """The sections, each as soon as it is known. Raises as `Subject.picture` does."""
    for section in SECTIONS:
        if (found := section(subject)) is not None:
            yield found
