"""Where models live on this machine: a file under its final name is whole and was checked."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from edgespec.errors import DownloadError
from edgespec.hub.catalogue import ModelSource
from edgespec.hub.locking import is_open, try_lock

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
class Asset:
    """One file as it must arrive. `place`: its path inside the store, with slashes; `size`: bytes.

    `sources`: in the order in which they are tried.
    """

    place: str
    size: int
    sha256: str
    sources: tuple[ModelSource, ...]


@dataclass(frozen=True, slots=True)
class Store:
    root: Path

    def path(self, asset: Asset) -> Path:
        return self.root / asset.place

    def part(self, asset: Asset) -> Path:
        """Where the bytes wait for the rest; another content of the same name waits elsewhere."""
        path = self.path(asset)
        return path.with_name(f".{path.name}.{asset.sha256[:16]}.part")

    def find(self, asset: Asset) -> Path | None:
        """The file if it is here in full. The sum was checked before it got its name."""
        path = self.path(asset)
        try:
            return path if path.is_file() and path.stat().st_size == asset.size else None
        except OSError:
            return None

    def arrived(self, assets: Sequence[Asset]) -> int:
        """Bytes of these files that some process has written so far."""
        return sum(_size(self.part(asset)) or _size(self.path(asset)) for asset in assets)

    def require(self, needed: int, name: str) -> None:
        """Raises StoreError unless there is room for so many bytes more."""
        with writing(self.root):
            free = shutil.disk_usage(self.root).free
        if free < needed:
            raise StoreError(
                f"{name} needs {amount(needed)} in {self.root}, which has {amount(free)} free: "
                "make room, or set EDGESPEC_MODELS to another folder"
            )

    @contextmanager
    def lock(self, asset: Asset, waiting: Callable[[], None]) -> Iterator[None]:
        """Keep other processes from fetching the same file; the lock dies with its process.

        `waiting` is called about five times a second while another process holds it.
        """
        path = self.path(asset)
        path = path.with_name(f".{path.name}.lock")
        while True:
            with writing(self.root):
                path.parent.mkdir(parents=True, exist_ok=True)
                handle = path.open("ab")
            with handle:
                with writing(self.root):
                    held = try_lock(handle.fileno()) and is_open(path, handle.fileno())
                if held:
                    yield
                    return
            waiting()
            time.sleep(0.2)

    @contextmanager
    def scratch(self, asset: Asset) -> Iterator[Path]:
        """An empty folder for temporary files on the store's own file system, to be used under the lock."""
        path = self.path(asset)
        folder = path.with_name(f".{path.name}.tmp")
        shutil.rmtree(folder, ignore_errors=True)
        with writing(self.root):
            folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def commit(self, assets: Sequence[Asset]) -> Path:
        """Give checked parts their names, the first file last: where it is, the others are too."""
        for asset in reversed(assets):
            if not self.find(asset):
                with writing(self.root):
                    self.part(asset).replace(self.path(asset))
        return self.path(assets[0])


def amount(n: int) -> str:
    """Bytes as people write them."""
    if n >= 1e9:
        return f"{n / 1e9:,.2f} GB"
    return f"{n / 1e6:.0f} MB" if n >= 1e6 else f"{n / 1e3:.0f} kB"


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


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
