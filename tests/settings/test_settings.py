"""The settings file: what wins, what survives, and what a broken one does."""

from __future__ import annotations

import stat
import threading
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec import settings
from edgespec.hub import default_card
from edgespec.settings import SettingsError, SettingsFile


@pytest.fixture
def file(tmp_path):
    return SettingsFile(tmp_path / "config" / "config.toml")


def test_a_model_overrides_what_is_set_for_all(file):
    assert file.values() == file.values("m.gguf") == {}
    file.change({"temp": 0.5, "theme": "dark"})
    file.change({"temp": 0.1, "stop": ["a", "b"]}, "/models/m.gguf")
    assert file.values() == {"temp": 0.5, "theme": "dark"}
    assert file.values("other/m.gguf") == {"temp": 0.1, "theme": "dark", "stop": ["a", "b"]}
    assert file.own("m.gguf") == {"temp": 0.1, "stop": ["a", "b"]}
    assert file.values("n.gguf") == {"temp": 0.5, "theme": "dark"}
    file.change({"temp": None, "missing": None}, "m.gguf")
    assert file.values("m.gguf")["temp"] == 0.5


def test_a_model_of_the_catalogue_has_one_section_under_all_its_names(file):
    card = default_card()
    file.change({"temp": 0.3}, card.file)
    for name in (*card.names, card.name.upper(), f"/somewhere/{card.file}"):
        assert file.values(name) == {"temp": 0.3}
    assert tomllib.loads(file.path.read_text("utf-8"))["models"] == {card.name: {"temp": 0.3}}


def test_a_section_that_somebody_wrote_is_found_and_used(file):
    file.path.parent.mkdir()
    file.path.write_text("[models.Mine]\ntemp = 0.2\n", "utf-8")
    assert file.values("/x/mine.gguf") == {"temp": 0.2}
    file.change({"top-k": 3}, "mine.gguf")
    assert tomllib.loads(file.path.read_text("utf-8")) == {"models": {"Mine": {"temp": 0.2, "top-k": 3}}}


def test_comments_order_and_unknown_keys_survive(file):
    file.path.parent.mkdir()
    text = "# mine\nfuture = {a = 1}  # kept\ntheme = 'dark'\n\n[other]\nx = 1 # too\n\n"
    text += "[models.m]\n# here\nz = 2\n"
    file.path.write_text(text, "utf-8")
    file.change({"theme": "light"})
    assert file.path.read_text("utf-8") == text.replace("'dark'", '"light"')
    file.change({"temp": 1}, "m")
    assert tomllib.loads(file.path.read_text("utf-8"))["models"]["m"] == {"z": 2, "temp": 1}
    for part in ("# mine", "# kept", "# too", "# here"):
        assert part in file.path.read_text("utf-8")


@pytest.mark.parametrize("content", [b"temp = ", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_a_broken_file_is_one_line_and_never_overwritten(tmp_path, content):
    told = []
    file = SettingsFile(tmp_path / "config.toml", told.append)
    file.path.write_bytes(content)
    assert file.values("m") == {}
    (line,) = told
    assert str(file.path) in line
    assert "\n" not in line
    with pytest.raises(SettingsError, match="mend it") as caught:
        file.change({"temp": 1})
    assert "\n" not in str(caught.value)
    assert file.path.read_bytes() == content


def test_a_section_that_is_no_table_is_no_crash(file):
    file.path.parent.mkdir()
    file.path.write_text("models = 3\n", "utf-8")
    assert file.values("m") == {"models": 3}
    with pytest.raises(SettingsError):
        file.change({"temp": 1}, "m")


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    file = SettingsFile(tmp_path / "file" / "config.toml")
    with pytest.raises(SettingsError) as caught:
        file.change({"temp": 1})
    assert "\n" not in str(caught.value)


def test_a_link_stays_a_link_and_permissions_stay(tmp_path):
    real = tmp_path / "dotfiles" / "edgespec.toml"
    real.parent.mkdir()
    real.write_text("a = 1\n", "utf-8")
    real.chmod(0o640)
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    SettingsFile(link).change({"b": 2})
    assert link.is_symlink()
    assert tomllib.loads(real.read_text("utf-8")) == {"a": 1, "b": 2}
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert list(real.parent.iterdir()) == [real]


def test_a_reader_never_sees_half_a_file(file):
    file.change({"n": 0, "fill": "x" * 10_000})
    seen, over = [], threading.Event()

    def read():
        while not over.is_set():
            seen.append(len(file.values()))

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(50):
        file.change({"n": n})
    over.set()
    reader.join()
    assert set(seen) == {2}


@given(key=st.text(min_size=1), value=st.text(), model=st.text())
def test_any_text_can_be_set(tmp_path_factory, key, value, model):
    file = SettingsFile(tmp_path_factory.mktemp("any") / "config.toml")
    file.change({key: value}, model)
    assert file.own(model) == {key: value}


def test_the_environment_moves_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_CONFIG", str(tmp_path))
    assert settings.location() == tmp_path / "config.toml"
