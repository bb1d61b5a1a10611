"""What a backend is: a model on a device that computes rows of logits and can roll back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from edgespec.errors import RollbackError
from edgespec.types import FloatArray, Tokens

LoadMode = Literal["auto", "none", "mmap", "mlock"]
Rollback = Literal["exact", "checkpoint", "none"]

DRAFT_ROWS = 16
"""Rows of a draft model's passes: it drafts trees."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`rollback`: any rows can be dropped for free, only by restoring a copy, or not at all.

    `tree`: several branches in one pass. `hidden`: the last hidden state can be returned.
    `max_rows`: most rows of logits in one pass.
    """

    rollback: Rollback
    tree: bool
    hidden: bool
    max_rows: int


class Backend(Protocol):
    """One sequence in one cache.

    A forward pass appends its tokens provisionally; `commit` says which of them stay. Another
    forward before that commit is an error. Rollback is asked every round: `capabilities` may change.
    """

    n_vocab: int
    n_ctx: int

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def length(self) -> int:
        """Tokens that are committed to the cache."""
        ...

    def forward(
        self,
        tokens: Tokens,
        parents: Sequence[int] | None = None,
        *,
        rows: Literal["all", "last", "none"] = "all",
    ) -> FloatArray:
        """Logits `[n, n_vocab]` (all), `[1, n_vocab]` (last) or `[0, n_vocab]` (none), float32.

        `parents[i]` is an index into `tokens`, -1 the end of the cache; None is a chain. The array is a
        view, valid until the next call. With rows="all", at most `max_rows` tokens; otherwise any
        number that fits the context, in chunks. Raises BackendError, or Cancelled after `abort(True)`:
        then nothing was appended.
        """
        ...

    def commit(self, keep: Sequence[int]) -> None:
        """Keep these indices of the last forward, ascending, a path from the root; drop the rest.

        Raises RollbackError when the rest cannot be dropped.
        """
        ...

    def truncate(self, length: int) -> None:
        """Cut the cache to `length` committed tokens. 0 always works. Raises RollbackError."""
        ...

    def abort(self, on: bool) -> None:
        """From any thread: make the forward in progress, and later ones, raise Cancelled, until off."""
        ...

    def close(self) -> None: ...


def cut(backend: Backend, length: int) -> int:
    """Cut a cache to `length`, or to nothing where it cannot be cut. Returns what it then holds."""
    try:
        backend.truncate(length)
    except RollbackError:
        backend.truncate(0)
        return 0
    return length


class Vocabulary(Protocol):
    """Token ids and their bytes, as the model file defines them."""

    n_vocab: int
    kind: str
    """Tokenizer type, such as "bpe" or "spm"."""
    bos: int | None
    eos: int | None
    add_bos: bool

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Ids of `text`, without BOS; `special` lets the text of control tokens become them."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes that the token adds to the text; control tokens give b""."""
        ...

    def text(self, token: int) -> str:
        """The token as the vocabulary spells it, control tokens included."""
        ...

    def is_eog(self, token: int) -> bool: ...

    def is_control(self, token: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to load. None lets the backend choose; `notify` takes one-line notices for the user.

    `exact`: rows of one pass should equal single rows, also where that is slower.
    """

    n_ctx: int | None = None
    n_batch: int = 2048
    n_ubatch: int = 512
    max_rows: int = 65
    n_gpu_layers: int = -1
    n_threads: int | None = None
    n_threads_batch: int | None = None
    load_mode: LoadMode = "auto"
    type_k: str | None = None
    type_v: str | None = None
    flash_attn: bool | None = None
    exact: bool = True
    progress: Callable[[float], bool] | None = None
    notify: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the file says and what the backend made of it.

    `settings`: everything that can change numbers or speed (threads, KV types, flash attention,
    library version, device), for keys of stored measurements and for the status line.
    """

    path: str
    name: str
    architecture: str
    quantization: str
    n_params: int
    size_bytes: int
    n_ctx_train: int
    backend: str
    device: str
    chat_template: str | None
    settings: dict[str, str | int | bool]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    backend: Backend
    vocabulary: Vocabulary
    info: ModelInfo
