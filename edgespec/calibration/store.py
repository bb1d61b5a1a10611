"""Measurements kept between runs: one small JSON file a key, in the user's cache directory."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SAMPLE = 1 << 20
VERSION = 1


def directory() -> Path:
    """`EDGESPEC_CACHE`, or the user's cache directory."""
    import platformdirs

    return Path(os.environ.get("EDGESPEC_CACHE") or platformdirs.user_cache_dir("edgespec")) / "measured"


def fingerprint(path: Path) -> str:
    """A model file by its size, its first and its last megabyte; a folder by the files in it."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file())
        parts = [f"{file.name} {fingerprint(file)}" for file in files]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_SAMPLE))
        file.seek(max(0, size - _SAMPLE))
        digest.update(file.read(_SAMPLE))
    return digest.hexdigest()[:32]


class Measurements:
    """What was measured for one model file under one set of settings.

    A file that is missing, damaged or made for something else reads as empty; one that cannot be
    written is given up in silence, since everything can be measured again.
    """

    def __init__(self, model: str, settings: Mapping[str, Any], where: Path | None = None) -> None:
        self.key = {"version": VERSION, "model": model, "settings": dict(sorted(settings.items()))}
        name = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:24]
        self.path = (where or directory()) / f"{name}.json"
        self._values = self._read()

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text("utf-8"))
            values = content["values"]
            return values if content["key"] == self.key and isinstance(values, dict) else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def get(self, name: str) -> Any:
        return self._values.get(name)

    def put(self, name: str, value: Any) -> bool:
        """Keep a value, in this run at least. Returns whether it could be written."""
        self._values = {**self._read(), **self._values, name: value}
        try:
            self._write()
        except OSError:
            return False
        return True

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"key": self.key, "values": self._values}, indent=1)
        handle, name = tempfile.mkstemp(dir=self.path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
