"""`edgespec run`: answer one prompt, or chat."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.options import (
    history_options,
    model_options,
    output_options,
    prompt_options,
    sampling_options,
    speculation_options,
)
from edgespec.cli.prompt import gather
from edgespec.cli.references import ModelReference, chosen
from edgespec.cli.stored import StoredCommand
from edgespec.cli.terminal import is_terminal, no_screen, write_error

if TYPE_CHECKING:
    from edgespec.cli.answer import Job


@click.command(
    "run",
    cls=StoredCommand,
    context_settings={
        "auto_envvar_prefix": "EDGESPEC",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
    epilog="Every option can also be set by a variable, EDGESPEC_CTX_SIZE is --ctx-size, or be kept:"
    " edgespec config --help.",
)
@click.argument("reference", metavar="[MODEL]", required=False, type=ModelReference())
@prompt_options
@model_options
@sampling_options
@speculation_options
@history_options
@output_options
def run(reference: str | None, **options: Any) -> None:
    """Answer a prompt, or chat when there is none.

    MODEL is a GGUF file, a name that edgespec ls or edgespec search shows, or a Hugging Face repository such
    as org/repo:Q4_K_M. Without it a small default model is fetched once.
    """
    model = chosen(reference, options)
    if any(not stop for stop in options["stop"]):
        raise click.UsageError("a stop text is empty")
    if options["raw"] and options["conversation"]:
        raise click.UsageError("--raw uses no chat template, so it cannot go on with a conversation")
    if options["raw"] and options["system"] and not _stored("system"):
        raise click.UsageError("--raw uses no chat template, so it takes no system message")
    prompt = gather(options["prompt"], options["file"])
    if prompt is None and not is_terminal(sys.stdout):
        raise click.UsageError("no prompt: give one with -p TEXT, -f FILE or a pipe")
    if prompt is None and (options["raw"] or options["as_json"]):
        raise click.UsageError("--raw and --json need a prompt: -p TEXT, -f FILE or a pipe")
    if prompt is not None and options["conversation"] is None and not _given("history"):
        options["history"] = False
    from edgespec.cli.answer import Job, answer

    job = Job(model, prompt, options)
    code = _chat(job) if prompt is None else answer(job)
    if code:
        raise click.exceptions.Exit(code)


def _stored(name: str) -> bool:
    """Does the option come from the settings file?"""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.DEFAULT_MAP


def _chat(job: Job) -> int:
    """Full screen where there is one."""
    from edgespec.cli.answer import answer

    options = job.options
    why = no_screen() or ("--trace follows single answers" if options["trace"] else None)
    if why is None and not options["line"]:
        from edgespec.cli.fullscreen import chat

        return chat(job)
    if not options["line"]:
        write_error(f"the chat is in lines: {why}")
    return answer(job)


def _given(name: str) -> bool:
    """Was the option on the command line, not only in the environment?"""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE
