"""The work of `edgespec bench`: load once, measure or record, report."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import edgespec
from edgespec import Model, SamplingSettings, Settings, proposer_names
from edgespec.bench import criterion, report, saved
from edgespec.bench import prompts as sets
from edgespec.bench.answers import PLAIN, Answer, First
from edgespec.bench.endpoint import Endpoint
from edgespec.bench.local import LocalContender
from edgespec.bench.machine import EnergyMeter
from edgespec.bench.record import extended, record
from edgespec.bench.rows import Row, rows
from edgespec.bench.runner import Contender, Plan, measure
from edgespec.bench.traces import read_traces
from edgespec.cli.answer import ANSWER_PATIENCE, LOAD_PATIENCE, native_options
from edgespec.cli.console import Console
from edgespec.cli.references import names_draft
from edgespec.cli.stdout import Stdout
from edgespec.cli.worker import Worker
from edgespec.errors import Cancelled, EdgespecError, UsageError


def compare(a: str, b: str, *, anyway: bool) -> int:
    """Print what changed between two saved results."""
    Stdout().write(saved.compare(saved.read(Path(a)), saved.read(Path(b)), anyway=anyway))
    return 0


class RecordError(EdgespecError):
    """The traces cannot be written."""


@dataclass(slots=True)
class Measured:
    """What there is so far."""

    answers: list[Answer] = field(default_factory=list)
    firsts: list[First] = field(default_factory=list)

    def add(self, row: Answer | First) -> int:
        """Returns how many measurements there are."""
        if isinstance(row, Answer):
            self.answers.append(row)
        else:
            self.firsts.append(row)
        return len(self.answers) + len(self.firsts)


class Bench:
    """One run of the command. What cannot be meant is told before anything is loaded."""

    def __init__(self, model: str | None, options: dict[str, Any]) -> None:
        self._reference = model
        self._o = options
        self._configurations = _configurations(options["spec"], options["model_draft"])
        self._criterion = criterion.parse(options["accept_if"]) if options["accept_if"] else None
        file = options["prompts"]
        self._prompts = sets.read(Path(file)) if file else sets.suite()
        self._prompts_name = Path(file).name if file else "the packaged suite"
        self._traces = _traces(options["extend"], options["record"]) if options["extend"] else None
        self._plan = Plan(
            options["predict"], options["repetitions"], SamplingSettings(temperature=options["temp"])
        )
        self._against = options["against"]
        if self._against:
            Endpoint(self._against, lambda _: "")
        self._console = Console(sys.stderr)

    def run(self) -> int:
        """Returns the exit code."""
        with Worker(self._console.draw) as worker:
            worker.goodbyes.append(self._console.done)
            try:
                model = worker.run(lambda: self._load(worker), patience=LOAD_PATIENCE)
            except EdgespecError:
                if worker.signal is None:
                    raise
                return worker.exit_code
            finally:
                self._console.done()
            try:
                if worker.signal is not None:
                    return worker.exit_code
                return self._record(model, worker) if self._o["record"] else self._measure(model, worker)
            finally:
                worker.run(model.close, patience=LOAD_PATIENCE)

    def _load(self, worker: Worker) -> Model:
        def progress(label: str, share: float) -> None:
            worker.check()
            self._console.step(label, share)

        settings = Settings(
            backend=self._o["backend"],
            draft=(draft := self._draft()),
            draft_backend=self._o["draft_backend"],
            cascade=self._o["cascade"] if draft and not self._o["record"] else None,
            draft_max=self._o["draft_max"],
            numerics=self._o["numerics"],
            calibrate="idle" if self._o["record"] else "first",
            memory="run" if self._uses("memory") else "off",
            notify=self._console.say,
            progress=progress,
        )
        return edgespec.load(self._reference, settings, **native_options(self._o))

    def _draft(self) -> str | None:
        """The draft model, where one is of any use; traces have one only if it was named."""
        draft: str | None = self._o["model_draft"]
        used = self._uses("auto") or self._uses("draft")
        recorded = self._o["record"] and names_draft(draft)
        return draft if recorded or (not self._o["record"] and used) else None

    def _uses(self, part: str) -> bool:
        return any(part in name.split("+") for name, _ in self._configurations)

    def _contenders(self, model: Model) -> list[Contender]:
        meter = EnergyMeter()
        chosen = [(PLAIN, "off"), *self._configurations]
        local = [LocalContender(name, model, model.speculation(spec), meter) for name, spec in chosen]
        if not self._against:
            return [*local]
        return [*local, Endpoint(self._against, lambda messages: model.template.render(messages).text)]

    def _measure(self, model: Model, worker: Worker) -> int:
        contenders = self._contenders(model)
        planned = self._plan.steps(self._prompts, len(contenders))
        measured = Measured()

        def job() -> None:
            for row in measure(contenders, self._prompts, self._plan, self._console.say):
                done = measured.add(row)
                worker.check()
                where = row.place if isinstance(row, Answer) else row
                self._console.step(f"measuring {where.category}", done / planned)

        def stop() -> None:
            for contender in contenders:
                contender.cancel()

        self._console.step("measuring", 0.0)
        try:
            self._attempt(job, stop, worker)
        except EdgespecError:
            if measured.answers:
                self._report(model, measured, planned)
            raise
        code = worker.exit_code
        if not measured.answers:
            if code == 0:
                raise UsageError("nothing was measured: no prompt fits into the context (-c)")
            return code
        table = self._report(model, measured, planned)
        return code or self._verdict(table)

    def _attempt(self, job: Callable[[], None], stop: Callable[[], None], worker: Worker) -> None:
        """Do the job; one that was interrupted has simply ended."""
        try:
            worker.run(job, stop, patience=ANSWER_PATIENCE)
        except Cancelled:
            if worker.signal is None:
                raise
        finally:
            self._console.done()

    def _report(self, model: Model, measured: Measured, planned: int) -> list[Row]:
        table = rows(measured.answers, measured.firsts)
        facts = saved.facts(
            model,
            [name for name, _ in self._configurations],
            (self._prompts_name, self._prompts),
            self._plan,
            _command(),
            (measured.answers, measured.firsts),
            planned,
        )
        Stdout().write(report.written(self._o["output"], facts, table))
        if self._o["save"] is not None:
            path = Path(self._o["save"]) if self._o["save"] else saved.default_path(facts)
            saved.save(path, saved.Results(facts, tuple(measured.answers), tuple(measured.firsts)))
            self._console.say(f"saved in {path}")
        return table

    def _verdict(self, table: Sequence[Row]) -> int:
        """Of the first configuration over all prompts."""
        if self._criterion is None:
            return 0
        name = self._configurations[0][0]
        metrics = [row for row in table if row.configuration == name][-1].metrics()
        adopt = self._criterion(metrics)
        line = f"{'adopt' if adopt else 'do not adopt'}: {name}, {', '.join(self._criterion.told(metrics))}"
        line += f" (asked: {self._o['accept_if']})"
        if self._o["output"] == "md":
            Stdout().write(f"\n{line}\n")
        else:
            self._console.say(line)
        return 0 if adopt else 1

    def _record(self, model: Model, worker: Worker) -> int:
        old, path = self._traces, self._o["record"]
        total = sum(len(prompt.turns) for prompt in self._prompts) if old is None else len(old)
        done = 0

        def job() -> None:
            nonlocal done
            answers = record(model, self._prompts, self._plan.n, notify=self._console.say)
            found = answers if old is None else (extended(model, trace) for trace in old)
            first = list(islice(found, 1))  # before there is a file: what cannot be recorded empties none
            with _opened(path) as write:
                for trace in chain(first, found):
                    write(json.dumps(trace) + "\n")
                    done += 1
                    worker.check()
                    self._console.step(f"recording {trace['category']}", done / total)

        self._console.step("recording", 0.0)
        self._attempt(job, model.cancel, worker)
        self._console.say(f"recorded {done} of {total} answers in {path}")
        return worker.exit_code


def _traces(old: str, new: str) -> list[dict[str, Any]]:
    """The traces that are extended. Raises UsageError where they would be written over."""
    if Path(old).resolve() == Path(new).resolve():
        raise UsageError("--record and --extend name the same file: give --record another one")
    return read_traces(Path(old))


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Callable[[str], object]]:
    """Lines go out as they are written. Raises RecordError."""
    try:
        with Path(path).open("w", encoding="utf-8", buffering=1) as file:
            yield file.write
    except OSError as error:
        raise RecordError(f"cannot write the traces {path}: {error.strerror or error}") from error


def _configurations(spec: str | None, draft: str | None) -> list[tuple[str, str]]:
    """(name, spec as `Settings` has it) without plain, which is always measured."""
    own = ",draft" if names_draft(draft) else ""
    wanted = ("auto" + own if spec is None else spec).lower()
    known = proposer_names()
    every = ["auto", *(name for name in known if name not in ("draft", "memory"))]
    names = [name.strip() for name in (",".join(every) + own if wanted == "all" else wanted).split(",")]
    chosen = [name for name in dict.fromkeys(names) if name not in ("", "off", PLAIN)]
    parts = {part for name in chosen for part in name.split("+")}
    if not chosen or parts - {"auto", *known} or any(name != "auto" and "auto" in name for name in chosen):
        takes = ", ".join(("all", "auto", *known))
        raise UsageError(f"--spec takes {takes}, joined by commas, or by + into one; not {spec!r}")
    if "draft" in parts and (draft or "none").lower() == "none":
        raise UsageError("--spec draft needs a draft model: give one with --draft MODEL (-md)")
    return [(name, name.replace("+", ",")) for name in chosen]


def _command() -> str:
    return shlex.join(["edgespec", *sys.argv[1:]])
