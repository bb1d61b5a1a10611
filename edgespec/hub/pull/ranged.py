"""The bytes of one file, from where the last run ended to the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from edgespec.errors import DownloadError
from edgespec.hub.catalogue import HuggingFaceSource
from edgespec.hub.incoming import Incoming
from edgespec.hub.pull.causes import cause, refusal
from edgespec.hub.pull.hugging_face import first_answer, request

_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds before a broken transfer goes on; new bytes start them again


class _BrokenError(DownloadError):
    """The transfer ended early; what has arrived is good."""


def transfer(
    source: HuggingFaceSource, incoming: Incoming, moved: Callable[[int], None], patience: float
) -> None:
    """Fill `incoming` from the hub and verify it. `moved(done)` is called often and may raise to stop.

    A transfer that breaks goes on by itself while bytes still come. Raises DownloadError; the bytes stay.
    """
    begun = furthest = incoming.done
    failures = 0
    while incoming.done < incoming.asset.size:
        try:
            _receive(source, incoming, moved, patience)
        except _BrokenError:
            failures = 0 if incoming.done > furthest else failures + 1
            furthest = max(furthest, incoming.done)
            if furthest == begun or failures == len(_PAUSES):
                raise
            _pause(_PAUSES[failures], lambda: moved(incoming.done))
    incoming.verify()


def _receive(
    source: HuggingFaceSource, incoming: Incoming, moved: Callable[[int], None], patience: float
) -> None:
    start = incoming.done
    try:
        response = first_answer(lambda: request(source, start), patience, source.repo)
    except DownloadError as error:
        raise _BrokenError(str(error)) from None
    try:
        _check(response, source, incoming)
        moved(incoming.done)
        for chunk in _chunks(response):
            incoming.write(chunk)
            moved(incoming.done)
    finally:
        response.close()
    if incoming.done < incoming.asset.size:
        raise _BrokenError(f"the connection was closed at {incoming.done:,} of {incoming.asset.size:,} bytes")


def _check(response: Any, source: HuggingFaceSource, incoming: Incoming) -> None:
    """Is it the rest of the right file? A server that sends all of it again is taken at its word."""
    status, headers = int(response.status_code), response.headers
    if status >= 500 or status == 429:
        raise _BrokenError(refusal(status, headers, source.repo, source.file))
    if status not in (200, 206):
        raise DownloadError(refusal(status, headers, source.repo, source.file))
    for earlier in (*response.history, response):
        _check_linked(earlier.headers, incoming)
    if status == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("content-range", ""))
        if not match or int(match[1]) != incoming.done:
            raise DownloadError("sent another range than was asked for")
        _check_size(match[2], incoming)
        return
    _check_size(headers.get("content-length", ""), incoming)
    if incoming.done:
        incoming.reset()


def _check_linked(headers: Mapping[str, str], incoming: Incoming) -> None:
    """What the hub says of the file before it redirects to the bytes."""
    _check_size(headers.get("x-linked-size", ""), incoming)
    sha256 = headers.get("x-linked-etag", "").strip('"')
    if re.fullmatch(r"[0-9a-f]{64}", sha256) and sha256 != incoming.asset.sha256:
        raise DownloadError("has another file under that name now: its sha256 is not the model's")


def _check_size(said: str, incoming: Incoming) -> None:
    if said.isdecimal() and int(said) != incoming.asset.size:
        raise DownloadError(f"offers {int(said):,} bytes, the model has {incoming.asset.size:,}")


def _chunks(response: Any) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()  # as they come: what is collected first would be lost
    except Exception as error:
        raise _BrokenError(cause(error)) from None


def _pause(seconds: float, tick: Callable[[], None]) -> None:
    """Wait, and notice a wish to stop."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        tick()
        time.sleep(min(0.1, left))
