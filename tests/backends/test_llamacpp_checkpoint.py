"""Recurrent and hybrid models: dropped rows are undone by restoring a copy of the state."""

import pytest

from edgespec.backends.base import LoadOptions
from edgespec.backends.llamacpp import load
from edgespec.backends.rows import exact_rows
from edgespec.errors import BackendError, RollbackError
from tests.backends.passes import plain
from tests.backends.tiny import tiny_jamba, tiny_mamba

TOKENS = [5, 90, 17, 300, 44, 260, 101, 7, 33, 250, 61, 12]


@pytest.fixture(params=[tiny_mamba, tiny_jamba], ids=["recurrent", "hybrid"])
def backend(request, tmp_path):
    path = request.param(tmp_path / "tiny.gguf")
    loaded = load(path, LoadOptions(n_ctx=128, n_threads=1, max_rows=16))
    yield loaded.backend
    loaded.backend.close()


def close_to(rows):
    return pytest.approx(rows, abs=1e-3)


def test_capabilities(backend):
    assert backend.capabilities.rollback == "checkpoint"
    assert not backend.capabilities.tree
    with pytest.raises(BackendError):
        backend.forward([1, 2, 3], [-1, 0, 0])


@pytest.mark.parametrize("kept", [0, 1, 2, 4])
@pytest.mark.parametrize("before", [0, 1, 5])
def test_dropped_rows_leave_no_trace(backend, before, kept):
    alone = plain(backend, TOKENS)
    backend.truncate(0)
    plain(backend, TOKENS[:before])
    rows = backend.forward([*TOKENS[before : before + kept], 9, 8, 7, 6])
    assert rows[:kept] == close_to(alone[before : before + kept])
    backend.commit(range(kept))
    assert backend.length == before + kept
    assert plain(backend, TOKENS[before + kept :]) == close_to(alone[before + kept :])


def test_cutting_is_refused_without_harm(backend):
    alone = plain(backend, TOKENS)
    backend.truncate(0)
    plain(backend, TOKENS[:6])
    with pytest.raises(RollbackError):
        backend.truncate(3)
    assert backend.length == 6
    assert plain(backend, TOKENS[6:]) == close_to(alone[6:])


def test_uncommitted_rows_can_be_cut(backend):
    alone = plain(backend, TOKENS)
    backend.truncate(0)
    plain(backend, TOKENS[:6])
    backend.forward([1, 2, 3])
    backend.truncate(6)
    assert plain(backend, TOKENS[6:]) == close_to(alone[6:])


def test_exact_rows_starts_from_an_empty_cache(backend):
    assert 1 in exact_rows(backend, TOKENS, (2, 4))
    assert backend.length == 0
    plain(backend, TOKENS[:2])
    assert exact_rows(backend, TOKENS, (2, 4)) == {1}
    assert backend.length == 2
