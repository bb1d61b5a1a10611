"""What a person types finds the file or card that is meant, or says what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hub_files import SMALL, card

from edgespec import hub
from edgespec.errors import ModelFileError, UsageError
from edgespec.hub.catalogue import cards
from edgespec.hub.reference import LocalName, RemoteModel, parse, unknown, visible


@pytest.mark.parametrize("typed", [None, "smollm2", "SmolLM2:135M", " smollm2-135m "])
def test_catalogue_names(typed):
    found = parse(typed, cards())
    assert found == hub.default_card()


@pytest.mark.parametrize(
    "name", ["模型 ü (1).gguf", "a b#%.gguf", "-p.gguf", "[x](y).gguf", "noending", "a:b.gguf"]
)
def test_odd_paths_come_back_as_they_were_given(tmp_path, monkeypatch, name):
    folder = tmp_path / "模型 ü (1)" / "a b#%"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(SMALL)
    assert hub.resolve(str(folder / name)) == folder / name
    monkeypatch.chdir(folder)
    assert hub.resolve(name) == Path(name)


def test_a_file_wins_over_a_catalogue_name_and_a_folder_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("smollm2").mkdir()
    assert parse("smollm2", cards()) == hub.default_card()
    Path("smollm2").rmdir()
    Path("smollm2").write_bytes(SMALL)
    assert parse("smollm2", cards()) == Path("smollm2")


def test_symlinks_stay_links(tmp_path):
    (tmp_path / "blob").write_bytes(SMALL)
    (tmp_path / "x.gguf").symlink_to("blob")
    assert hub.resolve(str(tmp_path / "x.gguf")) == tmp_path / "x.gguf"


def test_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x.gguf").write_bytes(SMALL)
    assert hub.resolve("~/x.gguf") == tmp_path / "x.gguf"
    with pytest.raises(ModelFileError, match="no such file"):
        hub.resolve("~/y.gguf")
    with pytest.raises(ModelFileError, match="no such home folder"):
        hub.resolve("~nobody-at-all/y.gguf")


@pytest.mark.parametrize("typed", ["smolm2", "smollm2:135n", "smollm2-135"])
def test_a_near_miss_is_told(typed):
    with pytest.raises(UsageError, match="did you mean smollm2:135m"):
        hub.resolve(typed)


@pytest.mark.parametrize(
    ("typed", "error", "said"),
    [
        ("", UsageError, "is empty"),
        ("   ", UsageError, "is empty"),
        ("zzzzqqq", UsageError, "`edgespec search` lists, such as smollm2:135m"),
        ("zz\nqq\x1b[31m", UsageError, "zz?qq?[31m"),
        ("x\0y", UsageError, "unknown model"),
        ("x" * 5000, UsageError, "unknown model"),
        ("nowhere/x.gguf", ModelFileError, "no such file"),
        ("./x", ModelFileError, "no such file"),
        ("/tmp/ü/nothing here.gguf", ModelFileError, "no such file"),
        ("/", ModelFileError, "is a folder"),
    ],
)
def test_what_cannot_be_meant(typed, error, said):
    with pytest.raises(error) as caught:
        hub.resolve(typed)
    assert said in str(caught.value)
    assert visible(str(caught.value)) == str(caught.value)
    assert caught.value.exit_code == (2 if error is UsageError else 1)


def test_a_dangling_link_and_a_pipe(tmp_path):
    (tmp_path / "x.gguf").symlink_to("gone")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="no such file"):
        hub.resolve(str(tmp_path / "x.gguf"))
    with pytest.raises(ModelFileError, match="not a regular file"):
        hub.resolve(str(tmp_path / "pipe"))


def test_the_name_of_several_cards():
    several = (card(SMALL), card(SMALL, name="other:2m", aliases=("other",)))
    assert "use one of tiny:1m, other:2m" in str(unknown("zzzz", several))
    assert "did you mean other" in str(unknown("othr", several))
    assert "did you mean here:3b" in str(unknown("her:3b", several, ["here:3b"]))
    many = tuple(card(SMALL, name=f"m{i}:1b", aliases=()) for i in range(9))
    assert "a name that `edgespec search` lists" in str(unknown("zzzz", many))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("org/repo", RemoteModel("org/repo")),
        ("org/repo:q4_k_m", RemoteModel("org/repo", "Q4_K_M")),
        ("hf.co/org/repo:Q4_K_M", RemoteModel("org/repo", "Q4_K_M")),
        ("HF.co/org/repo:latest", RemoteModel("org/repo")),
        ("hf:org/repo:Q8_0", RemoteModel("org/repo", "Q8_0")),
        ("hf:org/repo/file.gguf", RemoteModel("org/repo", file="file.gguf")),
        ("hf.co/org/re.po-1/sub dir/x.GGUF", RemoteModel("org/re.po-1", file="sub dir/x.GGUF")),
        ("org/repo@v1.0:q8_0", RemoteModel("org/repo", "Q8_0", revision="v1.0")),
        ("https://huggingface.co/org/repo/", RemoteModel("org/repo")),
        (
            "https://huggingface.co/org/repo/blob/main/x.gguf?download=true",
            RemoteModel("org/repo", file="x.gguf", revision="main"),
        ),
        ("mine:3b", LocalName("mine:3b")),
    ],
)
def test_every_way_to_name_a_model(tmp_path, monkeypatch, typed, meant):
    monkeypatch.chdir(tmp_path)
    assert parse(typed, cards()) == meant
    if isinstance(meant, RemoteModel):
        assert parse(str(meant), cards()) == meant


def test_a_file_that_is_there_wins_over_a_repository_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("org").mkdir()
    Path("org/repo").write_bytes(SMALL)
    assert parse("org/repo", cards()) == Path("org/repo")


@pytest.mark.parametrize(
    "typed",
    ["hf:x", "hf.co/", "hf:org/../x.gguf", "hf:org/repo/../../x.gguf", "https://a.b/c", "ftp://x/y.gguf"],
)
def test_an_address_that_names_no_model(typed):
    with pytest.raises(UsageError, match=r"names no model: write hf\.co/org/repo"):
        parse(typed, cards())
