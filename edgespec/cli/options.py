"""The options of `run`: names and meanings as in llama.cpp where it has them."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from edgespec.cli.references import ModelReference, proposers
from edgespec.cli.terminal import valid

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_TOKENS = 1024
BACKENDS = ("auto", "llamacpp", "ik", "mlx", "onnx")
AUTO = -1
"""llama.cpp's number for "choose for me"."""


class Number(click.FloatRange):
    """A finite number in a range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


def _bias(value: str) -> tuple[int, float]:
    """`15043+1`, `15043-0.5`, or `15043-inf` to forbid a token."""
    with contextlib.suppress(ValueError):
        if match := re.fullmatch(r"(\d+)([+-][0-9.]+|-inf)", value.strip()):
            return int(match[1]), float(match[2])
    raise click.BadParameter(f"{value!r} is not a token id with a bias, such as 15043+1 or 15043-inf")


class Option(click.Option):
    """An option that is listed under a heading."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        told = kwargs.get("is_flag", False) or kwargs.get("default") == AUTO
        super().__init__(*args, **{"show_default": not told, **kwargs})
        self.section = section

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Ranges are told by the errors."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


@contextlib.contextmanager
def named(ctx: click.Context) -> Iterator[None]:
    """Usage errors tell which command it was; those of click's parser do not."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


class Command(click.Command):
    """A command whose help lists options under headings."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with named(ctx):
            return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                name = param.section if isinstance(param, Option) else "Help"
                sections.setdefault(name, []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


Decorator = Callable[[F], F]


def _group(section: str, *options: tuple[Sequence[str], dict[str, Any]]) -> Decorator[Any]:
    def decorate(function: Any) -> Any:
        for names, settings in reversed(options):
            function = click.option(*names, cls=Option, section=section, **settings)(function)
        return function

    return decorate


def _o(*names: str, **settings: Any) -> tuple[Sequence[str], dict[str, Any]]:
    return names, settings


def _positive(name: str) -> dict[str, Any]:
    return {"type": click.IntRange(min=1), "metavar": name}


_COUNT = {"type": click.IntRange(min=AUTO), "metavar": "N"}

prompt_options = _group(
    "Prompt",
    _o("-p", "--prompt", type=valid, metavar="TEXT", help="Answer this text, then exit."),
    _o(
        "-f",
        "--file",
        type=click.Path(),
        metavar="FILE",
        help="Take the prompt from a file, - for standard input. With -p the file follows the text.",
    ),
    _o("-sys", "--sys", "--system", "system", type=valid, metavar="TEXT", help="The system message."),
    _o(
        "--raw",
        "--no-chat",
        "raw",
        is_flag=True,
        help="Continue the text as it is, without the chat template.",
    ),
)

model_options = _group(
    "Model",
    _o("-m", "--model", type=ModelReference(), metavar="MODEL", help="The same as MODEL."),
    _o(
        "-hf",
        "--hf-repo",
        "hf_repo",
        metavar="ORG/REPO[:QUANT]",
        help="A model from Hugging Face, Q4_K_M or the nearest without QUANT.",
    ),
    _o(
        "-md",
        "--model-draft",
        "--draft",
        "model_draft",
        type=ModelReference(words=("auto", "none")),
        default="auto",
        metavar="MODEL",
        help="A small model that drafts for the big one, best with the same vocabulary; auto for the best on"
        " this machine, none for none.",
    ),
    _o(
        "--cascade",
        type=ModelReference(words=("none",)),
        metavar="MODEL",
        help="A still smaller model that drafts for the draft model.",
    ),
    _o(
        "--backend",
        type=click.Choice(BACKENDS),
        default="auto",
        help="The library that computes; auto is the one that edgespec doctor found best.",
    ),
    _o(
        "--draft-backend",
        type=click.Choice(BACKENDS),
        default="auto",
        help="The same for the draft model; auto is the target's if it can.",
    ),
    _o(
        "-c",
        "--ctx-size",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Context size in tokens, 0 to choose.",
    ),
    _o(
        "-ngl",
        "--gpu-layers",
        "gpu_layers",
        default=AUTO,
        **_COUNT,
        help="Layers on the GPU, -1 for all that can be.",
    ),
    _o("-t", "--threads", default=AUTO, **_COUNT, help="Threads for single tokens, -1 to choose."),
    _o(
        "-tb",
        "--threads-batch",
        default=AUTO,
        **_COUNT,
        help="Threads for several tokens at once, -1 as for -t.",
    ),
    _o("-b", "--batch-size", **_positive("N"), help="Most tokens in one call."),
    _o("-ub", "--ubatch-size", **_positive("N"), help="Most tokens computed at once."),
    _o("-ctk", "--cache-type-k", metavar="TYPE", help="Type of cached keys, such as f16 or q8_0."),
    _o("-ctv", "--cache-type-v", metavar="TYPE", help="Type of cached values."),
    _o(
        "-fa",
        "--flash-attn",
        type=click.Choice(["on", "off", "auto"]),
        default="auto",
        help="Flash attention.",
    ),
    _o(
        "--load-mode",
        type=click.Choice(["auto", "none", "mmap", "mlock"]),
        default="auto",
        help="How the file gets into memory.",
    ),
    _o("--mlock", is_flag=True, help="The same as --load-mode mlock."),
    _o("--no-mmap", is_flag=True, help="The same as --load-mode none."),
)

sampling_options = _group(
    "Sampling",
    _o(
        "-n",
        "--predict",
        "--n-predict",
        "predict",
        default=DEFAULT_TOKENS,
        **_COUNT,
        help="Most tokens to answer, -1 for no limit.",
    ),
    _o(
        "-s",
        "--seed",
        type=click.IntRange(AUTO, 2**64 - 1),
        default=AUTO,
        metavar="N",
        help="Seed, -1 for a random one.",
    ),
    _o(
        "--temp",
        type=Number(min=0),
        default=0.8,
        metavar="X",
        help="Temperature, 0 for the best token always.",
    ),
    _o(
        "--top-k",
        type=click.IntRange(min=0),
        default=40,
        metavar="N",
        help="Only the N best tokens, 0 for all.",
    ),
    _o(
        "--top-p",
        type=Number(0, 1),
        default=0.95,
        metavar="X",
        help="Only the best tokens that add up to X, 1 for all.",
    ),
    _o(
        "--min-p",
        type=Number(0, 1),
        default=0.05,
        metavar="X",
        help="Only tokens at least X times as likely as the best.",
    ),
    _o(
        "--repeat-penalty",
        type=Number(min=0, min_open=True),
        default=1.0,
        metavar="X",
        help="Divide the logits of seen tokens, 1 for off.",
    ),
    _o(
        "--repeat-last-n",
        type=click.IntRange(min=-1),
        default=64,
        metavar="N",
        help="Tokens that penalties look at, -1 for all.",
    ),
    _o(
        "--presence-penalty",
        type=Number(),
        default=0.0,
        metavar="X",
        help="Taken from the logits of seen tokens.",
    ),
    _o(
        "--frequency-penalty",
        type=Number(),
        default=0.0,
        metavar="X",
        help="Taken once for each time a token was seen.",
    ),
    _o(
        "--logit-bias",
        type=_bias,
        multiple=True,
        metavar="TOKEN(+/-)BIAS",
        help="Change a token's logit. May be given several times.",
    ),
    _o(
        "--stop",
        type=valid,
        multiple=True,
        metavar="TEXT",
        help=r"End the answer before this text; \n is a new line. May be given several times.",
    ),
)

history_options = _group(
    "History",
    _o(
        "--continue",
        "conversation",
        is_flag=False,
        flag_value="last",
        metavar="[N]",
        show_default=False,
        help="Go on with conversation N, or with the last one.",
    ),
    _o(
        "--history/--no-history",
        default=True,
        help="Keep the conversation on this machine; -p alone is not kept unless this is given.",
    ),
    _o(
        "--memory/--no-memory",
        default=None,
        show_default=False,
        help="Guess from this model's earlier answers on this machine, and from files that were added."
        " Answers join them where the conversation is kept, and with --memory always, if memory proposes.",
    ),
)

speculation_options = _group(
    "Speculation",
    _o(
        "--spec",
        default="auto",
        type=proposers,
        metavar="WHAT",
        help="auto, off, or proposers joined by commas:"
        " suffix, memory, ngram, recycling, lookahead, jacobi, draft.",
    ),
    _o(
        "--draft-max",
        type=click.IntRange(min=0),
        default=None,
        metavar="N",
        help="Most drafted tokens a round. With proposers named in --spec: that many in every round.",
    ),
    _o(
        "--verify",
        type=click.Choice(["coupled", "rejection"]),
        default="coupled",
        help="How drafts are verified.",
    ),
    _o(
        "--numerics",
        type=click.Choice(["auto", "exact", "near"]),
        default="auto",
        help="exact: only passes whose rows equal plain decoding bit for bit.",
    ),
)


def _set_verbose(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and ctx.obj is not None:
        ctx.obj.verbose = True


_VERBOSE = _o(
    "--verbose",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_set_verbose,
    help="Show the traceback of an error.",
)
verbose_option = _group("Output", _VERBOSE)

output_options = _group(
    "Output",
    _o("--line", is_flag=True, help="Chat in lines, not on the full screen."),
    _o(
        "--theme",
        type=click.Choice(["dark", "light", "plain"]),
        default="dark",
        help="Look of the full-screen chat; plain takes the terminal's own colours.",
    ),
    _o("--json", "as_json", is_flag=True, help="One JSON object a line: tokens, then a summary."),
    _o("--stats", is_flag=True, help="Show counts and rates after the answer, on standard error."),
    _o("--trace", type=click.Path(), metavar="FILE", help="Write one JSON line a round to FILE."),
    _VERBOSE,
)
