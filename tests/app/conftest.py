"""The app without a model and without the user's own files."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_files(monkeypatch, tmp_path):
    """Data, settings and measurements of a test are its own; no desktop to copy to."""
    for name in ("DATA", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"EDGESPEC_{name}", str(tmp_path / name.lower()))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
