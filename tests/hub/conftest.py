"""A hub of its own for each test: an empty store, a local Hugging Face, a local package index."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hub_files import card_toml

from edgespec.hub import catalogue
from edgespec.hub.catalogue import Card


@dataclass
class Hub:
    """A server of one file at org/tiny that a test may spoil, and at org/mirror as it should be."""

    content: bytes = b""
    mirrored: bytes = b""
    status: int = 200
    cut: int | None = None
    redirect: str | None = None
    before_answer: Callable[[], object] = lambda: None
    before_body: Callable[[], object] = lambda: None
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def hub_server(monkeypatch) -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.requests.append((self.command, self.path, self.headers.get("authorization")))
            hub.before_answer()
            if self.path.startswith("/org/mirror/"):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(hub.mirrored)
                return
            found = self.path in ("/org/tiny/resolve/main/tiny.gguf", "/cdn/tiny.gguf")
            if hub.redirect and self.path.startswith("/org/"):
                self.send_response(302)
                self.send_header("Location", hub.redirect)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(hub.status if found else 404)
            body = hub.content if found and hub.status == 200 else b"no"
            self.send_header("ETag", '"0123"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                hub.before_body()
                self.wfile.write(body[: hub.cut])

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield hub
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def no_hub(monkeypatch) -> None:
    """Hugging Face at a port where nobody listens."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch) -> Path:
    for name in ("HF_HUB_OFFLINE", "EDGESPEC_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
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
