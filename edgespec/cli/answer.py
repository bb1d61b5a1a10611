"""From parsed options to an answer: load, answer once or chat, close."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import edgespec
from edgespec import Model, SamplingSettings, Settings, StepEvent
from edgespec.api import Progress
from edgespec.cli import report
from edgespec.cli.console import Console
from edgespec.cli.failure import OutputError, explain
from edgespec.cli.keeping import KeptChat, reference
from edgespec.cli.options import DEFAULT_TOKENS
from edgespec.cli.printers import JsonPrinter, Printer, TextPrinter
from edgespec.cli.references import names_draft
from edgespec.cli.trace import Trace
from edgespec.cli.worker import Worker
from edgespec.errors import EdgespecError, UsageError
from edgespec.history import Conversation

LOAD_PATIENCE = 0.45
ANSWER_PATIENCE = 2.0
"""Seconds that interrupted work may take to end by itself."""
_MEASURING = "measuring this model on this device, once"


@dataclass(frozen=True, slots=True)
class Job:
    """`prompt` None is a chat; `options` are those of the command."""

    model: str | None
    prompt: str | None
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Desk:
    """What an answer is worked on with."""

    worker: Worker
    console: Console
    trace: Trace

    def stream(
        self,
        model: Model,
        start: Callable[[], Generator[StepEvent, None, None]],
        printer: Printer,
        seed: int,
        patience: float | None,
    ) -> None:
        """Print one answer; a signal cancels it. The worker's `signal` tells whether one came."""

        def job() -> None:
            with contextlib.closing(start()) as events:
                for event in events:
                    self.console.done()
                    printer.event(event)
                    self.trace.round(event, model.status)
            printer.end(report.summary(model, seed))

        try:
            self.worker.run(job, model.cancel, patience=patience)
        finally:
            self.console.done()

    def calibrate(self, model: Model) -> None:
        """Measure a little of a model that is new to this device, after its answer. A signal ends it."""

        def job() -> None:
            model.calibrate(model.pause, lambda share: self.console.step(_MEASURING, share))

        try:
            self.worker.run(job, model.cancel, patience=LOAD_PATIENCE)
        finally:
            self.console.done()

    @contextlib.contextmanager
    def meanwhile(self, model: Model, warm: Callable[[], object] | None) -> Iterator[None]:
        """While the body runs: `warm` the cache, and measure a model that is new to this device."""

        def job() -> None:
            try:
                if warm is not None:
                    warm()
                model.calibrate()
            except EdgespecError as error:
                self.console.say(f"edgespec: {error}")

        idle = model.calibrated and warm is None
        with contextlib.nullcontext() if idle else self.worker.beside(job, model.cancel):
            yield


def answer(job: Job) -> int:
    """Do the job and return the exit code."""
    printer: TextPrinter | JsonPrinter = JsonPrinter() if job.options["as_json"] else TextPrinter()
    try:
        return _answer(job, printer)
    except OutputError:
        raise
    except Exception as error:
        if isinstance(printer, JsonPrinter):
            printer.error(explain(error)[0])
        raise


def _answer(job: Job, printer: TextPrinter | JsonPrinter) -> int:
    sampling = sampling_of(job.options)
    trace = Trace(job.options["trace"])
    console = Console(sys.stderr)
    if job.prompt is None and job.options["conversation"] and isinstance(printer, TextPrinter):
        printer.past(job.options["conversation"])
    with contextlib.closing(trace), Worker(console.draw) as worker:
        worker.goodbyes.append(console.done)
        try:
            model = worker.run(lambda: _load(job, console, worker), patience=LOAD_PATIENCE)
        except EdgespecError:
            if worker.signal is None:
                raise
            return worker.exit_code
        finally:
            console.done()
        desk = Desk(worker, console, trace)
        try:
            if worker.signal is None:
                trace.header(**report.facts(model), settings=model.info.settings, seed=sampling.seed)
                model.on_prefill(lambda done, total: console.step("reading the prompt", done / total))
                return _work(job, model, sampling, printer, desk)
            return worker.exit_code
        finally:
            worker.run(model.close, patience=LOAD_PATIENCE)


def _work(
    job: Job, model: Model, sampling: SamplingSettings, printer: TextPrinter | JsonPrinter, desk: Desk
) -> int:
    chat = model.chat(job.options["system"], sampling)
    chat.stop, chat.max_tokens = stops_of(job.options), limit_of(job.options)
    conversation: Conversation | None = job.options["conversation"]
    kept = KeptChat(chat, conversation, on=job.options["history"])
    kept.recorder.describe(model=reference(job.model))
    desk.worker.goodbyes.append(kept.recorder.close)
    try:
        return _answered(job, kept, printer, desk)
    finally:
        kept.recorder.close()
        kept.tell(desk.console.say)


def _answered(job: Job, kept: KeptChat, printer: TextPrinter | JsonPrinter, desk: Desk) -> int:
    chat, model, sampling = kept.chat, kept.chat.model, kept.chat.sampling
    if job.prompt is None and isinstance(printer, TextPrinter):
        from edgespec.cli.chat import LineChat

        return LineChat(kept, printer, desk, stats=job.options["stats"]).loop()
    start = _starter(job, model, kept)
    desk.stream(model, start, printer, sampling.seed, ANSWER_PATIENCE)
    interrupted = desk.worker.exit_code
    if job.options["stats"]:
        desk.console.write(report.block(model, sampling.seed))
    if model.stats.finish == "length" and model.stats.tokens != chat.max_tokens:
        desk.console.say(f"the context of {model.n_ctx} tokens is full: a larger -c gives longer answers")
    elif model.stats.finish == "length" and model.stats.tokens == DEFAULT_TOKENS:
        desk.console.say(f"cut at {DEFAULT_TOKENS} tokens: -n -1 goes on to the end")
    if not interrupted:
        desk.calibrate(model)
    return interrupted


def _starter(job: Job, model: Model, kept: KeptChat) -> Callable[[], Generator[StepEvent, None, None]]:
    prompt, chat = job.prompt or "", kept.chat
    if job.options["raw"]:
        return lambda: model.complete(prompt, chat.sampling, max_tokens=chat.max_tokens, stop=chat.stop)
    return lambda: kept.send(prompt)


def _load(job: Job, console: Console, worker: Worker) -> Model:
    o = job.options

    def progress(label: str, share: float) -> None:
        worker.check()
        console.step(label, share)

    if names_draft(o["model_draft"]) and o["spec"] != "auto" and "draft" not in o["spec"]:
        console.say(f"the draft model is not used with --spec {o['spec']}")
    return edgespec.load(job.model, load_settings(o, console.say, progress), **native_options(o))


def load_settings(o: dict[str, Any], notify: Callable[[str], None], progress: Progress) -> Settings:
    """What the options say about loading, but for the backend's own."""
    return Settings(
        backend=o["backend"],
        draft=o["model_draft"],
        draft_backend=o["draft_backend"],
        cascade=o["cascade"],
        spec=o["spec"],
        draft_max=o["draft_max"],
        verify=o["verify"],
        numerics=o["numerics"],
        calibrate="idle",
        memory=memory_of(o),
        notify=notify,
        progress=progress,
    )


def memory_of(o: dict[str, Any]) -> Literal["off", "read", "kept"]:
    """Answers are remembered where the conversation is kept, unless it is said."""
    keep = o["memory"] if o["memory"] is not None else o["history"]
    return "off" if o["memory"] is False else "kept" if keep else "read"


def native_options(o: dict[str, Any]) -> dict[str, Any]:
    """Options of the backend; what was not asked for is left to it."""
    modes = {"mlock": o["mlock"], "none": o["no_mmap"], o["load_mode"]: o["load_mode"] != "auto"}
    asked = [mode for mode, on in modes.items() if on]
    if len(asked) > 1:
        raise UsageError(f"the load mode is given twice: {' and '.join(asked)}")
    chosen = {
        "n_ctx": o["ctx_size"] or None,
        "n_batch": o["batch_size"],
        "n_ubatch": o["ubatch_size"],
        "n_threads": _count(o["threads"]),
        "n_threads_batch": _count(o["threads_batch"]),
        "type_k": o["cache_type_k"],
        "type_v": o["cache_type_v"],
        "flash_attn": {"on": True, "off": False, "auto": None}[o["flash_attn"]],
        "load_mode": asked[0] if asked else "auto",
        "n_gpu_layers": o["gpu_layers"],
    }
    return {name: value for name, value in chosen.items() if value is not None}


def sampling_of(o: dict[str, Any]) -> SamplingSettings:
    """How tokens are drawn; without a seed a random one."""
    return SamplingSettings(
        temperature=o["temp"],
        top_k=o["top_k"],
        top_p=o["top_p"],
        min_p=o["min_p"],
        repeat_penalty=o["repeat_penalty"],
        frequency_penalty=o["frequency_penalty"],
        presence_penalty=o["presence_penalty"],
        penalty_last_n=o["repeat_last_n"],
        logit_bias=dict(o["logit_bias"]),
        seed=o["seed"] if o["seed"] >= 0 else secrets.randbits(32),
    )


def stops_of(o: dict[str, Any]) -> tuple[str, ...]:
    """Stop texts with their escapes resolved."""
    return tuple(stop.replace("\\n", "\n").replace("\\t", "\t") for stop in o["stop"])


def limit_of(o: dict[str, Any]) -> int | None:
    """Most tokens of an answer, None for no limit."""
    return o["predict"] if o["predict"] >= 0 else None


def _count(n: int) -> int | None:
    return n if n > 0 else None
