"""Cards are complete, well formed, and found in a checkout and in an installed package."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hub_files import SMALL, card, card_toml

from edgespec import hub
from edgespec.errors import ModelFileError
from edgespec.hub import catalogue
from edgespec.hub.catalogue import HuggingFaceSource, WheelSource


@pytest.mark.parametrize("found", catalogue.cards(), ids=lambda found: found.name)
def test_every_card_is_usable(found):
    assert re.fullmatch(r"[a-z0-9.-]+:[a-z0-9.-]+", found.name)
    assert found.file.endswith(".gguf")
    assert found.draft is None or found.draft in {other.name for other in catalogue.cards()}
    for source in found.sources:
        wanted = source.file if isinstance(source, HuggingFaceSource) else source.member
        assert wanted.endswith(".gguf")


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
