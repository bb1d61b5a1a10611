"""Where models live on this machine: a file under its final name is whole and was checked."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from edgespec.errors import DownloadError
from edgespec.hub.catalogue import Card

Progress = Callable[[int, int, str], None]
"""`progress(done_bytes, total_bytes, label)`; whatever it raises stops the download cleanly."""

Notify = Callable[[str], None]
"""`notify(line)`: one line that a person may want to know."""


class StoreError(DownloadError):
    """The store itself refuses: read-only or full. Another source would not help."""


def root() -> Path:
    """EDGESPEC_MODELS, or `models` in the user's data folder."""
    if chosen := os.environ.get("EDGESPEC_MODELS"):
        return Path(os.path.expanduser(chosen))  # noqa: PTH111 - an unknown user is no reason to fail here
    return platformdirs.user_data_path("edgespec", appauthor=False) / "models"


@dataclass(frozen=True, slots=True)
class Store:
    root: Path

    def path(self, card: Card) -> Path:
        return self.root / card.file

    def find(self, card: Card) -> Path | None:
        """The model's file if it is here in full. The sum was checked before it got its name."""
        path = self.path(card)
        try:
            return path if path.is_file() and path.stat().st_size == card.size else None
        except OSError:
            return None

    def arrived(self, card: Card) -> int:
        """Bytes of the model that some process has written so far."""
        try:
            return self._part(card).stat().st_size
        except OSError:
            return 0

    @contextmanager
    def lock(self, card: Card, waiting: Callable[[], None]) -> Iterator[None]:
        """Keep other processes from fetching the same model; the lock dies with its process.

        `waiting` is called about five times a second while another process holds it.
        """
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            handle = (self.root / f".{card.file}.lock").open("ab")
        with handle:
            while True:
                with writing(self.root):
                    if _try_lock(handle.fileno()):
                        break
                waiting()
                time.sleep(0.2)
            yield

    def _part(self, card: Card) -> Path:
        return self.root / f".{card.file}.part"

    @contextmanager
    def incoming(self, card: Card) -> Iterator[Incoming]:
        """An empty file for the model's bytes, to be used under the lock; nothing but a commit stays."""
        scratch = self.root / f".{card.file}.tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        incoming = Incoming(card, self._part(card), scratch, self.path(card))
        try:
            yield incoming
        finally:
            incoming.close()


class Incoming:
    """The bytes of one model on their way in, hashed while they are written."""

    def __init__(self, card: Card, part: Path, scratch: Path, final: Path) -> None:
        self.card = card
        self._part, self._scratch, self._final = part, scratch, final
        self._hash = hashlib.sha256()
        self.done = 0
        with writing(part.parent):
            self._file = part.open("wb")

    def reset(self) -> None:
        """Forget what was written: another source begins."""
        with writing(self._part.parent):
            self._file.seek(0)
            self._file.truncate()
        self._hash = hashlib.sha256()
        self.done = 0

    def require(self, needed: int) -> None:
        """Raises StoreError unless the store has room for so many bytes."""
        free = shutil.disk_usage(self._part.parent).free
        if free < needed:
            raise StoreError(
                f"{self.card.name} needs {megabytes(needed)} in {self._part.parent}, which has "
                f"{megabytes(free)} free: make room, or set EDGESPEC_MODELS to another folder"
            )

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for temporary files on the store's own file system."""
        with writing(self._part.parent):
            self._scratch.mkdir(exist_ok=True)
        try:
            yield self._scratch
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def write(self, chunk: bytes) -> None:
        """Raises DownloadError as soon as there are more bytes than the card says."""
        if self.done + len(chunk) > self.card.size:
            raise DownloadError(f"sent more than the {self.card.size:,} bytes of the model")
        with writing(self._part.parent):
            self._file.write(chunk)
        self._hash.update(chunk)
        self.done += len(chunk)

    def verify(self) -> None:
        """Raises DownloadError unless size and sha256 are the card's."""
        if self.done != self.card.size:
            raise DownloadError(f"sent {self.done:,} of {self.card.size:,} bytes")
        if self._hash.hexdigest() != self.card.sha256:
            raise DownloadError("sent a file whose sha256 is not the model's")

    def commit(self) -> Path:
        """Give the file its name, on the disk before the name is."""
        self.verify()
        with writing(self._part.parent):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.replace(self._final)
        return self._final

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)


def megabytes(n: int) -> str:
    return f"{n / 1e6:,.0f} MB"


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the file system says into one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"the disk of {folder} is full: make room, or set EDGESPEC_MODELS to another folder"
            ) from None
        raise StoreError(
            f"cannot write to the model store {folder} ({error.strerror or error}): "
            "set EDGESPEC_MODELS to a folder that can be written"
        ) from None


def _try_lock(descriptor: int) -> bool:
    """True once the lock is held; OSError where the file system has no locks."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
