"""Models of other programs are found, named and used where they are."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hub_files import BIG, SMALL, card, gguf
from stores import hugging_face, lm_studio, ollama

from edgespec import hub
from edgespec.errors import EdgespecError, UsageError
from edgespec.hub import local, used
from edgespec.hub.catalogue import HuggingFaceSource
from edgespec.hub.local.leftovers import STALE


@pytest.fixture
def home(tmp_path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "hf/hub"


def names() -> list[str]:
    return [model.name for model in local.found()]


def variant(i: int) -> bytes:
    """Another sound little model."""
    return gguf(vocabulary=50 + i)


def test_hugging_face_s_cache(cache, no_hub):
    snapshot = hugging_face(cache, "org/tiny-GGUF", {"m-Q8_0.gguf": SMALL, "sub/m-q4_k_m.gguf": variant(1)})
    assert names() == ["org/tiny-GGUF:Q8_0", "org/tiny-GGUF:Q4_K_M"]
    assert hub.resolve("org/tiny-GGUF:q8_0") == snapshot / "m-Q8_0.gguf"
    assert hub.resolve("hf.co/Org/Tiny-gguf") == snapshot / "sub/m-q4_k_m.gguf"
    assert hub.resolve("hf:org/tiny-GGUF/m-Q8_0.gguf").is_symlink()


def test_of_several_revisions_the_main_one_counts(cache, no_hub):
    hugging_face(cache, "org/m", {"m-Q8_0.gguf": SMALL, "m-Q2_K.gguf": SMALL}, revision="a" * 40, main=False)
    main = hugging_face(cache, "org/m", {"m-Q8_0.gguf": variant(1)}, revision="b" * 40)
    assert hub.resolve("org/m:Q8_0") == main / "m-Q8_0.gguf"
    assert hub.resolve("org/m:Q2_K").read_bytes() == SMALL


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "XDG_CACHE_HOME", None])
def test_where_hugging_face_s_cache_is(tmp_path, home, monkeypatch, variable):
    monkeypatch.delenv("HF_HOME")
    where = {"HF_HUB_CACHE": tmp_path / "x", "XDG_CACHE_HOME": tmp_path / "x/huggingface/hub"}.get(
        variable, home / ".cache/huggingface/hub"
    )
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "x"))
    hugging_face(where, "org/m", {"m-Q8_0.gguf": SMALL})
    assert names() == ["org/m:Q8_0"]


@pytest.mark.parametrize("chosen", ["usual", "older", "settings", "pointer"])
def test_lm_studio_s_models(tmp_path, home, no_hub, chosen):
    models = {
        "usual": home / ".lmstudio/models",
        "older": home / ".cache/lm-studio/models",
        "settings": tmp_path / "elsewhere",
        "pointer": tmp_path / "lms/models",
    }[chosen]
    if chosen == "settings":
        (home / ".lmstudio").mkdir()
        (home / ".lmstudio/settings.json").write_text(json.dumps({"downloadsFolder": str(models)}))
    if chosen == "pointer":
        (home / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'lms'}\n")
    path = lm_studio(models, "publisher/model-GGUF/model-Q4_K_M.gguf", SMALL)
    lm_studio(models, "publisher/model-GGUF/mmproj-model-f16.gguf", SMALL)
    assert names() == ["publisher/model-GGUF:Q4_K_M"]
    assert hub.resolve("publisher/model-GGUF") == path
    assert hub.resolve("model-q4_k_m") == path


def test_ollama_s_models(home, no_hub):
    root = home / ".ollama/models"
    blob = ollama(root, "registry.ollama.ai/library/llama3.2/3b", SMALL)
    ollama(root, "registry.ollama.ai/library/phi4/latest", variant(1))
    ollama(root, "registry.ollama.ai/someone/model/q4_0", variant(2))
    ollama(root, "hf.co/org/repo-GGUF/Q8_0", variant(3))
    assert sorted(names()) == ["llama3.2:3b", "org/repo-GGUF:Q8_0", "phi4:latest", "someone/model:q4_0"]
    assert hub.resolve("llama3.2:3b") == blob
    for typed, i in (("PHI4", 1), ("someone/model:q4_0", 2), ("org/repo-GGUF:Q8_0", 3)):
        assert hub.resolve(typed).read_bytes() == variant(i)
    with pytest.raises(UsageError, match=r"did you mean .*llama3\.2:3b"):
        hub.resolve("llama3.2:3c")
    told: list[str] = []
    hub.resolve("llama3.2:3b", notify=told.append)
    assert told == ["llama3.2:3b: using the one that Ollama has"]


def test_manifests_that_are_not_what_they_should_be(home, monkeypatch, tmp_path):
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "o"))
    sound = ollama(tmp_path / "o", "registry.ollama.ai/library/m/good", SMALL)
    for i, text in enumerate(
        ("", "[]", "{}", '{"layers": 3}', '{"layers": [{"digest": "../../x"}]}', "\0\xff")
    ):
        (tmp_path / f"o/manifests/registry.ollama.ai/library/m/bad{i}").write_bytes(text.encode("latin-1"))
    evil = json.dumps(
        {
            "layers": [
                {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../../etc/passwd"}
            ]
        }
    )
    (tmp_path / "o/manifests/registry.ollama.ai/library/m/evil").write_text(evil)
    assert [model.path for model in local.found()] == [sound]


def test_a_card_is_found_wherever_it_is(cache, home, shelf, store, no_hub):
    shelf(card(SMALL, HuggingFaceSource("org/tiny", "tiny.gguf")))
    blob = ollama(home / ".ollama/models", "registry.ollama.ai/library/other/name", SMALL)
    assert hub.resolve("tiny") == blob  # by its checksum
    snapshot = hugging_face(cache, "org/tiny", {"tiny.gguf": SMALL})
    assert hub.resolve("tiny") == snapshot / "tiny.gguf"
    store.mkdir()
    (store / "tiny.gguf").write_bytes(SMALL)
    assert hub.resolve("tiny") == store / "tiny.gguf"
    assert {model.name for model in local.titled(local.found(), hub.cards())} == {"tiny:1m"}


def test_a_file_that_two_stores_share_is_listed_once(cache, home):
    snapshot = hugging_face(cache, "org/m", {"m-Q8_0.gguf": SMALL})
    link = home / ".lmstudio/models/org/m/m-Q8_0.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(snapshot / "m-Q8_0.gguf")
    assert [model.place.kind for model in local.found()] == ["huggingface"]


def test_a_nearest_quantisation_on_disk_is_told(cache, no_hub):
    hugging_face(cache, "org/m", {"m-Q8_0.gguf": SMALL})
    told: list[str] = []
    hub.resolve("org/m", notify=told.append)
    assert told == ["org/m: using Q8_0, which is on this machine"]


def test_names_that_several_models_share(home):
    models = home / ".lmstudio/models"
    lm_studio(models, "a/m/x.gguf", SMALL)
    lm_studio(models, "b/m/x.gguf", BIG)
    with pytest.raises(UsageError, match=r"give one of hf:a/m/x\.gguf, hf:b/m/x\.gguf"):
        hub.resolve("x")
    assert hub.resolve("hf:b/m/x.gguf").read_bytes() == BIG


def test_facts_are_read_again_only_when_a_file_changes(store, monkeypatch):
    store.mkdir()
    for i in range(3):
        (store / f"m{i}.gguf").write_bytes(variant(i))
    first = local.listed(local.found())
    read: list[Path] = []
    real = local.index.gguf.check
    monkeypatch.setattr(local.index.gguf, "check", lambda path, *rest: read.append(path) or real(path, *rest))
    assert local.listed(local.found()) == first
    assert read == []
    (store / "m1.gguf").write_bytes(BIG)
    again = local.listed(local.found())
    assert read == [store / "m1.gguf"]
    assert again[1].facts.size == len(BIG)
    (store / "m1.gguf").unlink()
    assert [model.name for model in local.listed(local.found())] == ["m0", "m2"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"version": 1, "models": {"x": 3}}', b"\xff"])
def test_a_damaged_index_is_made_again(store, tmp_path, damage):
    store.mkdir()
    (store / "m.gguf").write_bytes(SMALL)
    expected = local.listed(local.found())
    index = tmp_path / "cache/headers.json"
    text = damage.replace(b'"x"', json.dumps(str(store / "m.gguf")).encode())
    index.write_bytes(text)
    assert local.listed(local.found()) == expected


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(store, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "file/cache"))
    store.mkdir()
    (store / "m.gguf").write_bytes(SMALL)
    assert [model.facts.condition for model in local.listed(local.found())] == ["ok"]
    used.mark(store / "m.gguf")
    assert used.when(store / "m.gguf") is None


def test_when_a_model_was_used(store):
    store.mkdir()
    (store / "m.gguf").write_bytes(SMALL)
    assert used.when(store / "m.gguf") is None
    used.mark(store / "m.gguf")
    last = used.when(store / "m.gguf")
    assert last is not None
    assert abs(last - time.time()) < 60


def test_a_broken_model_is_marked_and_the_rest_listed(store):
    store.mkdir()
    (store / "whole.gguf").write_bytes(SMALL)
    (store / "cut.gguf").write_bytes(SMALL[:-100])
    (store / "page.gguf").write_bytes(b"<!DOCTYPE html>")
    (store / "other.gguf").write_bytes(gguf(version=9))
    found = {model.name: model.facts for model in local.listed(local.found())}
    conditions = {name: facts.condition for name, facts in found.items()}
    assert conditions == {"whole": "ok", "cut": "broken", "page": "broken", "other": "unsupported"}
    assert found["cut"].problem.startswith("needs ")
    assert found["page"].problem.startswith("is a web page")


def test_downloads_that_never_ended(store, home, cache):
    ended = {
        store / "org/m/.m.gguf.0123456789abcdef.part",
        cache / "models--org--m/blobs/abc.incomplete",
        home / ".ollama/models/blobs/sha256-00-partial-3",
        home / ".lmstudio/models/a/b/m.gguf.part",
    }
    fresh = store / "org/m/.n.gguf.0123456789abcdef.part"
    for path in (*ended, fresh):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        if path != fresh:
            os.utime(path, (0, time.time() - 2 * STALE))
    assert {left.path for place in local.places() for left in local.leftovers(place)} == ended


def test_a_repository_without_quantisations_is_a_folder(cache, no_hub):
    files = {"config.json": b"{}", "model-00001-of-00002.safetensors": b"1"}
    index = {"weight_map": {str(i): f"model-0000{i}-of-00002.safetensors" for i in (1, 2)}}
    files["model.safetensors.index.json"] = json.dumps(index).encode()
    snapshot = hugging_face(cache, "org/tiny-4bit", files)
    with pytest.raises(EdgespecError):
        hub.resolve("org/tiny-4bit")
    (snapshot / "model-00002-of-00002.safetensors").write_bytes(b"2")
    assert hub.resolve("org/tiny-4bit") == snapshot
    assert hub.resolve(f"org/tiny-4bit@{snapshot.name}") == snapshot
    with pytest.raises(EdgespecError):
        hub.resolve("org/tiny-4bit:Q4_0")
