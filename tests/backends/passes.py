"""Passes that tests of backends make."""

from pathlib import Path

import numpy as np


def extend(backend, tokens):
    backend.forward(tokens, rows="none")
    backend.commit(range(len(tokens)))


def plain(backend, tokens):
    """Rows of single-row decoding, `[n, n_vocab]`."""
    rows = []
    for token in tokens:
        rows.append(backend.forward([token])[0].copy())
        backend.commit([0])
    return np.array(rows)


def wrong(backend, tokens):
    """Ids that are not these, so that a draft of them is wrong."""
    return [(token + 1) % backend.n_vocab for token in tokens]


def again_and_again(backend, tokens):
    length = backend.length
    while True:
        backend.forward(tokens, rows="last")
        backend.truncate(length)


def resident() -> int:
    """Bytes of memory that this process occupies; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0
