"""On real weights: a draft whose ids are not the target's drafts where it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import edgespec
from edgespec.errors import DraftError
from edgespec.types import SamplingSettings
from tests.backends.cut import cut

pytestmark = pytest.mark.model
SETTINGS = {"n_ctx": 256, "n_threads": 1, "backend": "llamacpp"}
PROMPT = "Once upon a time, in a small village by the sea, there lived"
LAYERS, TOKENS = 30, 49_152
SAMPLINGS = {
    "greedy": SamplingSettings(temperature=0.0),
    "sampled": SamplingSettings(temperature=0.8, seed=7),
}


@pytest.fixture(scope="module")
def files(smollm2_path, tmp_path_factory) -> dict[str, Path]:
    """The small model with its ids backwards, and what its first layers and tokens make."""
    folder = tmp_path_factory.mktemp("drafts")
    how = {
        "backwards": {"layers": LAYERS, "tokens": TOKENS, "backwards": True},
        "short": {"layers": LAYERS, "tokens": 8192},
        "letters": {"layers": 1, "tokens": 300},
    }
    return {name: cut(smollm2_path, folder / f"{name}.gguf", **cuts) for name, cuts in how.items()}


def drafting(target: Path, draft: Path):
    changes = {"draft": draft, "spec": "draft", "draft_max": 3, "numerics": "exact"}
    return edgespec.load(target, **SETTINGS, **changes)


@pytest.fixture(scope="module")
def expected(smollm2_path) -> dict[str, str]:
    with edgespec.load(smollm2_path, spec="off", **SETTINGS) as model:
        return {name: said(model, how)[0] for name, how in SAMPLINGS.items()}


def said(model, how) -> tuple[str, int, int]:
    """(text, drafted, accepted)"""
    text = "".join(event.text for event in model.complete(PROMPT, how, max_tokens=32))
    return text, model.stats.draft_n, model.stats.draft_n_accepted


def test_the_same_weights_in_other_ids_are_right(files, smollm2_path, expected):
    with drafting(smollm2_path, files["backwards"]) as model:
        assert "49,152 of its 49,152 tokens are the target's, 100% of the tokens" in model.pairing
        for name, how in SAMPLINGS.items():
            text, drafted, accepted = said(model, how)
            assert text == expected[name]
            assert accepted >= 0.9 * drafted > 0


def test_fewer_tokens_say_the_same_and_are_sometimes_right(files, smollm2_path, expected):
    with drafting(smollm2_path, files["short"]) as model:
        assert "its text is cut into the target's tokens: 8,192 of its 8,192 tokens" in model.pairing
        for name, how in SAMPLINGS.items():
            text, drafted, accepted = said(model, how)
            assert text == expected[name]
            assert 0 < accepted < drafted


def test_a_text_draft_that_is_measured_is_the_controller_s(files, smollm2_path, expected):
    with edgespec.load(smollm2_path, draft=files["short"], calibrate="first", **SETTINGS) as model:
        for name, how in SAMPLINGS.items():
            assert said(model, how)[0] == expected[name]
            assert model.draft_info is not None


def test_too_little_in_common_is_an_error_with_the_figures(files, smollm2_path):
    figures = r"300 of its 300 .*, \d+% of .* text; one of the target's takes 2\.\d\d of its own, 100% come"
    with pytest.raises(DraftError, match=rf"letters\.gguf \(300 tokens\) cannot draft .*: {figures}"):
        drafting(smollm2_path, files["letters"])


def test_none_is_translated_that_was_not_asked_for(files, smollm2_path, tmp_path, monkeypatch):
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("EDGESPEC_MODELS", str(tmp_path))
    (tmp_path / "target.gguf").symlink_to(smollm2_path)
    (tmp_path / "short.gguf").symlink_to(files["short"])
    with edgespec.load("target", **SETTINGS) as model:
        assert model.draft_info is None
        assert "short: its vocabulary has 8,192 tokens, the target's 49,152" in model.pairing
