"""A real model on llama.cpp: rows, branches, rollback, limits, interruption."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from edgespec.backends.base import LoadOptions
from edgespec.backends.llamacpp import load
from edgespec.backends.rows import band, exact_rows
from edgespec.errors import BackendError, Cancelled, UsageError
from tests.backends.passes import extend, plain

pytestmark = pytest.mark.model

TEXT = (
    "The tower is 324 metres tall, about the same height as an 81-storey building, and the tallest "
    "structure in the city. Its base is square, measuring 125 metres on each side. "
)
OPTIONS = LoadOptions(n_ctx=1024, n_batch=256, n_ubatch=64, max_rows=24, n_threads=1)


@pytest.fixture(scope="module")
def model(smollm2_path):
    loaded = load(smollm2_path, OPTIONS)
    yield loaded
    loaded.backend.close()


@pytest.fixture
def backend(model):
    model.backend.abort(False)
    model.backend.truncate(0)
    return model.backend


@pytest.fixture(scope="module")
def ids(model):
    return model.vocabulary.tokenize(TEXT * 20, special=False)


def test_import_is_cheap():
    code = "import sys, edgespec.backends.llamacpp; sys.exit('llama_cpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_greedy_text(model, backend):
    tokens = model.vocabulary.tokenize("The capital of France is", special=False)
    row = backend.forward(tokens, rows="last")
    backend.commit(range(len(tokens)))
    assert row.shape == (1, backend.n_vocab)
    assert row.dtype == np.float32
    assert model.vocabulary.piece(int(row[0].argmax())) == b" Paris"


def test_rows_equal_plain_decoding_bit_for_bit(smollm2_path, ids):
    loaded = load(smollm2_path, LoadOptions(n_ctx=1024, max_rows=24))
    backend = loaded.backend
    for context in (10, 300):
        extend(backend, ids[backend.length : context])
        stretch = ids[context : context + 13]
        alone = plain(backend, stretch)
        for n in (2, 4, 12):
            backend.truncate(context)
            for start in range(0, 12, n):
                assert np.array_equal(backend.forward(stretch[start : start + n]), alone[start : start + n])
                backend.commit(range(n))
            assert np.array_equal(backend.forward(stretch[12:])[0], alone[12])
            backend.commit([0])
        backend.truncate(context)
    backend.close()


def test_dropped_rows_leave_no_trace(backend, ids):
    extend(backend, ids[:50])
    alone = plain(backend, ids[50:60])
    backend.truncate(50)
    backend.forward([*ids[50:54], 9, 9, 9])
    backend.commit(range(4))
    assert backend.length == 54
    backend.forward([7, 7])
    backend.commit(())
    assert np.array_equal(backend.forward(ids[54:60]), alone[4:10])
    backend.truncate(20)
    assert backend.length == 20
    extend(backend, ids[20:50])
    assert np.array_equal(plain(backend, ids[50:52]), alone[:2])


def test_tree_rows_equal_their_chains(backend, ids):
    extend(backend, ids[:40])
    a, b, c, d, e, f = 504, 3575, 282, 4649, 314, 30
    tokens, parents = [a, b, c, d, e, f], [-1, 0, 0, 1, 2, 2]
    tree = backend.forward(tokens, parents).copy()
    backend.commit([0, 2, 5])
    assert backend.length == 43
    after = backend.forward([b])[0].copy()
    for path in ([0, 1, 3], [0, 2, 4], [0, 2, 5]):
        backend.truncate(40)
        chain = backend.forward([tokens[i] for i in path]).copy()
        np.testing.assert_allclose(tree[path], chain, atol=1e-3)
        backend.commit(range(3))
    np.testing.assert_allclose(backend.forward([b])[0], after, atol=1e-3)


def test_tree_that_is_dropped_or_cut_leaves_no_trace(backend, ids):
    extend(backend, ids[:40])
    alone = plain(backend, ids[40:44])
    for _ in range(3):
        backend.truncate(40)
        backend.forward([1, 2, 3, 4], [-1, -1, 0, 1])
        backend.commit(())
        backend.forward([1, 2, 3, 4], [-1, -1, 0, 1])
        backend.truncate(40)
        assert np.array_equal(backend.forward(ids[40:44]), alone)


@pytest.mark.parametrize("n_ctx", [112, 1024])
def test_rows_stay_in_order_behind_many_trees(n_ctx, smollm2_path, ids):
    """Bit for bit in a model of thirty layers, also when what was dropped has filled the context."""
    backend = load(smollm2_path, LoadOptions(n_ctx=n_ctx, max_rows=8, n_threads=1)).backend
    extend(backend, ids[:40])
    alone = plain(backend, ids[40:80])
    backend.truncate(40)
    kept = ([0], [0, 2], [0, 2, 5])
    at, rounds = 40, 0
    while at < 74:
        a, b, c = ids[at : at + 3]
        rows = backend.forward([a, 7, b, 9, 11, c], [-1, 0, 0, 0, 2, 2])[[0, 2, 5]]
        assert np.array_equal(rows, alone[at - 40 : at - 37])
        backend.commit(kept[rounds % 3])
        at, rounds = at + len(kept[rounds % 3]), rounds + 1
        if rounds % 7 == 0:
            at -= 2
            backend.truncate(at)
    assert np.array_equal(plain(backend, ids[at : at + 4]), alone[at - 40 : at - 36])
    backend.close()


def test_many_branches(backend, ids):
    extend(backend, ids[:8])
    rows = backend.forward(ids[8:32], [-1] * 24).copy()
    backend.commit([23])
    backend.truncate(8)
    assert np.abs(rows[23] - backend.forward([ids[31]])[0]).max() < 1e-3


def test_chunked_prompt_gives_the_same_next_token(smollm2_path, backend, ids):
    tokens = ids[:200]
    last = backend.forward(tokens, rows="last")[0].copy()
    backend.commit(range(200))
    for n_batch in (32, 128):
        other = load(smollm2_path, LoadOptions(n_ctx=256, n_batch=n_batch, max_rows=1, n_threads=1))
        row = other.backend.forward(tokens, rows="last")[0]
        assert int(row.argmax()) == int(last.argmax())
        other.backend.commit(range(200))
        assert other.backend.length == 200
        other.backend.close()


def test_context_can_be_filled_to_the_last_token(smollm2_path, ids):
    loaded = load(smollm2_path, LoadOptions(n_ctx=250, n_threads=1))
    backend = loaded.backend
    assert backend.n_ctx == 250
    extend(backend, ids[: backend.n_ctx - 3])
    backend.forward([5, 6, 7])
    backend.commit(range(3))
    assert backend.length == backend.n_ctx
    with pytest.raises(BackendError, match="context full"):
        backend.forward([5])
    backend.close()


def test_abort_stops_a_long_prompt_and_appends_nothing(backend, ids):
    extend(backend, ids[:20])
    alone = plain(backend, ids[20:22])
    backend.truncate(20)
    stopped = []

    def stop():
        stopped.append(time.perf_counter())
        backend.abort(True)

    threading.Timer(0.1, stop).start()
    with pytest.raises(Cancelled):
        backend.forward((ids * 3)[:1000], rows="last")
    assert time.perf_counter() - stopped[0] < 0.5
    assert backend.length == 20
    with pytest.raises(Cancelled):
        backend.forward([1])
    backend.abort(False)
    assert np.array_equal(plain(backend, ids[20:22]), alone)


def test_exact_rows_measures_and_cleans_up(backend, ids):
    assert exact_rows(backend, ids[:300], (1, 2, 3, 4, 8, 999)) == {1, 2, 3, 4, 8}
    assert backend.length == 0
    extend(backend, ids[:12])
    assert exact_rows(backend, ids[:10], (2, 4)) == {1, 2, 4}
    assert backend.length == 12
    assert exact_rows(backend, ids[:1], (2, 4)) == {1}


def test_exact_rows_sees_a_kernel_that_is_not(smollm2_path, ids):
    other = load(smollm2_path, LoadOptions(n_ctx=512, flash_attn=False, n_threads=1))
    assert exact_rows(other.backend, ids[:100], (2, 4, 8)) == {1}
    assert other.backend.length == 0
    other.backend.close()


def test_bands_change_where_kernels_may():
    assert [band(n) for n in (0, 256, 257, 2000)] == [0, 0, 1, 2]


def test_open_and_close_again(smollm2_path, ids):
    for _ in range(5):
        loaded = load(smollm2_path, LoadOptions(n_ctx=256, n_threads=1))
        assert loaded.backend.forward(ids[:4]).shape[0] == 4
        loaded.backend.close()
        loaded.backend.close()
    with pytest.raises(BackendError, match="closed"):
        loaded.backend.forward([1])


def test_unknown_cache_type(smollm2_path):
    with pytest.raises(UsageError, match="f17"):
        load(smollm2_path, LoadOptions(type_k="f17"))
