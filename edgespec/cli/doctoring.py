"""From the options of `doctor` to a report: sections as they become known, or one JSON object."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from typing import Any

from edgespec import Model, Settings
from edgespec.cli.answer import LOAD_PATIENCE, native_options
from edgespec.cli.console import Console
from edgespec.cli.picture import Paper, drawn
from edgespec.cli.stdout import Stdout
from edgespec.cli.terminal import has_colour, is_terminal
from edgespec.cli.worker import Worker
from edgespec.doctor import Section, Subject, examine
from edgespec.errors import EdgespecError

_WIDTH, _WIDEST = 80, 100
_HEALTHY = "Nothing is set badly."


class Visit:
    """One run of the command."""

    def __init__(self, reference: str | None, options: dict[str, Any]) -> None:
        self._console = Console(sys.stderr)
        self._out = Stdout()
        self._as_json = options["as_json"]
        self._model: Model | None = None
        self._worker = Worker(self._console.draw)
        settings = Settings(
            backend=options["backend"],
            draft=options["model_draft"],
            draft_backend=options["draft_backend"],
            cascade=options["cascade"],
            notify=self._console.say,
            progress=self._progress,
        )
        self._subject = Subject(
            reference,
            settings.having(**native_options(options)),
            self._started,
            measure=options["measure"],
        )

    def run(self) -> int:
        """Returns the exit code."""
        with self._worker as worker:
            worker.goodbyes.append(self._console.done)
            try:
                worker.run(self._report, self._stop, patience=LOAD_PATIENCE)
            except EdgespecError:
                if worker.signal is None:
                    raise
            finally:
                self._console.done()
            return worker.exit_code

    def _progress(self, label: str, share: float) -> None:
        self._worker.check()
        self._console.step(label, share)

    def _started(self, model: Model) -> None:
        self._model = model

    def _stop(self) -> None:
        if self._model is not None:
            self._model.cancel()

    def _report(self) -> None:
        sections: list[Section] = []
        try:
            for section in examine(self._subject):
                sections.append(section)
                if not self._as_json:
                    self._console.done()
                    self._out.write(drawn(section, self._paper()) + "\n")
        except Exception as error:
            if self._as_json and self._worker.signal is None:
                self._write_json(sections, str(error))
            raise
        if self._as_json:
            self._write_json(sections)
        elif not any(section.findings for section in sections):
            self._out.write(f"{_HEALTHY}\n")

    def _write_json(self, sections: list[Section], error: str | None = None) -> None:
        report = {"sections": [asdict(section) for section in sections]}
        self._out.write(json.dumps(report | ({"error": error} if error else {}), indent=1) + "\n")

    def _paper(self) -> Paper:
        stream = self._out.stream
        width = shutil.get_terminal_size().columns if is_terminal(stream) else _WIDTH
        return Paper(min(max(width, 20), _WIDEST), stream.encoding or "ascii", has_colour(stream))
