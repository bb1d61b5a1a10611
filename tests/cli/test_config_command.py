"""`edgespec config`, and what `edgespec run` makes of the settings."""

from __future__ import annotations

import pytest

from edgespec.cli import main
from edgespec.cli.run import run as command
from edgespec.settings import SettingsFile


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_CONFIG", str(tmp_path / "config"))
    return SettingsFile()


@pytest.fixture
def said(capfd):
    def run(*arguments):
        code = main(["config", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def params(*arguments):
    return command.make_context("run", list(arguments)).params


def test_sets_shows_and_unsets(said, file):
    assert said("path") == (0, f"{file.path}\n", "")
    assert said()[:2] == (0, "")
    assert said("set", "temp", "0.25") == (0, "", "")
    said("set", "ctx-size", "2048", "--for", "m.gguf")
    said("set", "stop", "a", "b", "--for", "m.gguf")
    said("set", "mlock", "yes")
    said("set", "theme", "dark")
    assert said("show", "--for", "m.gguf")[1] == (
        'temp = 0.25\nmlock = true\ntheme = "dark"\nctx-size = 2048\nstop = ["a", "b"]\n'
    )
    assert said("unset", "temp", "mlock", "theme") == (0, "", "")
    assert said("show")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["set", "tmep", "1"], "is temp meant?"),
        (["set", "temp", "hot"], "hot"),
        (["set", "temp", "1", "2"], "one value"),
        (["set", "prompt", "x"], "no setting"),
        (["set", "logit-bias", "x"], "15043+1"),
        (["set", "spec", "suffix,sufix"], "joined by commas"),
        (["set", "temp"], "VALUE"),
    ],
)
def test_what_cannot_be_set_is_one_line(said, file, arguments, part):
    code, out, err = said(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert part in err
    assert not file.path.exists()


def test_flags_win_over_variables_over_the_model_over_all(file, monkeypatch):
    file.change({"temp": 0.1, "top-k": 1, "top-p": 0.1, "min-p": 0.1})
    file.change({"temp": 0.2, "top-k": 2, "top-p": 0.2}, "m.gguf")
    monkeypatch.setenv("EDGESPEC_TEMP", "0.3")
    monkeypatch.setenv("EDGESPEC_TOP_K", "3")
    found = params("m.gguf", "--temp", "0.4")
    assert [found[name] for name in ("temp", "top_k", "top_p", "min_p")] == [0.4, 3, 0.2, 0.1]
    assert params("-m", "/other/m.gguf")["top_p"] == 0.2
    assert params("n.gguf")["top_p"] == 0.1
    assert found["repeat_penalty"] == 1.0


def test_a_default_model_has_its_own_settings(file, monkeypatch):
    file.change({"model": "m.gguf"})
    file.change({"spec": "off"}, "m.gguf")
    file.change({"spec": "ngram"}, "smollm2:135m")
    assert (params()["model"], params()["spec"]) == ("m.gguf", "off")
    assert params("smollm2:135m")["spec"] == "ngram"
    monkeypatch.setenv("EDGESPEC_MODEL", "smollm2:135m")
    assert params()["spec"] == "ngram"
    monkeypatch.setenv("EDGESPEC_HF_REPO", "org/repo")
    file.change({"temp": 0.7}, "hf:org/repo")
    assert params()["spec"] == "ngram"
    monkeypatch.delenv("EDGESPEC_MODEL")
    found = params()
    assert (found["model"], found["spec"], found["temp"]) == (None, "auto", 0.7)
    monkeypatch.delenv("EDGESPEC_HF_REPO")
    file.change({"model": None})
    assert params()["spec"] == "ngram"  # the model that is used when none is named


def test_a_setting_that_cannot_be_meant_is_told_and_left_out(file, capfd):
    file.path.parent.mkdir()
    file.path.write_text('temp = "hot"\ntop-k = 3\nprompt = "x"\nstop = "END"\nfuture = 1\n', "utf-8")
    found = params()
    assert (found["temp"], found["top_k"], found["prompt"], found["stop"]) == (0.8, 3, None, ("END",))
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "temp is not used" in err
    assert main(["config"]) == 0
    err = capfd.readouterr().err
    assert "future" in err
    assert "prompt" in err


def test_a_broken_file_is_one_line_and_defaults(file, capfd):
    file.path.parent.mkdir()
    file.path.write_text("temp = = 3\n", "utf-8")
    assert params()["temp"] == 0.8
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "defaults" in err
    assert main(["config", "set", "temp", "1"]) == 1
    assert file.path.read_text("utf-8") == "temp = = 3\n"


def test_continuing_takes_model_and_system_message_from_the_conversation(file, tmp_path, monkeypatch):
    from history.history_kit import conversation

    from edgespec.history import History

    monkeypatch.setenv("EDGESPEC_DATA", str(tmp_path / "data"))
    file.change({"model": "n.gguf", "system": "Settings.", "temp": 0.1})
    file.change({"temp": 0.2}, "/models/m.gguf")
    with History() as history:
        first = history.add(conversation("a", "b"))
        last = history.add(conversation("c", "d", began=2000.0))
    found = params("--continue")
    assert found["conversation"].id == last
    assert (found["model"], found["system"], found["temp"]) == ("/models/m.gguf", "Be brief.", 0.2)
    assert params("--continue", str(first))["conversation"].id == first
    found = params("--continue", "x.gguf", "--system", "Now.")
    assert (found["reference"], found["system"], found["temp"]) == ("x.gguf", "Now.", 0.1)
    assert params()["conversation"] is None
    assert params("--", "--continue")["reference"] == "--continue"
