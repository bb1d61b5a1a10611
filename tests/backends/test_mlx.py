"""MLX on the small model's real weights: agreement, rows, files it refuses, text with speculation."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from edgespec.backends import llamacpp, mlx
from edgespec.backends.base import LoadOptions
from edgespec.backends.mlx import memory
from edgespec.control import FixedPolicy
from edgespec.convert.weights import Weights
from edgespec.engine import Request, Session
from edgespec.errors import BackendError, Cancelled, ModelFileError, UnsupportedModelError, UsageError
from edgespec.proposers import ModelProposer
from edgespec.text.stream import TokenStream
from edgespec.text.vocabulary import compare
from edgespec.types import SamplingSettings
from tests.backends.conftest import requantised
from tests.backends.reference import FORCED_START, Reference, agreement

pytestmark = pytest.mark.model
TEXT = "def mean(values):\n    return sum(values) / len(values)\n\ndef mean(values):\n    return sum("
SAMPLINGS = {"greedy": SamplingSettings(temperature=0.0), "sampled": SamplingSettings(seed=1234)}


@pytest.fixture(scope="module")
def model(cut_path):
    loaded = mlx.load(cut_path, LoadOptions(n_ctx=512, max_rows=16))
    yield loaded
    loaded.backend.close()


def test_import_is_cheap():
    code = "import sys, edgespec.backends.mlx as m; m.missing(); sys.exit('mlx.core' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("kind", ["q8_0", "q4_0"])
def test_exact_weights_agree_with_the_float32_reference(kind, forced_tokens, request):
    """A few tokens, since all take minutes here; the cut of the model below is compared at length."""
    reference = request.getfixturevalue(f"{kind}_reference")[:4]
    loaded = mlx.load(request.getfixturevalue(f"{kind}_path"), LoadOptions(n_ctx=128))
    rows = loaded.backend.forward(forced_tokens[0][: FORCED_START + 4])[FORCED_START:].copy()
    loaded.backend.close()
    found = agreement(reference, rows)
    print(f"\n{kind}: {found}")
    assert found.largest < 1e-3
    assert found.top1 == 1


def test_a_cut_of_the_model_agrees_with_its_reference_row_by_row(model, cut_path):
    backend = model.backend
    ids = model.vocabulary.tokenize(TEXT * 2, special=False)[:33]
    expected = Reference(cut_path).logits([ids])[0]
    backend.truncate(0)
    alone = []
    for token in ids:
        alone.append(backend.forward([token])[0].copy())
        backend.commit([0])
    assert np.abs(np.array(alone) - expected).max() < 1e-3
    backend.truncate(0)
    for start in (0, 16):
        assert np.array_equal(backend.forward(ids[start : start + 16]), alone[start : start + 16])
        backend.commit(range(16))


@pytest.mark.parametrize("how", SAMPLINGS)
def test_text_with_a_draft_model_on_another_backend_is_text_without(how, model, cut_path):
    draft = llamacpp.load(cut_path, LoadOptions(n_ctx=512, max_rows=1, n_threads=1))
    shared = compare(model.vocabulary, draft.vocabulary, "target", "draft")
    prompt = model.vocabulary.tokenize(TEXT, special=False)
    expected, _, _ = decode(model, {}, SAMPLINGS[how], prompt)
    proposers = {"draft": ModelProposer(draft.backend, shared, lambda _: None)}
    ids, drafted, accepted = decode(model, proposers, SAMPLINGS[how], prompt)
    assert ids == expected
    assert accepted > drafted / 2, "the same weights, but for activations in 8 bits"
    draft.backend.close()


def decode(model, proposers, sampling, prompt):
    policy = FixedPolicy(tuple(proposers), 6)
    session = Session(model.backend, model.vocabulary.is_eog, policy, proposers)
    model.backend.truncate(0)
    request, stream = Request(sampling, max_tokens=24), TokenStream(model.vocabulary)
    events = list(session.generate(prompt, request, stream))
    assert model.backend.length == len(session.tokens)
    outcomes = [event.outcome for event in events]
    return (
        [piece.token for event in events for piece in event.pieces],
        sum(len(outcome.draft) for outcome in outcomes),
        sum(outcome.accepted for outcome in outcomes),
    )


def test_what_the_file_says(model, cut_path):
    info = model.info
    assert (info.backend, info.architecture, info.quantization) == ("mlx", "llama", "Q8_0")
    assert info.n_params == sum(np.prod(Weights(cut_path)[n].shape) for n in Weights(cut_path))
    assert info.n_ctx_train == 8192
    assert "<|im_start|>" in info.chat_template
    assert info.settings["library"].startswith("MLX 0.")


def test_loading_can_be_cancelled_and_tells_how_far_it_is(cut_path):
    shares = []

    def progress(share):
        shares.append(share)
        return share < 0.5

    with pytest.raises(Cancelled):
        mlx.load(cut_path, LoadOptions(progress=progress))
    assert shares == sorted(shares)
    assert 0.5 <= shares[-1] < 1


def test_options_that_mlx_has_not(cut_path):
    with pytest.raises(UsageError, match="cache"):
        mlx.load(cut_path, LoadOptions(type_k="q8_0"))
    with pytest.raises(UsageError, match="positive"):
        mlx.load(cut_path, LoadOptions(n_ctx=-1))


def one_line(reason: str) -> str:
    assert reason
    assert "\n" not in reason
    return reason


def test_types_without_an_exact_form_name_the_way_out(cut_path, tmp_path):
    path = requantised(cut_path, tmp_path / "k.gguf", "Q6_K")
    reason = one_line(mlx.refuses(path))
    assert "Q6_K" in reason
    assert "edgespec convert k.gguf --to mlx" in reason
    with pytest.raises(UnsupportedModelError, match="Q6_K"):
        mlx.load(path, LoadOptions())


def test_what_is_no_model(tmp_path):
    assert "config.json" in one_line(mlx.refuses(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert "safetensors" in one_line(mlx.refuses(tmp_path))
    (tmp_path / "x.gguf").write_text("GGUX, and more than a header of nothing")
    one_line(mlx.refuses(tmp_path / "x.gguf"))
    one_line(mlx.refuses(tmp_path / "none.gguf"))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("{", ModelFileError),
        ('{"model_type": "never_heard_of"}', UnsupportedModelError),
        ('{"model_type": "llama"}', UnsupportedModelError),
        ('{"model_type": "llama", "model_file": "evil.py"}', UnsupportedModelError),
    ],
)
def test_folders_that_cannot_be_loaded(content, error, tmp_path):
    (tmp_path / "config.json").write_text(content)
    (tmp_path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(error) as raised:
        mlx.load(tmp_path, LoadOptions())
    one_line(str(raised.value))


def test_a_damaged_shard_is_one_line(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "model.safetensors").write_bytes(os.urandom(100))
    with pytest.raises((ModelFileError, BackendError, UnsupportedModelError)) as raised:
        mlx.load(tmp_path, LoadOptions())
    one_line(str(raised.value))


def test_unified_memory_is_respected():
    assert memory.limits({"device_name": "a CPU"}) is None
    found = memory.limits({"max_recommended_working_set_size": 12 << 30, "memory_size": 16 << 30})
    told = []
    memory.check(4 << 30, found, "m", told.append)
    assert not told
    memory.check(12 << 30, found, "m", told.append)
    assert "12.9 GB of the 12.9 GB" in one_line(told[0])
    with pytest.raises(BackendError, match=r"17\.2 GB"):
        memory.check(20 << 30, found, "m", told.append)


def test_missing_says_how_to_install(monkeypatch):
    assert mlx.missing() is None
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "pip install 'edgespec[mlx]'" in one_line(mlx.missing())


def test_paths_are_taken_as_they_are(cut_path, tmp_path):
    odd = tmp_path / "模型 ü (1)" / "a b#%.gguf"
    odd.parent.mkdir()
    odd.symlink_to(Path(cut_path))
    loaded = mlx.load(odd, LoadOptions(n_ctx=64))
    assert loaded.backend.forward([5]).shape == (1, 4096)
    loaded.backend.close()


def test_a_process_ends_well_whatever_thread_used_the_model(cut_path):
    code = (
        "import sys, threading; from pathlib import Path; from edgespec.backends import mlx\n"
        "from edgespec.backends.base import LoadOptions\n"
        "def work():\n"
        "    mlx.load(Path(sys.argv[1]), LoadOptions(n_ctx=64)).backend.forward([5])\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    for _ in range(4):
        assert subprocess.run([sys.executable, "-c", code, cut_path]).returncode == 0


def test_threads_take_turns(model):
    rows = []
    expected = model.backend.forward([5, 6, 7]).copy()
    model.backend.commit(())

    def work():
        rows.append(model.backend.forward([5, 6, 7]).copy())
        model.backend.commit(())

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert all(np.array_equal(found, expected) for found in rows)
    assert len(rows) == 3
