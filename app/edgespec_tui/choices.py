"""What the user chose, and what the app needs from whoever starts it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from edgespec import SamplingSettings
from edgespec.errors import UsageError
from edgespec.history import Conversation
from edgespec_tui.engine import Loader
from edgespec_tui.theme import NAMES

RANDOM = -1


@dataclass(frozen=True, slots=True)
class Choices:
    """`seed` -1 is a new one for each answer. `max_tokens` None goes on to the end of the context.

    `n_ctx` 0 leaves the size to the backend; it, `draft` and `numerics` take a reload.
    """

    system: str = ""
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    seed: int = RANDOM
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    spec: str = "auto"
    draft: str = "auto"
    n_ctx: int = 0
    theme: str = "dark"

    def seeded(self) -> SamplingSettings:
        """The sampling of the next answer."""
        return replace(self.sampling, seed=self.seed if self.seed >= 0 else secrets.randbits(32))

    def needs_reload(self, before: Choices) -> bool:
        return (self.draft, self.n_ctx) != (before.draft, before.n_ctx)


@dataclass(frozen=True, slots=True)
class Start:
    """`loader(reference, choices, notify)` gives what loads a model; None is the default model.

    `stored(model)` gives what was kept for a model, `save` keeps it; both may raise EdgespecError.
    `history` False keeps no conversations.
    """

    loader: Callable[[str | None, Choices, Callable[[str], None]], Loader]
    reference: str | None = None
    choices: Choices = field(default_factory=Choices)
    stored: Callable[[str], Choices | None] = lambda _: None
    save: Callable[[str | None, Choices], None] = lambda *_: None
    conversation: Conversation | None = None
    history: bool = True
    first_run: bool = False


def _number(low: float, high: float) -> Callable[[str], float]:
    def convert(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return convert


def _whole(low: int, high: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return convert


@dataclass(frozen=True, slots=True)
class Field:
    """A setting by its name: how it is read, written, and told about."""

    name: str
    label: str
    hint: str
    read: Callable[[str], object]
    get: Callable[[Choices], object]
    put: Callable[[Choices, object], Choices]


def _sampling(name: str, label: str, hint: str, read: Callable[[str], object]) -> Field:
    def put(choices: Choices, value: object) -> Choices:
        return replace(choices, sampling=replace(choices.sampling, **{name: value}))  # type: ignore[arg-type]

    return Field(name, label, hint, read, lambda c: getattr(c.sampling, name), put)


def _own(name: str, label: str, hint: str, read: Callable[[str], object]) -> Field:
    def put(choices: Choices, value: object) -> Choices:
        return replace(choices, **{name: value})  # type: ignore[arg-type]

    return Field(name, label, hint, read, lambda c: getattr(c, name), put)


def _theme(text: str) -> str:
    if text not in NAMES:
        raise ValueError
    return text


_LIMIT = Field(
    "max_tokens",
    "Most tokens of an answer",
    "a number, or -1 for no limit",
    _whole(-1, 1_000_000),
    lambda c: -1 if c.max_tokens is None else c.max_tokens,
    lambda c, value: replace(c, max_tokens=None if value == -1 else value),  # type: ignore[arg-type]
)
FIELDS = {
    f.name: f
    for f in (
        _sampling("temperature", "Temperature", "0 always takes the best token", _number(0, 100)),
        _sampling("top_k", "Top-k", "only the N best tokens, 0 for all", _whole(0, 1_000_000)),
        _sampling("top_p", "Top-p", "only the best that add up to this, 1 for all", _number(0, 1)),
        _sampling("min_p", "Min-p", "only those this likely beside the best", _number(0, 1)),
        _sampling("repeat_penalty", "Repeat penalty", "1 is off", _number(0.01, 100)),
        _own("seed", "Seed", "-1 takes a new one for each answer", _whole(-1, 2**64 - 1)),
        _LIMIT,
        _own("spec", "Proposers", "auto, off, or suffix, ngram, draft joined by commas", str),
        _own("draft", "Draft model", "auto, none, or a small model with the same vocabulary", str),
        _own("n_ctx", "Context size", "in tokens, 0 to choose", _whole(0, 100_000_000)),
        _own("theme", "Theme", ", ".join(NAMES), _theme),
        _own("system", "System prompt", "what the model is told first", str),
    )
}


_OPTIONS = {"temp": "temperature", "predict": "max_tokens", "ctx_size": "n_ctx"}
"""Options of `edgespec run` whose settings are called otherwise."""


def setting(name: str) -> Field:
    """The setting of this name, or of the option of this name. Raises UsageError."""
    plain = name.removeprefix("--").replace("-", "_")
    known = FIELDS.get(_OPTIONS.get(plain, plain))
    if known is None:
        raise UsageError(f"there is no setting {name}: they are {', '.join(FIELDS)}")
    return known


def changed(choices: Choices, name: str, text: str) -> Choices:
    """One setting from text. Raises UsageError."""
    known = setting(name)
    try:
        return known.put(choices, known.read(text.strip()))
    except ValueError:
        raise UsageError(f"{known.label.lower()} cannot be {text.strip()!r}: {known.hint}") from None
