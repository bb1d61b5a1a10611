"""A machine with and without a model."""

import json
import os
from dataclasses import asdict

import pytest

from edgespec.api import Settings
from edgespec.api.loading import assemble
from edgespec.backends.base import LoadedModel, ModelInfo
from edgespec.backends.registry import ADAPTERS
from edgespec.backends.scripted import ScriptedBackend
from edgespec.doctor import SECTIONS, Subject, examine
from edgespec.doctor.machine import memory
from edgespec.errors import Cancelled, ModelFileError, UsageError

from bench_kit import BYTES  # isort: skip
from engine_kit import looping  # isort: skip


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """No models and no measurements."""
    monkeypatch.setenv("EDGESPEC_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "cache"))
    for name in ("HOME", "HF_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "OLLAMA_MODELS"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A model in a table, loaded by `edgespec.load` from any path."""
    path = tmp_path / "table.gguf"
    path.write_bytes(b"GGUF")

    def load(path, settings):
        info = ModelInfo(str(path), "table", "table", "F32", 0, 9, 4096, "scripted", "none", None, {})
        return assemble(LoadedModel(ScriptedBackend(looping(256), 256), BYTES, info), path, None, settings)

    monkeypatch.setattr("edgespec.doctor.subject.api.load", load)
    return path


def sections(*arguments, **changes):
    return {section.title.split(":")[0]: section for section in examine(Subject(*arguments, **changes))}


def test_without_a_model_the_machine_is_told_and_nothing_is_fetched(monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a socket was opened"))
    found = sections(None, Settings())
    assert {"Machine", "Backends", "Model"} <= set(found)
    assert "V(n)" not in found
    machine = found["Machine"].figures
    assert 1 <= machine["cores_usable"] <= machine["cores_present"] == os.cpu_count()
    assert set(found["Backends"].figures) == set(ADAPTERS)
    assert found["Model"].findings[0].fix.startswith("edgespec pull ")


def test_a_backend_that_is_missing_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("edgespec.backends.llamacpp.missing", lambda: "not here: pip install it")
    found = sections(None, Settings())["Backends"]
    assert dict(found.facts)["llamacpp"] == "not here: pip install it"
    assert found.figures["llamacpp"] == {"found": False, "missing": "not here: pip install it"}


@pytest.mark.parametrize(
    ("name", "error"), [("no-such-model", UsageError), ("/no/such.gguf", ModelFileError)]
)
def test_a_model_that_was_asked_for_and_is_not_here_is_an_error(name, error):
    seen = []
    with pytest.raises(error):
        seen.extend(examine(Subject(name, Settings())))
    with pytest.raises(ModelFileError, match="edgespec pull"):
        _ = Subject("smollm2:135m", Settings()).picture


def test_a_model_is_measured_and_every_figure_follows_from_the_curve(table):
    steps = []
    found = sections(str(table), Settings(progress=lambda *step: steps.append(step)))
    curve = found["V(n)"]
    assert [bar.rows for bar in curve.chart][:4] == [1, 2, 3, 4]
    assert curve.chart[0].ratio == 1.0
    assert all(bar.exact and bar.seconds > 0 for bar in curve.chart)
    pays = found["Depth that pays, and the expected speedup over plain"]
    assert [row[0] for row in pays.table.rows] == ["0.60", "0.80", "0.95"]
    speedups = [entry["speedup"] for entry in pays.figures["copying"]]
    assert speedups == sorted(speedups)
    assert min(speedups) >= 1.0
    assert steps[-1] == ("measuring what passes cost", 1.0)
    assert found["Model"].figures["numerics"] == "exact"


def test_a_report_is_json(table):
    text = json.dumps([asdict(section) for section in examine(Subject(str(table), Settings()))])
    assert len(json.loads(text)) == len(SECTIONS) - 1, "there is no choice where no backend can load it"


def test_what_was_measured_is_there_for_the_next_answer(table):
    list(examine(Subject(str(table), Settings())))
    info = ModelInfo(str(table), "table", "table", "F32", 0, 9, 4096, "scripted", "none", None, {})
    loaded = LoadedModel(ScriptedBackend(looping(256), 256), BYTES, info)
    assert assemble(loaded, table, None, Settings()).calibrated


def test_measuring_can_be_cancelled(table):
    with pytest.raises(Cancelled):
        list(examine(Subject(str(table), Settings(), lambda model: _cancel_soon(model))))


def _cancel_soon(model):
    measure = model.measure

    def measured(seconds, progress, **how):
        return measure(seconds, lambda share: model.cancel(), **how)

    model.measure = measured


def test_memory_is_known_here():
    total, free = memory()
    assert total is not None
    assert free is None or 0 <= free <= total
