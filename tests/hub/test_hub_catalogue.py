"""Cards are complete, well formed, and found in a checkout and in an installed package."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hub_files import SMALL, card, card_toml

from edgespec import hub
from edgespec.errors import ModelFileError
from edgespec.hub import catalogue
from edgespec.hub.catalogue import HuggingFaceSource, RepositorySource, WheelSource
from edgespec.hub.quantization import quantization_of
from edgespec.hub.reference import RemoteModel, parse

BY_NAME = {found.name: found for found in catalogue.cards()}
FAMILIES = ("qwen2.5", "qwen2.5-coder", "qwen3", "qwen3-coder", "llama3.1", "llama3.2", "gemma3", "smollm2")
FAMILIES += ("phi4", "phi4-mini", "mistral", "deepseek-r1", "gpt-oss")


@pytest.mark.parametrize("found", BY_NAME.values(), ids=lambda found: found.name)
def test_every_card_is_whole(found):
    """Facts that people choose by, and a way to get the file."""
    assert re.fullmatch(r"[a-z0-9.-]+:[a-z0-9.-]+", found.name)
    assert all(re.fullmatch(r"[a-z0-9.:-]+", alias) for alias in found.aliases)
    assert found.title
    assert found.licence
    assert found.architecture
    assert quantization_of(f"x-{found.quantization}.gguf") == found.quantization
    assert 1_000_000 < found.size < 200_000_000_000
    assert 1024 <= found.context <= 10_000_000
    assert 1 < found.size * 8 / found.parameters < 20  # bits a weight
    for source in found.sources:
        match source:
            case HuggingFaceSource():
                assert source.file.endswith(".gguf")
                assert found.sha256
            case WheelSource():
                assert source.member.endswith(".gguf")
            case RepositorySource():
                assert parse(source.repo, ()) == RemoteModel(source.repo)
                assert source.repo.lower().endswith("-gguf")
                assert found.size % 1_000_000 == 0, "rounded where no checksum pins it"


@pytest.mark.parametrize("found", BY_NAME.values(), ids=lambda found: found.name)
def test_every_card_says_what_drafts_for_it(found):
    """A much smaller model of the catalogue, or none: then copying has to do."""
    assert found.draft
    if found.draft != "none":
        draft = BY_NAME[found.draft]
        assert draft.size * 3 <= found.size
        assert draft.architecture == found.architecture


def test_the_families_that_people_run_are_there():
    assert {name.partition(":")[0] for name in BY_NAME} >= set(FAMILIES)


def test_a_card_has_the_name_of_its_file():
    files = {path.stem for path in catalogue.folder().glob("*.toml")}
    assert files == {name.replace(":", "-") for name in BY_NAME}


def test_the_default_card():
    found = hub.default_card()
    assert (found.name, found.size, found.licence) == ("smollm2:135m", 98_362_432, "Apache-2.0")
    assert [type(source) for source in found.sources] == [HuggingFaceSource, WheelSource]


def test_a_card_survives_its_file(tmp_path):
    wanted = card(SMALL, HuggingFaceSource("a/b", "c.gguf", "v1"), WheelSource("p", "1.0", "p/c.gguf", 7))
    (tmp_path / "one.toml").write_text(card_toml(wanted), encoding="utf-8")
    assert catalogue.cards(tmp_path) == (wanted,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("size = ", "size = -"), "size must be a whole number above 0"),
        (("size = ", "bytes = "), "size is missing"),
        (('name = "tiny:1m"', 'name = ""'), "name must be a text"),
        (('title = "Tiny"', "title = 3"), "title must be a text"),
        (('title = "Tiny"', 'title = "T"\ncolour = 1'), "unknown field colour"),
        (('sha256 = "', 'sha256 = "x'), "sha256 must be 64"),
        (('file = "tiny', 'file = "../tiny'), "file must be a plain file name"),
        (('"huggingface"', '"ftp"'), "sources[1].kind 'ftp'"),
        (("repo = ", "repos = "), "sources[1].repo is missing"),
        (("[[sources]]", "[[other]]"), "sources must be a list"),
        (("title", "title ="), "at line 2"),
        (('["tiny"]', "[1]"), "aliases must be a list of names"),
        (("sha256 = ", "sha1 = "), "unknown field file"),
    ],
)
def test_a_malformed_card_names_its_field(tmp_path, change, said):
    path = tmp_path / "bad.toml"
    path.write_text(card_toml(card(SMALL)).replace(*change, 1), encoding="utf-8")
    with pytest.raises(ModelFileError) as caught:
        catalogue.cards(tmp_path)
    assert str(caught.value).startswith("model card bad.toml: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_cards_may_not_share_a_name_or_a_file(tmp_path):
    one = card(SMALL)
    for other in (replace(one, file="b.gguf", name="b:1"), replace(one, name="b:1", aliases=())):
        (tmp_path / "a.toml").write_text(card_toml(one), encoding="utf-8")
        (tmp_path / "b.toml").write_text(card_toml(other), encoding="utf-8")
        with pytest.raises(ModelFileError, match="share"):
            catalogue.cards(tmp_path)


def test_a_broken_installation_says_so(tmp_path):
    with pytest.raises(ModelFileError, match="install edgespec again"):
        catalogue.cards(tmp_path)


def test_an_installed_package_has_its_cards_beside_the_module(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "__file__", str(tmp_path / "edgespec" / "hub" / "catalogue.py"))
    assert catalogue.folder() == tmp_path / "models"
    (tmp_path / "edgespec" / "hub" / "catalogue").mkdir(parents=True)
    assert catalogue.folder() == tmp_path / "edgespec" / "hub" / "catalogue"
