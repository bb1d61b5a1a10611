"""Three real models: the smallest drafts for the middle one, or for the target itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import little_draft

import edgespec
from edgespec.control import SMALL
from edgespec.errors import DraftError, UsageError
from edgespec.types import SamplingSettings
from tests.backends.cut import cut

pytestmark = pytest.mark.model
SETTINGS = {"n_ctx": 256, "n_threads": 1, "backend": "llamacpp", "numerics": "exact"}
PROMPT = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,"
SAMPLINGS = (SamplingSettings(temperature=0.0), SamplingSettings(temperature=0.8, seed=7))


@pytest.fixture(scope="module")
def files(smollm2_path, tmp_path_factory) -> dict[str, Path]:
    """The small model again, a tiny one with its vocabulary, and one that shares too few tokens."""
    folder = tmp_path_factory.mktemp("cascade")
    (folder / "mid.gguf").symlink_to(smollm2_path)
    return {
        "mid": folder / "mid.gguf",
        "tiny": little_draft(smollm2_path, folder / "tiny.gguf"),
        "letters": cut(smollm2_path, folder / "letters.gguf", layers=1, tokens=300),
    }


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "cache"))


def said(model, sampling) -> str:
    return "".join(event.text for event in model.complete(PROMPT, sampling, max_tokens=24))


@pytest.fixture(scope="module")
def expected(smollm2_path) -> list[str]:
    with edgespec.load(smollm2_path, spec="off", **SETTINGS) as model:
        return [said(model, sampling) for sampling in SAMPLINGS]


def test_the_text_is_that_of_the_target(files, smollm2_path, expected):
    told: list[str] = []
    how = {"draft": files["mid"], "cascade": files["tiny"], "spec": "draft", "notify": told.append}
    with edgespec.load(smollm2_path, draft_max=2, **how, **SETTINGS) as model:
        assert Path(model.cascade_info.path).name == "tiny.gguf"
        assert [said(model, sampling) for sampling in SAMPLINGS] == expected
        assert model.stats.draft_n > 0
        assert set(model.speculation("draft").proposers) == {"draft", SMALL}
        for spec in ("auto", "suffix,draft", "off"):
            with model.using(model.speculation(spec)):
                assert said(model, SAMPLINGS[0]) == expected[0]
    assert not any("not smaller" in notice for notice in told)


def test_what_was_measured_and_learnt_is_kept(files, smollm2_path):
    how = {"draft": files["mid"], "cascade": files["tiny"], "calibrate": "first"}
    for start in range(2):
        told: list[str] = []
        with edgespec.load(smollm2_path, notify=told.append, **how, **SETTINGS) as model:
            assert model.calibrated
            said(model, SAMPLINGS[0])
            calibrator = model._calibrator
            assert calibrator.small.known
            assert sorted(calibrator.draft.passes) == [1, 2, 4, 8]
        assert any("measuring" in notice for notice in told) == (start == 0)
    kept = calibrator.stored.get(f"survival:{calibrator.small.key}:{calibrator.draft.key}")
    assert kept is not None


@pytest.mark.parametrize(
    ("draft", "cascade", "error", "part"),
    [
        ("none", "tiny", UsageError, "--cascade needs a draft model: give one with --draft MODEL"),
        ("mid", "nowhere", DraftError, "the cascade model cannot be used: "),
        ("mid", "letters", DraftError, "letters.gguf"),
    ],
)
def test_what_cannot_be_is_one_line(files, smollm2_path, tmp_path, draft, cascade, error, part):
    found = files | {"none": "none", "nowhere": tmp_path / "nowhere.gguf"}
    with pytest.raises(error) as caught:
        edgespec.load(smollm2_path, draft=found[draft], cascade=found[cascade], **SETTINGS)
    assert part in str(caught.value)
    assert str(caught.value).isprintable()


def test_one_that_is_not_smaller_is_told_of(files, smollm2_path):
    told: list[str] = []
    how = {"draft": files["tiny"], "cascade": files["mid"], "notify": told.append}
    with edgespec.load(smollm2_path, **how, **SETTINGS):
        assert "mid.gguf is not smaller than the draft model tiny.gguf: it can hardly pay" in told
    with edgespec.load(smollm2_path, spec="off", **how, **SETTINGS) as model:
        assert model.cascade_info is None
