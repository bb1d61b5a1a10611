"""A converted model is a folder. It appears under its name when it is whole, or not at all."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, cast

from edgespec.errors import ConversionError, ModelFileError, UsageError
from edgespec.hub import cachedir
from edgespec.hub.locking import is_open, try_lock

Notify = Callable[[str], None]
Progress = Callable[[float], None]
"""The share that is done, from 0 to 1; whatever it raises cancels the conversion."""

FORMS = {"onnx": "edgespec.convert.onnx", "mlx": "edgespec.convert.mlx"}
_NEEDED = {"onnx": ("onnx", "gguf", "tokenizers"), "mlx": ("mlx", "gguf", "tokenizers")}
_VERSION = 2
"""Raised with every change that makes folders in the cache obsolete."""


class Writer(Protocol):
    """What the module of a form offers."""

    def write(self, source: Path, folder: Path, notify: Notify, progress: Progress) -> None:
        """Fill an empty folder. Raises ModelFileError, UnsupportedModelError or OSError."""
        ...


def convert(source: Path, form: str, folder: Path, *, notify: Notify, progress: Progress) -> Path:
    """Write a GGUF file in another form into a new folder. `form` is one of `FORMS`.

    Raises UsageError where the folder is there already, ConversionError, ModelFileError or
    UnsupportedModelError; then nothing is left.
    """
    writer = _writer(form)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{folder} is there already: name a new folder with -o")
    with _writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
        try:
            part.chmod(0o755)
            writer.write(source, part, notify, progress)
            if folder.exists():
                folder.rmdir()
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def prepared(source: Path, form: str) -> Path | None:
    """The folder in the cache that `prepare` made of this file before. Raises ModelFileError for a folder."""
    folder = _place(source, form)
    return folder if folder.is_dir() else None


def prepare(source: Path, form: str, *, notify: Notify, progress: Progress) -> Path:
    """As `convert`, once, into the user's cache folder; says so. Waits where another process does it."""
    folder = _place(source, form)
    if folder.is_dir():
        return folder
    with _locked(folder, lambda: notify(f"another process converts {source.name}; waiting for it")):
        if folder.is_dir():
            return folder
        for left in folder.parent.glob(f".{folder.name}.*.part"):
            shutil.rmtree(left, ignore_errors=True)
        notify(f"converting {source.name} for {form}, once, into {folder}")
        started = time.monotonic()
        try:
            convert(source, form, folder, notify=notify, progress=progress)
        except BaseException:
            with suppress(OSError):
                folder.parent.rmdir()
            raise
        size = sum(file.stat().st_size for file in folder.iterdir())
        notify(f"converted in {time.monotonic() - started:.0f} s, {size / 1e6:,.0f} MB")
        return folder


def _place(source: Path, form: str) -> Path:
    from edgespec.calibration.store import fingerprint

    if source.is_dir():
        raise ModelFileError(f"{source} is a folder: only GGUF files can be converted")
    key = f"{fingerprint(source)[:12]}-{form}-{_VERSION}"
    return cachedir.folder() / "converted" / key / source.stem


def _writer(form: str) -> Writer:
    if form not in FORMS:
        raise UsageError(f"unknown form {form!r}: one of {', '.join(FORMS)}")
    for module in _NEEDED[form]:
        if importlib.util.find_spec(module) is None:
            raise ConversionError(f"{module} is not installed: pip install 'edgespec[{form}]'")
    return cast(Writer, importlib.import_module(FORMS[form]))


@contextmanager
def _locked(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Keep other processes from making the same folder; `waiting` is called once if one does it now."""
    key = folder.parent
    path, told = key.with_name(f".{key.name}.lock"), False
    while True:
        with _writing(folder):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = path.open("ab")
        with handle:
            with _writing(folder):
                held = try_lock(handle.fileno()) and is_open(path, handle.fileno())
            if held:
                yield
                return
        if not told:
            waiting()
        told = True
        time.sleep(0.2)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn what the file system says into one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ConversionError(
                f"the disk of {folder.parent} is full: make room, or choose another folder"
            ) from None
        raise ConversionError(f"cannot write {folder} ({error.strerror or error})") from None
