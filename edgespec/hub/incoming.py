"""A file on its way in: what has arrived outlives the process, and is hashed as it grows."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath

from edgespec.errors import DownloadError
from edgespec.hub.store import Asset, Store, writing

_CHUNK = 1 << 20


class Incoming:
    """The part of one file, to be used under the store's lock. `done`: bytes that are here and hashed."""

    def __init__(self, store: Store, asset: Asset) -> None:
        self.asset, self.done = asset, 0
        self._store, self._path = store, store.part(asset)
        self._hash = hashlib.sha256()
        with writing(store.root):
            self._drop_stale()
            self._file = self._path.open("r+b" if self._path.exists() else "w+b", buffering=0)

    def _drop_stale(self) -> None:
        """Parts of another content under the same name."""
        name = re.escape(PurePosixPath(self.asset.place).name)
        for path in self._path.parent.iterdir():
            if path != self._path and re.fullmatch(rf"\.{name}\.([0-9a-f]{{16}}\.)?part", path.name):
                path.unlink(missing_ok=True)

    def resume(self, checking: Callable[[int], None]) -> None:
        """Take what an earlier run left. `checking(done)` is called while it is read."""
        while chunk := self._read():
            self._hash.update(chunk)
            self.done += len(chunk)
            checking(self.done)
        if self.done > self.asset.size:
            self.reset()

    def _read(self) -> bytes:
        with writing(self._store.root):
            return self._file.read(_CHUNK)

    def reset(self) -> None:
        """Forget what has arrived."""
        with writing(self._store.root):
            self._file.seek(0)
            self._file.truncate()
        self._hash = hashlib.sha256()
        self.done = 0

    def write(self, chunk: bytes) -> None:
        """Raises DownloadError as soon as there are more bytes than there should be."""
        if self.done + len(chunk) > self.asset.size:
            self.reset()
            raise DownloadError(f"sent more than the {self.asset.size:,} bytes of the model")
        try:
            with writing(self._store.root):
                left = memoryview(chunk)
                while left:
                    left = left[self._file.write(left) :]
        except BaseException:
            with suppress(OSError):
                self._file.truncate(self.done)
            raise
        self._hash.update(chunk)
        self.done += len(chunk)

    def verify(self) -> None:
        """Bring the whole file to the disk. Raises DownloadError if it is not the right one, and drops it."""
        if self.done != self.asset.size:
            raise DownloadError(f"sent {self.done:,} of {self.asset.size:,} bytes")
        if self._hash.hexdigest() != self.asset.sha256:
            self.reset()
            raise DownloadError("sent a file whose sha256 is not the model's")
        with writing(self._store.root):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
            if self._path.stat().st_size == 0:
                self._path.unlink()


@contextmanager
def incoming(store: Store, asset: Asset, checking: Callable[[int], None]) -> Iterator[Incoming]:
    """The part of the file, with what an earlier run left in it; it stays for the next run."""
    part = Incoming(store, asset)
    try:
        part.resume(checking)
        yield part
    finally:
        part.close()
