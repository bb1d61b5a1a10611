"""Why a request failed, in a few words that hold no secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_KINDS = {
    "LocalProtocolError": "the request cannot be sent: HF_TOKEN holds characters that no token has",
    "UnicodeEncodeError": "the request cannot be sent: HF_TOKEN holds characters that no token has",
    "UnsupportedProtocol": "HF_ENDPOINT must begin with https:// or http://",
    "OfflineModeIsEnabled": "HF_HUB_OFFLINE forbids it",
    "JSONDecodeError": "the answer is not the hub's (a sign-in page of this network, or a wrong HF_ENDPOINT)",
}


def endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def cause(error: BaseException) -> str:
    """What went wrong with a request that got no answer, or half of one; never its headers."""
    kind = type(error).__name__
    if "Timeout" in kind:
        return "no answer in time"
    if kind in _KINDS:
        return _KINDS[kind]
    said = re.sub(r"^\[\w+ -?\d+\] ", "", next(iter(str(error).splitlines()), "")[:120]) or kind
    for secret in filter(None, (os.environ.get("HF_TOKEN", "").strip(),)):
        said = said.replace(secret, "...")
    return f"not reachable ({said})" if kind == "ConnectError" else said


def refusal(status: int, headers: Mapping[str, str], repo: str, what: str) -> str:
    """What an HTTP status other than success means. `what`: the file, or "" for the repository's list."""
    code, message = headers.get("x-error-code", ""), headers.get("x-error-message", "")
    if code == "GatedRepo":
        return (
            f"{repo} is gated (HTTP {status}): accept its terms at {endpoint()}/{repo}, "
            "then set HF_TOKEN to a token of that account"
        )
    if code == "EntryNotFound" or (status == 404 and what and not code):
        return f"file not found (HTTP {status}): {repo} has no {what}"
    if code == "RevisionNotFound":
        return f"{repo} has no such revision (HTTP {status})"
    if status == 401 and "invalid" in message.lower() and "credentials" in message.lower():
        return f"HF_TOKEN is not accepted (HTTP {status}): set a valid one, or none"
    if code == "RepoNotFound" or status in (401, 404):
        return f"there is no {repo}, or it is private (HTTP {status}): check the name, or set HF_TOKEN"
    if status == 403:
        return f"access to {repo} is refused (HTTP {status}): the token in HF_TOKEN may lack the right"
    if status == 429:
        seconds = headers.get("retry-after", "")
        when = f"in {seconds} s" if seconds.isdecimal() else "later"
        return f"too many requests (HTTP {status}): try again {when}"
    return f"the hub has a problem (HTTP {status}): try again later" if status >= 500 else f"HTTP {status}"
