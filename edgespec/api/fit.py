"""Does a model fit into memory? Told from its header, before anything loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from edgespec.backends.base import DRAFT_ROWS, LoadOptions
from edgespec.errors import BackendError, DraftError
from edgespec.hub.ggml_types import BLOCKS, TYPE_NAMES
from edgespec.hub.gguf import Header

USUAL_CONTEXT = 4096
"""Tokens of the context when nobody asks for a size and the model was trained on as many."""
_LEAST_CONTEXT, _STEP = 512, 256
_LIBRARY = 64 << 20
"""Bytes for the library itself, its graphs and scratch space."""
_F32 = 4


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes that a model takes: `cache` for keys and values, `compute` for a pass and its logits."""

    weights: int
    cache: int
    compute: int

    @property
    def total(self) -> int:
        return self.weights + self.cache + self.compute


@dataclass(frozen=True, slots=True)
class Room:
    """Free bytes of the machine, and of GPUs with memory of their own."""

    host: int
    gpu: int = 0

    @property
    def total(self) -> int:
        return self.host + self.gpu


def need(header: Header, options: LoadOptions, n_ctx: int) -> Need:
    """What a model takes at a context of `n_ctx` tokens."""
    rows = min(options.n_ubatch, options.n_batch, n_ctx)
    tokens = header.lists.get("tokenizer.ggml.tokens")
    n_vocab = tokens.count if tokens else header.number("vocab_size")
    wide = max(header.number("feed_forward_length"), 2 * header.number("embedding_length"))
    compute = rows * 3 * wide * _F32 + 2 * min(options.max_rows, rows) * n_vocab * _F32 + _LIBRARY
    if options.flash_attn is False:
        compute += rows * n_ctx * header.number("attention.head_count", 1) * _F32
    return Need(header.size, _cache(header, options, n_ctx), compute)


def _cache(header: Header, options: LoadOptions, n_ctx: int) -> int:
    """Keys and values of every layer that has attention; a window is kept whole, so that it can be cut."""
    layers = header.number("block_count")
    heads = max(header.number("attention.head_count", 1), 1)
    width = header.number("embedding_length") // heads
    a_key = _bytes(header.number("attention.key_length", width), options.type_k)
    a_value = _bytes(header.number("attention.value_length", width), options.type_v)
    shared = header.fact("attention.head_count_kv")
    each = (
        list(shared) if isinstance(shared, tuple) else [shared if isinstance(shared, int) else heads] * layers
    )
    state = layers * header.number("ssm.state_size") * header.number("ssm.inner_size") * _F32
    return int(sum(each)) * (a_key + a_value) * n_ctx + state


def _bytes(values: int, kind: str | None) -> int:
    """Bytes of so many values of a cache type."""
    number = {name.lower(): number for number, name in TYPE_NAMES.items()}.get((kind or "f16").lower(), 1)
    per_block, size = BLOCKS[number]
    return -(-values // per_block) * size


def usual_context(header: Header) -> int:
    """Tokens of the context when nobody asks for a size."""
    return min(header.context or USUAL_CONTEXT, USUAL_CONTEXT)


def fit(
    target: Header,
    draft: Header | None,
    options: LoadOptions,
    room: Room,
    notify: Callable[[str], None],
    small: Header | None = None,
) -> LoadOptions:
    """The options with a context that fits beside the draft, and with as many layers on the GPU as fit.

    `small`: of a model that drafts for the draft.

    A context that was asked for is never made smaller. Raises BackendError with the numbers when the target
    does not fit, DraftError when only the draft is too much.
    """
    drafts = [header for header in (draft, small) if header is not None]
    n_ctx = options.n_ctx or usual_context(target)
    smaller = range(n_ctx - n_ctx % _STEP, _LEAST_CONTEXT - 1, -_STEP) if options.n_ctx is None else ()
    for n in (n_ctx, *smaller):
        total = _total(target, drafts, options, n)
        if total <= room.total:
            if n != n_ctx:
                more = _gb(_total(target, drafts, options, n_ctx))
                notify(f"the context is {n} tokens: {n_ctx} would need {more}, {_gb(room.total)} are free")
                options = replace(options, n_ctx=n)
            return _offload(target, options, total, room, notify)
    least = n_ctx if options.n_ctx else min(n_ctx, _LEAST_CONTEXT)
    if drafts and _total(target, (), options, least) <= room.total:
        whole = _gb(_total(target, drafts, options, least))
        raise DraftError(
            f"the draft model cannot be used: with it {whole} are needed"
            f" at a context of {least} tokens, {_gb(room.total)} are free"
        )
    raise BackendError(_too_much(need(target, options, least), least, room.total, options.n_ctx is not None))


def _offload(
    target: Header, options: LoadOptions, total: int, room: Room, notify: Callable[[str], None]
) -> LoadOptions:
    """Where all layers were to be on the GPU and it is too small: as many as fit."""
    if options.n_gpu_layers >= 0 or not room.gpu or total <= room.gpu:
        return options
    layers = target.number("block_count")
    fitting = int(layers * room.gpu / total)
    notify(
        f"{fitting} of {layers} layers on the GPU: all would need {_gb(total)}, it has {_gb(room.gpu)} free"
    )
    return replace(options, n_gpu_layers=fitting)


def _total(target: Header, drafts: Sequence[Header], options: LoadOptions, n_ctx: int) -> int:
    theirs = replace(options, max_rows=DRAFT_ROWS)
    return need(target, options, n_ctx).total + sum(need(draft, theirs, n_ctx).total for draft in drafts)


def _too_much(wanted: Need, n_ctx: int, free: int, asked: bool) -> str:
    parts = f"weights {_gb(wanted.weights)}, cache {_gb(wanted.cache)}, computing {_gb(wanted.compute)}"
    cure = "a smaller context (-c)" if asked and wanted.total - wanted.cache < free else "a smaller model"
    return (
        f"not enough memory: {_gb(wanted.total)} are needed at a context of {n_ctx} tokens ({parts}), "
        f"{_gb(free)} are free: choose {cure} or quantization"
    )


def _gb(n: int) -> str:
    return f"{n / 1e9:.2f} GB"
