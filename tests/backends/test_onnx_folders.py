"""Folders that other programs made: a cache that grows, graphs without edits, names and refusals."""

import numpy as np
import onnx as graphs
import pytest

from edgespec.backends import onnx
from edgespec.backends.base import LoadOptions
from edgespec.errors import BackendError, ModelFileError, UnsupportedModelError
from tests.backends.tiny_onnx import N_CTX, N_VOCAB, decoder

IDS = [5, 9, 30, 7, 7, 12, 3, 21, 38, 11, 4, 16]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return decoder(tmp_path_factory.mktemp("tiny") / "tiny-decoder")


@pytest.fixture
def backend(folder):
    model = onnx.load(folder, LoadOptions(n_threads=1))
    yield model.backend
    model.backend.close()


def alone(backend, tokens):
    rows = []
    for token in tokens:
        rows.append(backend.forward([token])[0].copy())
        backend.commit([0])
    return np.stack(rows)


def test_a_growing_cache(backend):
    assert (backend.n_ctx, backend.n_vocab) == (N_CTX, N_VOCAB)
    whole = backend.forward(IDS).copy()
    backend.commit(())
    rows = alone(backend, IDS)
    np.testing.assert_allclose(whole, rows, atol=1e-4)
    backend.truncate(5)
    assert np.array_equal(alone(backend, IDS[5:]), rows[5:])


def test_rejected_rows_are_cut_from_a_growing_cache(backend):
    rows = alone(backend, IDS)
    backend.truncate(4)
    backend.forward([IDS[4], 1, 2, 3])
    backend.commit([0])
    assert backend.length == 5
    assert np.array_equal(alone(backend, IDS[5:]), rows[5:])


def test_no_branches_without_a_bias(backend):
    assert not backend.capabilities.tree
    with pytest.raises(BackendError, match="branches"):
        backend.forward([1, 2, 3], [-1, 0, 0])


def test_the_folder_says_what_it_is(folder):
    model = onnx.load(folder, LoadOptions(n_threads=1))
    assert (model.info.name, model.info.architecture, model.info.n_ctx_train) == (
        "tiny-decoder",
        "tiny",
        N_CTX,
    )
    assert model.vocabulary.tokenize("w3 w7", special=False) == [3, 7]
    assert model.vocabulary.is_eog(2)
    model.backend.close()


def test_the_path_of_a_graph_is_enough(folder):
    model = onnx.load(folder / "model.onnx", LoadOptions(n_threads=1))
    assert model.backend.forward([1]).shape == (1, N_VOCAB)
    model.backend.close()


def _renamed(graph, old, new):
    for value in (*graph.input, *graph.output):
        value.name = value.name.replace(old, new)
    for node in graph.node:
        node.input[:] = [name.replace(old, new) for name in node.input]
        node.output[:] = [name.replace(old, new) for name in node.output]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("past_key_values", "memory", "no cache"),
        ("position_ids", "where", "unknown"),
        ("logits", "out", "no decoder"),
    ],
)
def test_graphs_that_are_no_decoder(folder, tmp_path, old, new, message):
    model = graphs.load(folder / "model.onnx")
    _renamed(model.graph, old, new)
    graphs.save(model, tmp_path / "model.onnx")
    with pytest.raises(UnsupportedModelError, match=message):
        onnx.load(tmp_path, LoadOptions())


def test_several_graphs_and_none(folder, tmp_path):
    assert onnx.refuses(folder) is None
    assert "no such file" in onnx.refuses(tmp_path / "nowhere")
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).write_bytes(b"")
    assert "several" in onnx.refuses(tmp_path)
    with pytest.raises(ModelFileError, match="several"):
        onnx.load(tmp_path, LoadOptions())


def test_without_a_tokenizer(folder, tmp_path):
    (tmp_path / "model.onnx").write_bytes((folder / "model.onnx").read_bytes())
    with pytest.raises(ModelFileError, match=r"tokenizer\.json"):
        onnx.load(tmp_path, LoadOptions())
