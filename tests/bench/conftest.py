"""A whole model in a table, and a server of both protocols."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from bench_kit import scripted_model


@pytest.fixture
def model():
    with scripted_model() as model:
        yield model


@dataclass
class Server:
    """Speaks server-sent events. `words` is the answer; `wait` holds it after the first word."""

    url: str = ""
    words: tuple[str, ...] = ("one ", "two ", "three")
    status: int = 200
    lines: list[str] | None = None
    wait: threading.Event | None = None
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@pytest.fixture
def server():
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(json.dumps({"data": [{"id": "the-model"}]}).encode())

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append((self.path, body))
            if state.status != 200:
                self.reply(b'{"error": "no\nsuch model"}', state.status)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                for line in state.lines if state.lines is not None else self.events(body):
                    self.wfile.write(line.encode())
                    self.wfile.flush()
                    if state.wait is not None:
                        state.wait.wait(20)

        def events(self, body):
            timings = {"predicted_n": 3, "draft_n": 4, "draft_n_accepted": 1}
            native = self.path.endswith("/completion")
            words = state.words[: body["n_predict" if native else "max_tokens"]]
            for word in words:
                chunk = {"content": word} if native else {"choices": [{"delta": {"content": word}}]}
                yield f"data: {json.dumps(chunk)}\n\n"
            last = (
                {"content": "", "stop": True}
                if native
                else {"choices": [], "usage": {"completion_tokens": 3}}
            )
            yield f"data: {json.dumps(last | {'timings': timings})}\n\n"
            if not native:
                yield "data: [DONE]\n\n"

        def reply(self, data, status=200):
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}"
    yield state
    if state.wait is not None:
        state.wait.set()
    http.shutdown()
    http.server_close()
