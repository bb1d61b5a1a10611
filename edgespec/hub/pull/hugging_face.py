"""What huggingface_hub does for us: lists, metadata, tokens, proxies, and a request for bytes."""

from __future__ import annotations

import logging
import os
import queue
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from edgespec.errors import DownloadError
from edgespec.hub.catalogue import HuggingFaceSource
from edgespec.hub.pull.causes import cause, endpoint, refusal
from edgespec.hub.reference import visible
from edgespec.hub.store import Asset

_CONNECT, _READ = 4.0, 20.0  # seconds


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository as its list has it. `sha256` None: the hub gives none."""

    size: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a repository at one commit, by path."""

    commit: str
    files: dict[str, HubFile]

    def asset(self, repo: str, folder: str, path: str) -> Asset:
        """The file at `path` as it must arrive in `folder` of the store. Raises DownloadError."""
        found = self.files[path]
        if not all(map(_is_plain, path.split("/"))):
            raise DownloadError(f"{repo} has a file whose name cannot be used here: {visible(path)}")
        if found.sha256 is None or not re.fullmatch(r"[0-9a-f]{64}", found.sha256):
            raise DownloadError(f"the hub gives no sha256 for {path} of {repo}, so it cannot be checked")
        return Asset(
            f"{folder}/{path}", found.size, found.sha256, (HuggingFaceSource(repo, path, self.commit),)
        )


def _is_plain(name: str) -> bool:
    """Can a file or folder have this name everywhere, and does it stay where it is put?"""
    return bool(name.strip(". ")) and name.isprintable() and not set(name) & set('\\:*?"<>|')


def listing(repo: str, revision: str | None, patience: float) -> Listing:
    """Ask the hub what a repository holds. Raises DownloadError."""

    def ask() -> Any:
        from huggingface_hub import HfApi

        api = HfApi(endpoint=endpoint(), library_name="edgespec")
        return api.model_info(repo, revision=revision, files_metadata=True, timeout=_READ)

    info = first_answer(ask, patience, repo)
    files = {
        file.rfilename: HubFile(file.lfs.size, file.lfs.sha256) if file.lfs else HubFile(file.size or 0, None)
        for file in info.siblings or ()
    }
    return Listing(info.sha or revision or "main", files)


def request(source: HuggingFaceSource, start: int) -> Any:
    """The response to a GET for the file from byte `start` on, its body still to be read."""
    from huggingface_hub import constants, get_session, get_token, hf_hub_url

    url = hf_hub_url(source.repo, source.file, revision=source.revision, endpoint=endpoint())
    headers = {"user-agent": "edgespec", "accept-encoding": "identity"}
    if not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN and (token := get_token()):
        headers["authorization"] = f"Bearer {token}"
    if start:
        headers["range"] = f"bytes={start}-"
    session = get_session()
    asked = session.build_request("GET", url, headers=headers, timeout=(_CONNECT, _READ, _READ, _CONNECT))
    return session.send(asked, stream=True, follow_redirects=True)


def first_answer(ask: Callable[[], Any], patience: float, repo: str) -> Any:
    """What `ask` returns, or DownloadError after so many seconds.

    A thread, because looking up a name, and trying each of a host's addresses, have no limit of their own.
    """
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    given_up = threading.Event()

    def work() -> None:
        try:
            answer = ask()
        except Exception as error:
            answers.put(_failure(error, repo))
            return
        answers.put(answer)
        if given_up.is_set() and hasattr(answer, "close"):
            answer.close()

    with _quiet():
        threading.Thread(target=work, daemon=True).start()
        try:
            answer = answers.get(timeout=patience)
        except queue.Empty:
            given_up.set()
            raise DownloadError(f"no answer in {patience:g} s") from None
    if isinstance(answer, DownloadError):
        raise answer
    return answer


def _failure(error: Exception, repo: str) -> DownloadError:
    response = getattr(error, "response", None)
    if response is None:
        return DownloadError(cause(error))
    return DownloadError(refusal(response.status_code, response.headers, repo, ""))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep huggingface_hub's warnings off the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # or it makes a request of its own
        import huggingface_hub  # noqa: F401 - here, where its warnings are caught

        logger = logging.getLogger("huggingface_hub")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)
