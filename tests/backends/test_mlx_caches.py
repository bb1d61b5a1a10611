"""MLX on tiny random models: branches, windows, recurrence, rollback, interruption, threads."""

import threading

import mlx.core as mx
import numpy as np
import pytest

from edgespec.backends.rows import exact_rows
from edgespec.errors import BackendError, Cancelled, RollbackError
from tests.backends.passes import extend, plain
from tests.backends.tiny_mlx import N_VOCAB, backend, recurrent, tiny, windowed

IDS = [int(token) for token in np.random.default_rng(1).integers(0, N_VOCAB, 220)]
BRANCHING = ("llama", "qwen2", "qwen3", "gemma", "gemma2", "granite", "olmo2")


@pytest.fixture(scope="module")
def llama():
    return backend(tiny("llama"))


@pytest.fixture
def empty(llama):
    llama.abort(False)
    llama.truncate(0)
    return llama


@pytest.mark.parametrize("kind", BRANCHING)
def test_every_branch_gives_what_its_tokens_give_one_by_one(kind):
    model = backend(tiny(kind))
    assert model.capabilities.tree
    tokens, parents = [5, 90, 17, 30, 44, 60, 71], [-1, 0, 0, 1, 2, 2, -1]
    extend(model, IDS[:40])
    tree = model.forward(tokens, parents).copy()
    model.commit(())
    for path in ([0, 1, 3], [0, 2, 4], [0, 2, 5], [6]):
        model.truncate(40)
        alone = plain(model, [tokens[i] for i in path])
        assert np.array_equal(tree[path], alone), f"path {path}"
        after = plain(model, IDS[40:44])
        model.truncate(40)
        model.forward(tokens, parents)
        model.commit(path)
        assert model.length == 40 + len(path)
        assert np.array_equal(plain(model, IDS[40:44]), after), f"after path {path}"


def test_siblings_share_a_position(empty):
    """A later sibling must not be further along: the same token twice gives the same row."""
    extend(empty, IDS[:20])
    rows = empty.forward([7, 9, 9, 9, 3], [-1, 0, 0, 0, 2]).copy()
    empty.commit(())
    assert np.array_equal(rows[1], rows[2])
    assert np.array_equal(rows[1], rows[3])
    assert not np.array_equal(rows[1], rows[4])


def test_classes_that_take_no_trees_say_so():
    for model in (windowed(), recurrent(), tiny("phi3", rope_theta=1e4)):
        made = backend(model)
        assert not made.capabilities.tree
        with pytest.raises(BackendError, match="several branches"):
            made.forward([1, 2, 3], [-1, 0, 0])


@pytest.mark.parametrize("start", [0, 30, 250])
def test_dropped_rows_leave_no_trace(start):
    """Also where the drafted rows made the cache's memory grow."""
    model, fresh = (backend(tiny("llama"), n_ctx=300) for _ in range(2))
    ids = IDS + IDS
    if start:
        extend(model, ids[:start])
        extend(fresh, ids[:start])
    for kept in (0, 1, 3):
        before = model.length
        model.forward([*ids[before : before + kept], *[9] * 8])
        model.commit(range(kept))
        assert model.length == before + kept
    expected = plain(fresh, ids[start : start + 14])
    assert np.array_equal(plain(model, ids[start + 4 : start + 14]), expected[4:])
    model.truncate(start)
    assert np.array_equal(plain(model, ids[start : start + 14]), expected)


def test_all_row_counts_are_exact(empty):
    assert exact_rows(empty, IDS[:60], (1, 2, 3, 4, 5, 8, 16)) == {1, 2, 3, 4, 5, 8, 16}
    assert empty.length == 0


@pytest.mark.parametrize("make", [windowed, recurrent])
class TestCachesThatForget:
    @pytest.mark.parametrize("kept", [0, 1, 3])
    @pytest.mark.parametrize("before", [0, 3, 11, 40])
    def test_dropped_rows_leave_no_trace(self, make, before, kept):
        model = backend(make(), max_rows=8)
        alone = plain(model, IDS[: before + 12])
        model.truncate(0)
        plain(model, IDS[:before])
        rows = model.forward([*IDS[before : before + kept], 9, 8, 7, 6]).copy()
        np.testing.assert_allclose(rows[:kept], alone[before : before + kept], atol=1e-4)
        model.commit(range(kept))
        assert model.length == before + kept
        np.testing.assert_allclose(
            plain(model, IDS[before + kept : before + 12]), alone[before + kept :], atol=1e-4
        )

    def test_cutting_is_refused_without_harm(self, make):
        model = backend(make(), max_rows=8)
        alone = plain(model, IDS[:40])
        model.truncate(0)
        plain(model, IDS[:30])
        with pytest.raises(RollbackError):
            model.truncate(20)
        assert model.length == 30
        assert np.array_equal(plain(model, IDS[30:40]), alone[30:])

    def test_rows_without_a_copy_are_lost_and_said_to_be(self, make):
        model = backend(make(), max_rows=8)
        alone = plain(model, IDS[:40])
        model.forward([9])
        with pytest.raises(RollbackError):
            model.commit(())
        with pytest.raises(RollbackError):
            model.forward([9])
        model.truncate(0)
        assert np.array_equal(plain(model, IDS[:40]), alone)

    def test_an_interrupted_prompt_leaves_no_trace(self, make):
        model = backend(make(), max_rows=8, n_batch=8)
        alone = plain(model, IDS[:50])
        model.truncate(0)
        plain(model, IDS[:40])
        stop_after(model, 2)
        with pytest.raises(Cancelled):
            model.forward(IDS[40:100], rows="last")
        model.abort(False)
        assert model.length == 40
        assert np.array_equal(plain(model, IDS[40:50]), alone[40:])


def stop_after(model, polls):
    """Abort in the middle of the next pass, at the same place in every run."""
    left = polls

    def poll():
        nonlocal left
        left -= 1
        if left < 0:
            del model._poll
            model.abort(True)
            model._poll()

    model._poll = poll


def test_a_window_rolls_back_exactly_until_it_is_full():
    model = backend(windowed(64), max_rows=8)
    assert model.capabilities.rollback == "exact"
    extend(model, IDS[:50])
    assert model.capabilities.rollback == "exact"
    model.forward([1, 2, 3, 4])
    model.commit([0])
    model.truncate(20)
    extend(model, IDS[20:60])
    assert model.capabilities.rollback == "checkpoint"
    assert backend(recurrent()).capabilities.rollback == "checkpoint"


@pytest.mark.parametrize("polls", [1, 2, 5])
def test_an_interrupted_pass_is_undone(empty, polls):
    extend(empty, IDS[:20])
    alone = plain(empty, IDS[20:24])
    empty.truncate(20)
    model = backend(empty._model, n_batch=16)
    extend(model, IDS[:20])
    stop_after(model, polls)
    with pytest.raises(Cancelled):
        model.forward(IDS[20:100], rows="last")
    assert model.length == 20
    with pytest.raises(Cancelled):
        model.forward([1])
    model.abort(False)
    assert np.array_equal(plain(model, IDS[20:24]), alone)


def test_a_failure_inside_the_library_is_one_line_and_undone(empty, monkeypatch):
    extend(empty, IDS[:20])
    alone = plain(empty, IDS[20:22])
    empty.truncate(20)
    layer = empty._model.model.layers[1]

    def fail(*_, **__):
        raise RuntimeError("[malloc] Unable to allocate 17 bytes.\nmore")

    monkeypatch.setattr(type(layer), "__call__", fail)
    with pytest.raises(BackendError, match=r"Unable to allocate 17 bytes\.$"):
        empty.forward([1, 2])
    monkeypatch.undo()
    assert empty.length == 20
    assert np.array_equal(plain(empty, IDS[20:22]), alone)


def test_prompts_in_chunks_give_the_same_rows(llama):
    expected = None
    for n_batch in (7, 64, 200):
        model = backend(llama._model, n_batch=n_batch)
        last = model.forward(IDS[:150], rows="last").copy()
        model.commit(range(150))
        assert last.shape == (1, N_VOCAB)
        expected = last if expected is None else expected
        assert np.array_equal(last, expected)


def test_threads_take_turns(empty):
    """What is loaded in one thread is used, dropped and closed in others."""
    expected = plain(empty, IDS[:12])
    rows, model = [], backend(tiny("llama"))
    for part in (slice(0, 4), slice(4, 8), slice(8, 12)):
        thread = threading.Thread(target=lambda part=part: rows.append(plain(model, IDS[part])))
        thread.start()
        thread.join()
    assert np.array_equal(np.concatenate(rows), expected)
    threading.Thread(target=lambda: model.truncate(5)).run()
    assert np.array_equal(plain(model, IDS[5:12]), expected[5:])
    thread = threading.Thread(target=model.close)
    thread.start()
    thread.join()
    with pytest.raises(BackendError, match="closed"):
        model.forward([1])


def test_closing_frees_the_memory():
    mx.clear_cache()
    before = mx.get_active_memory()
    for _ in range(3):
        model = backend(tiny("llama", hidden_size=64, intermediate_size=1024))
        extend(model, IDS[:100])
        assert mx.get_active_memory() > before + 500_000
        model.close()
        model.close()
        assert mx.get_active_memory() < before + 50_000


def test_limits_raise_and_change_nothing(empty):
    extend(empty, IDS[:30])
    refused = [
        lambda: empty.forward([]),
        lambda: empty.forward([-1]),
        lambda: empty.forward([N_VOCAB]),
        lambda: empty.forward([1, 2**40]),
        lambda: empty.forward(IDS[:17]),
        lambda: empty.forward([1] * 227, rows="none"),
        lambda: empty.forward([1, 2], [-1]),
        lambda: empty.forward([1, 2, 3], [0, 2, -1]),
        lambda: empty.forward([1, 2, 3], [-1, -1, 0], rows="last"),
        lambda: empty.truncate(31),
        lambda: empty.truncate(-1),
    ]
    for call in refused:
        with pytest.raises(BackendError):
            call()
        assert empty.length == 30
    empty.forward([1, 2, 3], [-1, 0, 0])
    for call in (
        lambda: empty.commit([1]),
        lambda: empty.commit([0, 1, 2]),
        lambda: empty.forward([1]),
    ):
        with pytest.raises(BackendError):
            call()
    empty.commit([0, 2])
    assert empty.length == 32
