"""`edgespec history`: what it prints, to a terminal and to a pipe, and what it refuses."""

from __future__ import annotations

import io
import json
import sys

import pytest
from history.history_kit import NASTY, conversation

from edgespec.cli import main
from edgespec.history import History, from_json


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_DATA", str(tmp_path / "data"))


@pytest.fixture
def kept():
    with History() as history:
        for i, text in enumerate(("Why is the sky blue?", "Tell me of tides", "x = a[i] [/some/path]")):
            history.add(conversation(text, f"Answer {i}: the moon", began=1000.0 * (i + 1)))
        yield history


@pytest.fixture
def said(capfd):
    """Run the command; its exit code, stdout and stderr."""

    def run(*arguments):
        code = main(["history", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_kept_yet(said):
    assert said("ls") == (0, "", "edgespec: no conversations\n")
    for arguments in (["show"], ["export"], ["rename", "last", "x"], ["rm", "last"]):
        code, out, err = said(*arguments)
        assert (code, out, err.count("\n")) == (1, "", 1)


def test_lists_and_searches(said, kept):
    code, out, _ = said("ls")
    lines = out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines] == ["3", "2", "1"]
    assert "x = a[i] [/some/path]" in lines[0]
    assert said("ls", "-n", "1")[1].splitlines() == lines[:1]
    entries = [json.loads(line) for line in said("ls", "--json")[1].splitlines()]
    assert [(entry["id"], entry["turns"]) for entry in entries] == [(3, 2), (2, 2), (1, 2)]
    found = said("search", "answer", "1:")[1].splitlines()
    assert len(found) == 2
    assert "Tell me of tides" in found[0]
    assert "Answer 1: the moon" in found[1]
    code, out, err = said("search", "nothing", "like", "it")
    assert (code, out, err) == (1, "", "edgespec: no conversations\n")


def test_shows_and_exports(said, kept, tmp_path):
    assert said("show")[1] == said("show", "3")[1] == said("export", "last")[1]
    assert "## Assistant\n\nAnswer 0: the moon\n" in said("show", "1")[1]
    assert from_json(said("export", "2", "--format", "json")[1]).turns == kept.load(2).turns
    for name, beginning in (("a.md", "# Tell"), ("a.json", "{")):
        assert said("export", "2", "-o", str(tmp_path / name)) == (0, "", "")
        assert (tmp_path / name).read_text("utf-8").startswith(beginning)
        code, _, err = said("export", "2", "-o", str(tmp_path / name))
        assert (code, err.count("\n")) == (2, 1)
        assert "exists already" in err
    assert said("import", str(tmp_path / "a.json")) == (0, "4\n", "")
    assert kept.load(4).turns == kept.load(2).turns
    assert said("import", str(tmp_path / "a.md"))[0] == 2


def test_renames_and_deletes(said, kept, monkeypatch):
    assert said("rename", "1", "blue", "[/]") == (0, "", "")
    assert "blue [/]" in said("ls")[1]
    assert said("rename", "1")[0] == 0
    assert "Why is the sky" in said("ls")[1]
    assert said("rm", "1", "1", "2") == (0, "", "")
    assert [entry.id for entry in kept.list()] == [3]
    assert said("rm", "77")[0] == 1
    assert said("rm")[0] == said("rm", "3", "--all")[0] == 2
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert said("rm", "--all")[0] == 130
    assert len(kept.list()) == 1
    assert said("rm", "--all", "-y")[0] == 0
    assert kept.list() == []


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "", "9" * 30])
def test_other_numbers_are_one_line(said, kept, number):
    code, out, err = said("show", number)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_terminal_gets_no_control_characters_and_a_pipe_all(said, kept, monkeypatch):
    text = NASTY[3] + "\t\x85"
    with History() as history:
        id = history.add(conversation(text, text, title=text))
    assert text in said("show", str(id))[1]
    for arguments in (["ls"], ["show", str(id)], ["search", "c;QUJD"]):
        screen = Screen()
        monkeypatch.setattr(sys, "stdout", screen)
        assert main(["history", *arguments]) == 0
        shown = screen.getvalue()
        assert "c;QUJD" in shown
        assert not set(shown) & {"\x1b", "\x07", "\x9b", "\x85"}


def test_a_damaged_history_is_told_and_set_aside(said, kept):
    kept.close()
    kept.path.write_bytes(b"broken" * 1000)
    code, out, err = said("ls")
    assert (code, out) == (0, "")
    assert "set aside as" in err
    assert said("path") == (0, f"{kept.path}\n", "")
    assert len(list(kept.path.parent.glob("*damaged*"))) == 1
