"""Drafts: those that are named are had or an error, those that are found are used where they may pay."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import little_draft
from hub.hub_files import model as gguf_model

import edgespec
from edgespec.api import fitting
from edgespec.api.payoff import objection
from edgespec.calibration import SECONDS, Measurements
from edgespec.errors import DraftError

pytestmark = pytest.mark.model
SETTINGS = {"n_ctx": 256, "n_threads": 1, "backend": "llamacpp"}


@pytest.fixture
def store(tmp_path, smollm2_path, monkeypatch) -> Path:
    """A machine with one model, which no card knows under this name."""
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("EDGESPEC_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "cache"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models/target.gguf").symlink_to(smollm2_path)
    return tmp_path / "models"


def loaded(**changes) -> tuple[str | None, str, list[str], str]:
    """(draft file, reason, notices, answer)"""
    told: list[str] = []
    with edgespec.load("target", notify=told.append, **SETTINGS, **changes) as model:
        text = "".join(event.text for event in model.complete("1, 2, 3,", max_tokens=6))
        draft = Path(model.draft_info.path).name if model.draft_info else None
        return draft, model.pairing, told, text


def test_a_draft_that_is_found_is_used_and_told(store, smollm2_path):
    draft, reason, told, _ = loaded()
    assert (draft, reason) == (None, "no other model is on this machine")
    little_draft(smollm2_path, store / "little.gguf")
    draft, reason, told, _ = loaded()
    assert draft == "little.gguf"
    assert reason.startswith("little: same vocabulary, same template, ")
    assert f"draft model {reason}" in told
    assert loaded(draft="none")[:2] == (None, "--draft none")
    assert loaded(spec="suffix")[:2] == (None, "none is used with --spec suffix")


def test_the_answer_is_the_same_with_and_without(store, smollm2_path):
    little_draft(smollm2_path, store / "little.gguf")
    named = {"spec": "draft", "draft_max": 3, "numerics": "exact"}
    with_draft, without = loaded(**named), loaded(spec="off")
    assert with_draft[0] == "little.gguf"
    assert with_draft[3] == without[3]


def test_one_that_is_found_and_fails_is_a_warning(store, smollm2_path):
    little_draft(smollm2_path, store / "hollow.gguf", weights=False)
    draft, reason, told, text = loaded()
    assert draft is None
    assert text
    assert f"no draft model: {reason}" in told
    assert "hollow.gguf" in reason


def test_one_that_is_found_and_does_not_fit_is_left_out(store, smollm2_path, monkeypatch):
    little_draft(smollm2_path, store / "little.gguf")
    monkeypatch.setattr(fitting, "free_memory", lambda: 270_000_000)
    draft, reason, told, text = loaded()
    assert draft is None
    assert text
    assert "little.gguf is left out: there is not enough free memory" in reason
    assert f"no draft model: {reason}" in told


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.write_bytes(b"GGUF\3\0\0\0"), "cut off inside its header"),
        (lambda path: path.write_bytes(gguf_model(9000)), "cannot"),
    ],
    ids=["missing", "corrupt", "hollow"],
)
def test_one_that_was_named_is_had_or_an_error(store, make, part):
    path = store.parent / "named.gguf"
    make(path)
    with pytest.raises(DraftError) as caught:
        loaded(draft=str(path))
    assert part in str(caught.value)
    assert "named.gguf" in str(caught.value)
    assert str(caught.value).isprintable()
    assert caught.value.exit_code == 1


def test_one_that_was_named_and_does_not_fit(store, smollm2_path, monkeypatch):
    path = little_draft(smollm2_path, store / "little.gguf")
    monkeypatch.setattr(fitting, "free_memory", lambda: 270_000_000)
    with pytest.raises(DraftError, match=r"cannot be used: with it .* GB are needed .* 0\.27 GB are free"):
        loaded(draft=str(path))


def test_a_draft_that_costs_too_much_is_not_loaded_but_now_and_then(tmp_path):
    stored = Measurements("model", {}, tmp_path)
    assert objection(stored, "draft", exact=False) is None  # nothing is known yet
    stored.put(SECONDS, {"1": 1.0, "2": 1.9, "4": 3.2, "8": 6.0})
    stored.put("draft_seconds:draft", 0.95)
    answers = [objection(stored, "draft", exact=False) for _ in range(20)]
    assert "0.95 of the target's time" in answers[0]
    assert [i for i, answer in enumerate(answers, 1) if answer is None] == [10, 20]
    stored.put("draft_seconds:draft", 0.01)
    stored.put(SECONDS, {"1": 1.0, "2": 1.01, "4": 1.02, "8": 1.05})
    assert objection(stored, "draft", exact=False) is None


def test_where_no_pass_of_several_rows_is_exact_a_draft_cannot_pay(tmp_path):
    stored = Measurements("model", {}, tmp_path)
    stored.put(SECONDS, {"1": 1.0, "2": 1.01, "4": 1.02, "8": 1.05})
    stored.put("draft_seconds:draft", 0.01)
    stored.put("exact_rows", [1])
    assert objection(stored, "draft", exact=False) is None
    assert "cannot pay here" in objection(stored, "draft", exact=True)
