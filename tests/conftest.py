"""Fixtures that every folder of tests may use."""

from pathlib import Path

import pytest

from edgespec import hub


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The small default model, fetched once into the user's store. Mark its tests `model`."""
    return hub.resolve(None)
