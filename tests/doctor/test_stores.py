"""What doctor says of the models on disk, with the command that fixes each fault."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections import namedtuple
from pathlib import Path

import pytest
from hub.hub_files import SMALL, gguf
from hub.stores import hugging_face, lm_studio, ollama

from edgespec.api import Settings
from edgespec.cli import main
from edgespec.doctor import Section, Subject
from edgespec.doctor.stores import stores
from edgespec.hub.local.leftovers import STALE


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("EDGESPEC_MODELS", str(tmp_path / "my models"))
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "cache"))
    (tmp_path / "my models").mkdir()
    return tmp_path


def section() -> Section:
    return stores(Subject(None, Settings(), lambda _: None))


def fixes() -> dict[str, str | None]:
    return {finding.text.split()[0]: finding.fix for finding in section().findings}


def test_what_is_sound_is_counted(home):
    (home / "my models/a.gguf").write_bytes(SMALL)
    ollama(home / ".ollama/models", "registry.ollama.ai/library/m/1b", gguf(vocabulary=51))
    facts = dict(section().facts)
    assert facts["edgespec"].startswith("1 model, ")
    assert facts["Ollama"].startswith("1 model, ")
    assert str(home / "my models") in facts["free space"]
    assert section().findings == ()


def test_what_is_broken_has_the_command_of_its_store(home):
    cut = SMALL[:-100]
    repo = home / "my models/org/repo"
    repo.mkdir(parents=True)
    (repo / "m-Q8_0.gguf").write_bytes(cut)
    (home / "my models/a b.gguf").write_bytes(cut)
    ollama(home / ".ollama/models", "registry.ollama.ai/library/m/1b", b"<html>")
    hugging_face(home / ".cache/huggingface/hub", "o/r", {"m-Q4_0.gguf": b"version https://git-lfs"})
    path = lm_studio(home / ".lmstudio/models", "p/m/x y-Q4_0.gguf", cut)
    assert fixes() == {
        "org/repo:Q8_0": "edgespec rm org/repo:Q8_0 && edgespec pull org/repo:Q8_0",
        "a": "edgespec rm 'a b'",
        "m:1b": "ollama rm m:1b",
        "o/r:Q4_0": "hf cache rm model/o/r",
        "p/m:Q4_0": f"rm {shlex.quote(str(path))}",
    }


def test_what_it_says_to_do_does_it(home):
    (home / "my models/a b.gguf").write_bytes(SMALL[:-100])
    fix = fixes()["a"]
    assert main(shlex.split(fix)[1:]) == 0
    assert section().findings == ()


def test_downloads_that_never_ended_are_named(home):
    ours = home / "my models/.m.gguf.0123456789abcdef.part"
    theirs = home / ".cache/huggingface/hub/models--o--r/blobs/x.incomplete"
    for path in (ours, theirs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, (0, time.time() - 3 * STALE))
    assert fixes() == {ours.name: f"rm {shlex.quote(str(ours))}", theirs.name: "hf cache prune"}


def test_little_room_is_said_with_what_takes_most(home, monkeypatch):
    (home / "my models/a.gguf").write_bytes(SMALL)
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1_000_000_000))
    (finding,) = section().findings
    assert finding.fix == "edgespec rm a"
    assert "Only 1" in finding.text
    shutil.rmtree(home / "my models")
    (finding,) = section().findings
    assert finding.fix == "EDGESPEC_MODELS=/another/folder"
