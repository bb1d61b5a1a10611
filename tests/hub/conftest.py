"""A hub of its own for each test: an empty store, a local Hugging Face, a local package index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_files import card_toml
from hub_server import Hub, serving

from edgespec.hub import catalogue
from edgespec.hub.catalogue import Card


@pytest.fixture
def hub_server(monkeypatch) -> Iterator[Hub]:
    """A server that HF_ENDPOINT names; a test fills and spoils it."""
    with serving(Hub()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        # Another test may have imported it before we could say so.
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY", True)
        yield hub


@pytest.fixture
def no_hub(monkeypatch) -> None:
    """Hugging Face at a port where nobody listens."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch) -> Path:
    for name in ("HF_HUB_OFFLINE", "EDGESPEC_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "models"
    monkeypatch.setenv("EDGESPEC_MODELS", str(folder))
    return folder


@pytest.fixture
def wheels(tmp_path, monkeypatch) -> Path:
    """A folder that is pip's only index."""
    folder = tmp_path / "wheels"
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def shelf(tmp_path, monkeypatch) -> Callable[[Card], Card]:
    """Make a card the only one of the catalogue."""
    folder = tmp_path / "cards"
    folder.mkdir()
    monkeypatch.setattr(catalogue, "folder", lambda: folder)

    def put(card: Card) -> Card:
        (folder / "tiny.toml").write_text(card_toml(card), encoding="utf-8")
        return card

    return put
