"""The trace file of `--trace`."""

from __future__ import annotations

from typing import Any, TextIO

from edgespec.errors import EdgespecError
from edgespec.metrics import TraceWriter
from edgespec.types import Status, StepEvent


class TraceError(EdgespecError):
    """The trace file cannot be written."""


class Trace:
    """Writes rounds to a file, or nowhere. A full disk ends the trace, not the answer: `close` tells."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._error: OSError | None = None
        if path is not None:
            try:
                self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - kept open
            except OSError as error:
                raise self._failure(error) from error
            self._writer = TraceWriter(self._file)

    def header(self, **facts: Any) -> None:
        if self._file is not None and self._error is None:
            try:
                self._writer.header(**facts)
            except OSError as error:
                self._error = error

    def round(self, event: StepEvent, status: Status) -> None:
        if self._file is not None and self._error is None:
            try:
                self._writer.round(event, status)
            except OSError as error:
                self._error = error

    def close(self) -> None:
        """Raises TraceError if anything could not be written."""
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            file.close()
        except OSError as error:
            self._error = self._error or error
        if self._error is not None:
            raise self._failure(self._error)

    def _failure(self, error: OSError) -> TraceError:
        return TraceError(f"cannot write the trace {self._path}: {error.strerror or error}")
