"""ONNX Runtime on real weights: agreement, exact rows, rollback, limits, and folders that are not whole."""

import os
import shutil
import threading

import numpy as np
import pytest

from edgespec.backends import onnx
from edgespec.backends.base import LoadOptions
from edgespec.backends.rows import exact_rows
from edgespec.errors import BackendError, Cancelled, ModelFileError, UsageError
from tests.backends.passes import extend
from tests.backends.reference import FORCED_START, agreement, forced

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def loaded(q4_0_onnx):
    model = onnx.load(q4_0_onnx, LoadOptions(n_ctx=512, max_rows=33, n_threads=1))
    yield model
    model.backend.close()


@pytest.fixture
def backend(loaded):
    loaded.backend.abort(False)
    loaded.backend.truncate(0)
    return loaded.backend


@pytest.fixture(scope="module")
def ids(loaded):
    return loaded.vocabulary.tokenize("The tide rises twice a day, and falls twice. " * 30, special=False)


def read_on(backend, tokens):
    for _ in range(100):
        backend.forward(tokens, rows="none")
        backend.commit(())


@pytest.mark.parametrize("kind", ["q8_0", "q4_0"])
def test_float32_activations_equal_the_reference(kind, forced_tokens, request):
    """The texts are the branches of one tree, since unrounded products are slow."""
    reference = request.getfixturevalue(f"{kind}_reference")
    options = LoadOptions(n_ctx=256, max_rows=256, n_threads=1)
    model = onnx.load(request.getfixturevalue(f"{kind}_onnx"), options, float32=True)
    parents = [-1 if i == 0 else 64 * s + i - 1 for s in range(4) for i in range(64)]
    rows = model.backend.forward([token for tokens in forced_tokens for token in tokens], parents)
    found = agreement(reference, rows.reshape(4, 64, -1)[:, FORCED_START:].reshape(len(reference), -1))
    model.backend.close()
    print(f"{kind}, float32 activations: {found}")
    assert found.largest < 1e-3
    assert found.top1 == 1.0


def test_activations_of_8_bits_stay_near_the_reference(backend, forced_tokens, q4_0_reference):
    found = agreement(q4_0_reference, forced(backend, forced_tokens))
    print(f"q4_0, activations of 8 bits: {found}")
    assert found.kl < 1e-2
    assert found.top1 > 0.9


def test_every_row_count_is_exact(backend, ids):
    counts = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32)
    assert exact_rows(backend, ids[:80], counts) == {1, *counts}


def test_a_prompt_in_other_chunks_is_the_same_prompt(backend, ids):
    extend(backend, ids[:200])
    whole = backend.forward(ids[200:201]).copy()
    backend.truncate(0)
    for start in range(0, 200, 33):
        extend(backend, ids[start : min(start + 33, 200)])
    assert np.array_equal(backend.forward(ids[200:201]), whole)


def test_rejected_rows_leave_no_trace(backend, ids):
    extend(backend, ids[:50])
    plain = backend.forward(ids[50:53]).copy()
    backend.commit(())
    backend.forward([7] * 20)
    backend.commit(())
    backend.forward([ids[50], 9, 9, 9])
    backend.commit([0])
    assert np.array_equal(backend.forward(ids[51:53]), plain[1:])
    backend.truncate(50)
    assert np.array_equal(backend.forward(ids[50:53]), plain)


@pytest.mark.parametrize("past", [0, 40])
def test_branches_see_their_own_path_only(backend, ids, past):
    if past:
        extend(backend, ids[:past])
    a, b, c, d = ids[past : past + 4]
    rows = backend.forward([a, b, c, b, d], [-1, 0, 0, 2, 1]).copy()
    backend.commit([0, 2, 3])
    after = backend.forward([d]).copy()
    backend.truncate(past)
    for path, row in (([a, b, d], 4), ([a, c, b], 3)):
        assert agreement(backend.forward(path)[-1:], rows[row : row + 1]).kl < 1e-2
        backend.commit(())
    assert agreement(backend.forward([a, c, b, d])[-1:], after).kl < 1e-2


def test_single_rows_of_logits(backend, ids):
    every = backend.forward(ids[:30]).copy()
    backend.commit(())
    assert np.array_equal(backend.forward(ids[:30], rows="last"), every[-1:])
    backend.commit(())
    assert backend.forward(ids[:30], rows="none").shape == (0, backend.n_vocab)


def test_limits(backend, ids, q4_0_onnx):
    with pytest.raises(BackendError, match="34 rows"):
        backend.forward(ids[:34])
    extend(backend, (ids * 3)[:511])
    assert backend.forward([5]).shape == (1, backend.n_vocab)
    backend.commit([0])
    with pytest.raises(BackendError, match="context full"):
        backend.forward([5])
    with pytest.raises(BackendError, match="vocabulary"):
        backend.truncate(0) or backend.forward([backend.n_vocab])
    with pytest.raises(UsageError):
        onnx.load(q4_0_onnx, LoadOptions(max_rows=0))


def test_interrupted_in_the_middle_of_a_prompt(backend, ids):
    extend(backend, ids[:20])
    row = backend.forward(ids[20:21]).copy()
    backend.commit(())
    threading.Timer(0.02, backend.abort, [True]).start()
    with pytest.raises(Cancelled):
        read_on(backend, (ids * 2)[:400])
    backend.abort(False)
    assert backend.length == 20
    assert np.array_equal(backend.forward(ids[20:21]), row)


def test_what_it_says_of_itself(loaded, q4_0_onnx):
    info = loaded.info
    assert (info.backend, info.architecture, info.quantization) == ("onnx", "llama", "int4 + int8")
    assert info.settings["provider"] == "CPU"
    assert "<|im_start|>" in info.chat_template
    assert loaded.vocabulary.tokenize("<|im_end|>", special=True) == [2]
    assert onnx.refuses(q4_0_onnx) is None


def test_a_context_beyond_training_is_cut_with_a_notice(q4_0_onnx):
    notices = []
    model = onnx.load(q4_0_onnx, LoadOptions(n_ctx=9000, notify=notices.append))
    assert model.backend.n_ctx == 8192
    assert "8192" in notices[0]
    model.backend.close()


def test_closed(q4_0_onnx):
    model = onnx.load(q4_0_onnx, LoadOptions(n_ctx=32))
    model.backend.close()
    model.backend.close()
    model.backend.abort(True)
    with pytest.raises(BackendError, match="closed"):
        model.backend.forward([1])


def test_folders_that_cannot_be_loaded(q4_0_onnx, tmp_path):
    cases = {
        "empty": ("no .onnx file", lambda folder: (folder / "model.onnx").unlink()),
        "without data": ("is missing", lambda folder: (folder / "model.onnx.data").unlink()),
        "cut off": ("is cut off", lambda folder: _replace(folder / "model.onnx.data")),
        "damaged": ("is damaged", lambda folder: (folder / "model.onnx").write_bytes(b"\xff" * 99)),
        "no json": ("config.json cannot be read", lambda folder: (folder / "config.json").write_text("{")),
    }
    for name, (message, damage) in cases.items():
        folder = tmp_path / name
        shutil.copytree(q4_0_onnx, folder, copy_function=_link)
        damage(folder)
        with pytest.raises(ModelFileError, match=message):
            onnx.load(folder, LoadOptions(n_ctx=32))


def test_links_as_in_the_cache_of_hugging_face(q4_0_onnx, tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "1"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for i, file in enumerate(q4_0_onnx.iterdir()):
        os.link(file, blobs / f"{i:064}")
        (snapshot / file.name).symlink_to(f"../../blobs/{i:064}")
    model = onnx.load(snapshot, LoadOptions(n_ctx=32, n_threads=1))
    assert model.backend.forward([1]).shape == (1, model.backend.n_vocab)
    model.backend.close()


def _link(source, target):
    """Copies of the small files, a link to the large one."""
    return os.link(source, target) if str(source).endswith(".data") else shutil.copy2(source, target)


def _replace(path):
    path.unlink()
    path.write_bytes(b"short")
