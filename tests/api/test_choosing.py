"""The choice of a backend: by expected rate, kept, and never made by something that cannot run."""

import sys
import time
from types import SimpleNamespace

import pytest

from edgespec.api import choosing
from edgespec.backends.base import LoadedModel, LoadOptions, ModelInfo
from edgespec.backends.registry import ADAPTERS
from edgespec.backends.scripted import ScriptedBackend, SimulatedClock
from edgespec.errors import BackendError, Cancelled

from bench_kit import BYTES  # isort: skip
from engine_kit import looping  # isort: skip


class Sleeping(SimulatedClock):
    """Simulated time that passes for everybody."""

    def advance(self, seconds):
        time.sleep(seconds)


def adapter(seconds, broken=False):
    """A backend whose pass of n rows takes `seconds(n)`."""

    def load(path, options):
        if broken:
            raise BackendError("it does not run here")
        backend = ScriptedBackend(looping(256), 256, n_ctx=512, clock=Sleeping(), seconds=seconds)
        info = ModelInfo(str(path), "t", "t", "F32", 0, 9, 512, "x", "x", None, {"which": seconds(1)})
        return LoadedModel(backend, BYTES, info)

    return SimpleNamespace(missing=lambda: None, refuses=lambda path: None, load=load)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Registers adapters under their names; returns the model's path."""
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")

    def register(**adapters):
        for name in [*reversed(ADAPTERS)]:  # put back from the last to the first, and the order matters
            monkeypatch.delitem(ADAPTERS, name)
        for name, made in adapters.items():
            monkeypatch.setitem(ADAPTERS, name, f"chosen_{name}")
            monkeypatch.setitem(sys.modules, f"chosen_{name}", made)
        return path

    return register


def compare(path, progress=lambda *_: None):
    return {c.backend: c for c in choosing.compare(path, LoadOptions(), progress, turns=2)}


def test_flat_costs_win_over_a_faster_single_row(model):
    path = model(
        steep=adapter(lambda n: 0.002 * n), flat=adapter(lambda n: 0.003), slow=adapter(lambda n: 0.03 * n)
    )
    assert choosing.chosen(path, LoadOptions()) is None
    found = compare(path)
    assert found["steep"].single < found["flat"].single
    assert found["flat"].rate > found["steep"].rate
    assert "too long" in found["slow"].excluded
    assert choosing.chosen(path, LoadOptions()) == "flat"
    assert choosing.known(path) == tuple(found.values())
    for asked in ({"type_k": "q8_0"}, {"flash_attn": True}, {"n_gpu_layers": 0}, {"load_mode": "none"}):
        assert choosing.chosen(path, LoadOptions(**asked)) is None, "others would not know what to do with it"


def test_where_memory_is_short_one_is_closed_before_the_next_is_loaded(model, monkeypatch):
    monkeypatch.setattr(choosing, "free_memory", lambda: 0)
    path = model(steep=adapter(lambda n: 0.002 * n), flat=adapter(lambda n: 0.003))
    assert choosing.best(list(compare(path).values())) == "flat"


def test_a_backend_that_fails_is_not_chosen(model):
    path = model(broken=adapter(lambda n: 0.001, broken=True), fine=adapter(lambda n: 0.002 * n))
    assert compare(path)["broken"].excluded == "it does not run here"
    assert choosing.chosen(path, LoadOptions()) == "fine"


def test_nothing_is_kept_of_a_comparison_that_was_interrupted(model):
    path = model(a=adapter(lambda n: 0.001), b=adapter(lambda n: 0.001))

    def stop(label, share):
        if label == "measuring b":
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        compare(path, stop)
    assert choosing.chosen(path, LoadOptions()) is None


@pytest.mark.parametrize("kept", [None, 3, [3], [{"backend": "a", "speed": 1}]])
def test_what_is_damaged_in_the_store_chooses_nothing(model, kept):
    path = model(a=adapter(lambda n: 0.001))
    choosing._store(path).put("backends", kept)
    assert choosing.chosen(path, LoadOptions()) is None
