"""A Hugging Face of our own: lists, metadata, redirects and ranges as the real one has them."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Request:
    path: str
    authorization: str | None
    range: str | None


@dataclass
class Hub:
    """`repos`: repository -> path -> content. The other fields spoil what is answered."""

    url: str = ""
    repos: dict[str, dict[str, bytes]] = field(default_factory=dict)
    api: tuple[int, dict[str, str]] = (200, {})
    file: tuple[int, dict[str, str]] = (200, {})
    sent: dict[str, bytes] = field(default_factory=dict)
    """What is sent in place of a path's content."""
    cut: Callable[[int], int | None] = lambda request: None
    """Bytes of the body after which the connection closes, given the number of the request for bytes."""
    ranges: bool = True
    cdn: str = ""
    before_answer: Callable[[], object] = lambda: None
    before_body: Callable[[], object] = lambda: None
    after_cut: Callable[[], object] = lambda: None
    requests: list[Request] = field(default_factory=list)
    moved: int = 0
    """Bytes of bodies that were sent."""

    @property
    def asked(self) -> list[str]:
        return [request.path for request in self.requests]


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        bodies = 0

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(Request(path, self.headers["authorization"], self.headers["range"]))
            hub.before_answer()
            if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/.+)?", path):
                self.list(match[1])
            elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
                self.point(match[1], match[2])
            elif match := re.fullmatch(r"/cdn/([^/]+/[^/]+)/(.+)", path):
                self.send_bytes(hub.sent.get(match[2], hub.repos[match[1]][match[2]]))
            else:
                self.refuse(404, {})

        def list(self, repo: str) -> None:
            status, headers = hub.api
            if status != 200:
                self.refuse(status, headers)
            elif repo not in hub.repos:
                self.refuse(401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
            else:
                siblings = [_sibling(path, content) for path, content in hub.repos[repo].items()]
                body = {"_id": "1", "id": repo, "sha": COMMIT, "gated": False, "siblings": siblings}
                self.answer(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

        def point(self, repo: str, path: str) -> None:
            status, headers = hub.file
            if status != 200:
                self.refuse(status, headers)
            elif path not in hub.repos.get(repo, {}):
                self.refuse(404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"})
            else:
                content = hub.repos[repo][path]
                linked = {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{_sha(content)}"'}
                where = quote(f"{hub.cdn or hub.url}/cdn/{repo}/{path}", safe=":/")
                self.answer(302, {"Location": where, "X-Repo-Commit": COMMIT, **linked}, b"")

        def send_bytes(self, content: bytes) -> None:
            start = 0
            match = re.fullmatch(r"bytes=(\d+)-", self.headers["range"] or "")
            if match and hub.ranges:
                start = int(match[1])
                if start >= len(content):
                    self.answer(416, {"Content-Range": f"bytes */{len(content)}"}, b"")
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            body = content[start:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            hub.before_body()
            cut = hub.cut(sum("/cdn/" in path for path in hub.asked))
            self.write(body[:cut])
            if cut is not None:
                self.wfile.flush()
                hub.after_cut()
                self.close_connection = True

        def write(self, body: bytes) -> None:
            for at in range(0, len(body), 1 << 16):
                chunk = body[at : at + (1 << 16)]
                try:
                    self.wfile.write(chunk)
                except OSError:
                    return
                hub.moved += len(chunk)

        def refuse(self, status: int, headers: dict[str, str]) -> None:
            self.answer(status, headers, b'{"error": "no"}')

        def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sibling(path: str, content: bytes) -> dict[str, object]:
    facts: dict[str, object] = {"rfilename": path, "size": len(content), "blobId": "0" * 40}
    if path.endswith(".gguf"):
        facts["lfs"] = {"sha256": _sha(content), "size": len(content), "pointerSize": 134}
    return facts


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    server = _Server(("127.0.0.1", 0), _handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
