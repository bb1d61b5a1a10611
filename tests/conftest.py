"""Fixtures that every folder of tests may use."""

import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from edgespec import hub

# A busy machine makes any example slow.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The small default model, fetched once into the user's store. Mark its tests `model`."""
    return hub.resolve(None)


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """A shell that runs the tests in the background has them ignore Ctrl-C, and programs inherit that."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
