"""From the options of `run` to the full-screen chat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click
from edgespec_tui import Choices, Start, run

import edgespec
from edgespec import Model, SamplingSettings
from edgespec.api import Progress
from edgespec.cli.answer import Job, limit_of, load_settings, native_options, sampling_of, stops_of
from edgespec.cli.keeping import reference
from edgespec.cli.terminal import write_error
from edgespec.errors import UsageError
from edgespec.history import location
from edgespec.settings import SettingsFile

_KEPT: dict[str, Callable[[Choices], Any]] = {
    "temp": lambda c: c.sampling.temperature,
    "top-k": lambda c: c.sampling.top_k,
    "top-p": lambda c: c.sampling.top_p,
    "min-p": lambda c: c.sampling.min_p,
    "repeat-penalty": lambda c: c.sampling.repeat_penalty,
    "seed": lambda c: c.seed,
    "predict": lambda c: -1 if c.max_tokens is None else c.max_tokens,
    "spec": lambda c: c.spec,
    "model-draft": lambda c: c.draft or "none",
    "ctx-size": lambda c: c.n_ctx,
    "system": lambda c: c.system or None,
}
"""Settings of a model by their names in the file; None is not kept."""


def chat(job: Job) -> int:
    """Open the app; returns the exit code."""
    options = job.options
    start = Start(
        loader=lambda model, choices, notify: _loader(options, model, choices, notify),
        reference=reference(job.model),
        choices=_choices(options),
        stored=_stored,
        save=_keeper(_choices(options)),
        conversation=options["conversation"],
        history=options["history"],
        first_run=not location().exists(),
    )
    return run(start)


def _choices(o: dict[str, Any]) -> Choices:
    return Choices(
        system=o["system"] or "",
        sampling=sampling_of(o),
        seed=o["seed"],
        max_tokens=limit_of(o),
        stop=stops_of(o),
        spec=o["spec"],
        draft=o["model_draft"] or "none",
        n_ctx=o["ctx_size"],
        theme=o["theme"],
    )


def _stored(model: str) -> Choices:
    """What `run` would take for this model from the settings file and the environment."""
    from edgespec.cli.run import run as command

    try:
        return _choices(command.make_context("run", ["-m", model]).params)
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error


def _loader(
    options: dict[str, Any], model: str | None, choices: Choices, notify: Callable[[str], None]
) -> Callable[[Progress], Model]:
    o = options | {"spec": choices.spec, "model_draft": choices.draft or "none", "ctx_size": choices.n_ctx}

    def load(progress: Progress) -> Model:
        return edgespec.load(model, load_settings(o, notify, progress), **native_options(o))

    return load


def _keeper(before: Choices) -> Callable[[str | None, Choices], None]:
    """Writes what was changed in the app, and nothing that came from flags and variables."""
    plain = replace(before, sampling=replace(before.sampling, seed=SamplingSettings().seed))

    def save(model: str | None, choices: Choices) -> None:
        file = SettingsFile(notify=write_error)
        changes = {name: get(choices) for name, get in _KEPT.items() if get(choices) != get(plain)}
        if changes:
            file.change(changes, reference(model))
        if choices.theme != plain.theme:
            file.change({"theme": choices.theme})

    return save
