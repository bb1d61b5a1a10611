"""What the system tells, and what follows from it."""

import sys

import pytest

from edgespec.api import Settings
from edgespec.doctor import Subject
from edgespec.doctor.subject import _Watch

machine = sys.modules["edgespec.doctor.machine"]
"""The module; in its package the function has its name."""


@pytest.fixture
def quiet(monkeypatch):
    """No GPU and no matrix unit, whatever there is."""
    monkeypatch.setattr(machine, "system_gpus", lambda: ())
    monkeypatch.setattr(machine, "_llamacpp_gpus", lambda: ())
    monkeypatch.setattr(machine, "_flags", lambda: frozenset())
    return monkeypatch


def examined():
    return machine.machine(Subject(None, Settings()))


def test_a_machine_with_nothing_special_has_no_findings(quiet):
    section = examined()
    assert section.findings == ()
    assert dict(section.facts)["GPU"] == "none found"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_gpu_that_the_build_cannot_use_is_found(quiet, tmp_path):
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771 MiB'\n")
    command.chmod(0o755)
    quiet.undo()
    quiet.setattr(machine, "_flags", lambda: frozenset())
    quiet.setattr(machine, "_llamacpp_gpus", lambda: ())
    quiet.setattr(machine.sys, "platform", "linux")
    quiet.setenv("PATH", str(tmp_path), prepend=":")
    section = examined()
    assert section.figures["gpus"] == ["NVIDIA H200, 143771 MiB"]
    assert len(section.findings) == 1
    assert "-DGGML_CUDA=on" in section.findings[0].fix
    quiet.setattr(machine, "_llamacpp_gpus", lambda: ("NVIDIA H200",))
    assert examined().findings == ()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("script", ["exit 9", "echo; kill -9 $$", "echo"])
def test_a_driver_that_answers_nothing_is_no_gpu(quiet, tmp_path, script):
    command = tmp_path / "nvidia-smi"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    quiet.undo()
    quiet.setattr(machine.sys, "platform", "linux")
    quiet.setenv("PATH", str(tmp_path), prepend=":")
    assert machine.system_gpus() == ()


@pytest.mark.parametrize(
    ("built", "safe", "words"),
    [(False, True, "does not use"), (True, False, "would crash"), (True, True, None)],
)
def test_a_matrix_unit_that_lies_idle_is_found_with_the_build_that_uses_it(quiet, built, safe, words):
    quiet.setattr(machine, "_flags", lambda: frozenset({"amx_int8"}))
    quiet.setattr("edgespec.backends.llamacpp.library.has_amx", lambda: built)
    quiet.setattr("edgespec.backends.llamacpp.amx.amx_is_safe", lambda: safe)
    findings = examined().findings
    assert len(findings) == (words is not None)
    for finding in findings:
        assert words in finding.text
        assert finding.fix == machine.MATRIX_BUILD


def test_the_watch_tells_faults_and_what_others_took():
    watch = _Watch()
    sum(range(10**6))
    assert watch.faults is None or watch.faults >= 0
    assert watch.others is None or 0.0 <= watch.others <= 1.0
