"""Which row counts are exact, as chains and as trees: their rows equal single-row decoding bit for bit."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from edgespec.backends.base import Backend
from edgespec.errors import RollbackError
from edgespec.types import FloatArray, Tokens

KERNEL_LENGTHS = (256, 1024, 4096, 16384)
"""Cache lengths at which a library may change kernels; what was measured below one need not hold above."""

LEAST_ROWS = 6
"""A row count is judged by at least so many rows, in several passes if need be."""
_ENOUGH_FAILURES = 2
_BRANCHES = 3
BEHIND = 8
"""Tokens behind a tree on which it is judged, too."""


def band(length: int) -> int:
    """The stretch between two `KERNEL_LENGTHS` that a cache length falls into."""
    return sum(length > limit for limit in KERNEL_LENGTHS)


def hopeless(verdicts: Sequence[bool]) -> bool:
    """Two inexact counts in a row: kernels change at thresholds, so no larger one will be exact."""
    return len(verdicts) >= _ENOUGH_FAILURES and not any(verdicts[-_ENOUGH_FAILURES:])


def exact_rows(backend: Backend, tokens: Tokens, counts: Sequence[int]) -> frozenset[int]:
    """The row counts among `counts` whose rows are exact at the present cache length; always holds 1.

    Appends `tokens` (any text of the model, at least a few more than the largest count), compares on
    the last of them, and leaves the cache at the length it had. What it finds holds for this `band` of
    lengths. Costs about one pass for every count and one for every row of the largest; stops when it
    is `hopeless`.
    """
    verdicts: list[bool] = []
    exact = {1}
    trials = tried_rows(backend, tokens, counts)
    for n, same in trials:
        verdicts.append(same)
        exact |= {n} if same else set()
        if hopeless(verdicts):
            break
    trials.close()
    return frozenset(exact)


def tried_rows(
    backend: Backend, tokens: Tokens, counts: Sequence[int]
) -> Generator[tuple[int, bool], None, None]:
    """One after another (row count, is it exact?), as `exact_rows` does it.

    The cache is cut to its length again when the generator ends or is closed. Yields nothing where the
    cache is neither empty nor can be cut.
    """
    start = backend.length
    if start and backend.capabilities.rollback != "exact":
        return
    limit = min(backend.capabilities.max_rows, len(tokens) - 1, backend.n_ctx - start - 1)
    asked = sorted({n for n in counts if 1 < n <= limit})
    if not asked:
        return
    tokens = tokens[: backend.n_ctx - start]
    stretch = tokens[-max(asked[-1], LEAST_ROWS) - 1 :]
    prefix = tokens[: len(tokens) - len(stretch)]
    alone: list[FloatArray] = []
    try:
        _append(backend, prefix)
        base = start + len(prefix)
        same = True
        for n in asked:
            if not same:
                _rewind(backend, base, prefix)
            # After an exact count the cache is what single rows would have left.
            passes = min(-(-LEAST_ROWS // n), (len(stretch) - 1) // n)
            _extend(backend, stretch[: passes * n + 1], alone, base)
            _rewind(backend, base, prefix)
            same = _is_exact(backend, stretch, n, passes, alone)
            yield n, same
    finally:
        backend.truncate(start)


def tried_trees(
    backend: Backend, tokens: Tokens, counts: Sequence[int]
) -> Generator[tuple[int, bool], None, None]:
    """One after another (row count, is a tree of so many rows exact?), of a root and three branches.

    A tree is exact where each of its rows, and the rows of small trees behind the branch that was kept,
    equal single-row decoding bit for bit. Otherwise as `tried_rows`; yields nothing where there are no trees.
    """
    start, able = backend.length, backend.capabilities
    if not able.tree or (start and able.rollback != "exact"):
        return
    limit = min(able.max_rows, len(tokens) - BEHIND, backend.n_ctx - start - BEHIND)
    asked = sorted({n for n in counts if 2 < n <= limit})
    if not asked:
        return
    tokens = tokens[: backend.n_ctx - start]
    stretch = tokens[-asked[-1] - BEHIND :]
    prefix = tokens[: len(tokens) - len(stretch)]
    try:
        _append(backend, prefix)
        for n in asked:
            yield n, _is_exact_tree(backend, stretch, n, start + len(prefix), prefix)
            _rewind(backend, start + len(prefix), prefix)
    finally:
        backend.truncate(start)


def _is_exact_tree(backend: Backend, stretch: Tokens, n: int, base: int, prefix: Tokens) -> bool:
    """The branches take turns, so that no path lies in neighbouring rows. The longest is kept."""
    tokens, behind, root = stretch[:n], stretch[n : n + BEHIND], [*prefix, stretch[0]]
    branches = sorted((range(i, n, _BRANCHES) for i in range(1, min(_BRANCHES, n - 1) + 1)), key=max)
    alone = {0: _pass(backend, tokens[:1])}
    for branch in branches:
        _rewind(backend, base + 1, root)
        alone |= {i: _pass(backend, tokens[i : i + 1]) for i in branch}
    expected = [_pass(backend, [token])[0] for token in behind]
    _rewind(backend, base, prefix)
    rows = backend.forward(tokens, [-1, *(max(0, i - _BRANCHES) for i in range(1, n))])
    same = all(np.array_equal(row, alone[i][0]) for i, row in enumerate(rows))
    backend.commit([0, *branches[-1]])
    return same and all(
        np.array_equal(row, expected[i])
        for start in range(0, BEHIND, 2)
        for i, row in enumerate(_fork(backend, behind[start], behind[start + 1], tokens[0]), start)
    )


def _fork(backend: Backend, first: int, second: int, other: int) -> FloatArray:
    """The rows of two tokens, while another one lies between them for the time of the pass."""
    rows = backend.forward([first, other, second], [-1, 0, 0])[[0, 2]]
    backend.commit([0, 2])
    return rows


def _extend(backend: Backend, tokens: Tokens, alone: list[FloatArray], base: int) -> None:
    """Decode on, one token a pass, until `alone` has a row for every token."""
    if len(alone) < len(tokens):
        for i in range(backend.length - base, len(tokens)):
            row = _pass(backend, tokens[i : i + 1])
            if i == len(alone):
                alone.append(row)


def _is_exact(backend: Backend, stretch: Tokens, n: int, passes: int, alone: list[FloatArray]) -> bool:
    """A later pass, or one more row, reads what an earlier pass left in the cache."""
    for start in range(0, passes * n, n):
        rows = _pass(backend, stretch[start : start + n])
        if not all(np.array_equal(row, alone[start + i][0]) for i, row in enumerate(rows)):
            return False
    return passes > 1 or np.array_equal(_pass(backend, stretch[n : n + 1]), alone[n])


def _pass(backend: Backend, tokens: Tokens) -> FloatArray:
    logits = backend.forward(tokens).copy()
    backend.commit(range(len(tokens)))
    return logits


def _append(backend: Backend, tokens: Tokens) -> None:
    if tokens:
        backend.forward(tokens, rows="none")
        backend.commit(range(len(tokens)))


def _rewind(backend: Backend, length: int, prefix: Tokens) -> None:
    try:
        backend.truncate(length)
    except RollbackError:
        backend.truncate(0)
        _append(backend, prefix)
