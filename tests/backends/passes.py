"""Passes that tests of backends make."""

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
