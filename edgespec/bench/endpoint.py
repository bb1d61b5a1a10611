"""A server as a contender: OpenAI's chat completions, or llama-server's own completions.

This module opens a connection to the address that it is given, and to no other.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from edgespec.bench.answers import Taken
from edgespec.errors import Cancelled, EdgespecError, UsageError
from edgespec.text.prompt import Message
from edgespec.types import Clock, SamplingSettings

TIMEOUT = 300.0
"""Seconds without a byte until a server is given up."""


class EndpointError(EdgespecError):
    """The server refused, failed, or answered something else."""


class Endpoint:
    """Streams answers from a server. `render` puts messages into the form that `/completion` needs.

    Its first tokens are only cold if it has not seen the prompts before. Its time between tokens counts
    each chunk as one token. Raises UsageError for an address that cannot be meant.
    """

    def __init__(
        self, url: str, render: Callable[[Sequence[Message]], str], clock: Clock = time.perf_counter
    ) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--against needs an address such as http://localhost:8080, not {url!r}")
        self.name = parts.netloc.rpartition("@")[2]
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, _port(parts, url)
        self._path = _path(parts.path)
        self._native = self._path.endswith("/completion")
        self._render, self._clock = render, clock
        self._model: str | None = None
        self._socket: socket.socket | None = None
        self._cancelled = threading.Event()

    def first(self, messages: Sequence[Message], sampling: SamplingSettings) -> float:
        """Seconds to the first token."""
        taken = self._take(messages, 1, sampling, cached=False)
        if not taken.arrivals:
            raise EndpointError(f"{self.name} answered without any text")
        return taken.arrivals[0][0]

    def answer(self, messages: Sequence[Message], n: int, sampling: SamplingSettings) -> Taken:
        return self._take(messages, n, sampling, cached=True)

    def cancel(self) -> None:
        """From any thread: end the running answer with Cancelled, and refuse later ones."""
        self._cancelled.set()
        if (connected := self._socket) is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def _take(
        self, messages: Sequence[Message], n: int, sampling: SamplingSettings, *, cached: bool
    ) -> Taken:
        body = self._body(messages, n, sampling, cached)
        started = self._clock()
        texts: list[str] = []
        arrivals: list[tuple[float, int]] = []
        usage: dict[str, Any] = {}
        for chunk in self._stream("POST", self._path, body):
            text = _text(chunk)
            if text:
                texts.append(text)
                arrivals.append((self._clock() - started, 1))
            usage |= _usage(chunk)
        total = usage.get("n") or len(arrivals)
        return Taken(
            "".join(texts),
            None,
            total,
            tuple(arrivals),
            draft_n=usage.get("draft_n"),
            draft_n_accepted=usage.get("draft_n_accepted"),
        )

    def _body(
        self, messages: Sequence[Message], n: int, sampling: SamplingSettings, cached: bool
    ) -> dict[str, Any]:
        common: dict[str, Any] = {
            "stream": True,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
        }
        if self._native:
            own = {"top_k": sampling.top_k, "min_p": sampling.min_p, "cache_prompt": cached}
            return common | own | {"prompt": self._render(messages), "n_predict": n}
        return common | {
            "model": self._model_name(),
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "max_tokens": n,
            "stream_options": {"include_usage": True},
        }

    def _model_name(self) -> str:
        """The first model that the server lists; some servers insist on a name they know."""
        if self._model is None:
            self._model = "default"
            with contextlib.suppress(EndpointError, ValueError, LookupError, TypeError):
                listed = json.loads(self._whole(self._path.removesuffix("/chat/completions") + "/models"))
                self._model = str(listed["data"][0]["id"])
        return self._model

    def _whole(self, path: str) -> str:
        return "\n".join(self._lines("GET", path, None))

    def _stream(self, method: str, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of a text/event-stream that are JSON objects, up to [DONE].

        Raises EndpointError where text came and then the connection was closed without a sign of its end.
        """
        text = ended = False
        for line in self._lines(method, path, json.dumps(body)):
            data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
            if data == "[DONE]":
                return
            if not data:
                continue
            try:
                chunk = json.loads(data)
            except (ValueError, RecursionError) as error:
                raise EndpointError(f"{self.name} sent what is not JSON: {data[:80]!r}") from error
            if isinstance(chunk, dict):
                if chunk.get("error"):
                    raise EndpointError(f"{self.name} failed: {str(chunk['error'])[:200]}")
                text, ended = text or bool(_text(chunk)), ended or _ends(chunk)
                yield chunk
        if text and not ended:
            raise EndpointError(f"{self.name} broke off in the middle of an answer")

    def _lines(self, method: str, path: str, body: str | None) -> Iterator[str]:
        if self._cancelled.is_set():
            raise Cancelled("stopped")
        make = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = make(self._host, self._port, timeout=TIMEOUT)
        try:
            connection.connect()
            self._socket = connection.sock
            headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
            connection.request(method, path, body and body.encode(), headers)
            response = connection.getresponse()
            if response.status != 200:
                why = " ".join(response.read(300).decode("utf-8", "replace").split())
                raise EndpointError(f"{self.name}{path} answered {response.status}: {why or response.reason}")
            while line := response.readline():
                yield line.decode("utf-8", "replace").rstrip("\r\n")
            if self._cancelled.is_set():
                raise Cancelled("stopped")
        except (OSError, http.client.HTTPException) as error:
            if self._cancelled.is_set():
                raise Cancelled("stopped") from error
            raise EndpointError(f"cannot measure {self.name}: {error or type(error).__name__}") from error
        finally:
            self._socket = None
            connection.close()


def _port(parts: Any, url: str) -> int | None:
    try:
        port: int | None = parts.port
    except ValueError as error:
        raise UsageError(f"--against {url}: {error}") from error
    return port


def _path(path: str) -> str:
    path = path.rstrip("/")
    if path.endswith(("/completion", "/chat/completions")):
        return path
    return f"{path or '/v1'}/chat/completions"


def _text(chunk: dict[str, Any]) -> str:
    """What a chunk adds, thinking included."""
    if "choices" not in chunk:
        content = chunk.get("content")
        return content if isinstance(content, str) else ""
    choices = chunk["choices"]
    delta = choices[0].get("delta") if isinstance(choices, list) and choices else None
    texts = [delta.get(name) for name in ("reasoning_content", "content")] if isinstance(delta, dict) else []
    return "".join(text for text in texts if isinstance(text, str))


def _ends(chunk: dict[str, Any]) -> bool:
    """Whether a chunk says that the answer is whole."""
    choices = chunk.get("choices")
    last = choices[0] if isinstance(choices, list) and choices else None
    return bool(chunk.get("stop") or (isinstance(last, dict) and last.get("finish_reason")))


def _usage(chunk: dict[str, Any]) -> dict[str, int]:
    """What the server counted: tokens, drafted and accepted ones."""
    timings, usage = chunk.get("timings") or {}, chunk.get("usage") or {}
    counted = {
        "n": usage.get("completion_tokens", timings.get("predicted_n", chunk.get("tokens_predicted"))),
        "draft_n": timings.get("draft_n"),
        "draft_n_accepted": timings.get("draft_n_accepted"),
    }
    return {name: value for name, value in counted.items() if isinstance(value, int)}
