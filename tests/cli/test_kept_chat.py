"""Chats that are kept: killed, gone on with, switched off, and without a place to be kept."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from cli.conftest import PLAIN
from cli.pseudo_terminal import CTRL_C, CTRL_D, PROMPT, Terminal

from edgespec.history import History

pytestmark = pytest.mark.model
END = "2"
"""The end of a turn in the small model, which would end an answer too early."""


@pytest.fixture
def environment(environment, tmp_path):
    return environment | {"EDGESPEC_DATA": str(tmp_path / "data")}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "history" / "conversations.db"


@pytest.fixture
def terminal(environment, smollm2_path):
    opened = []

    def open_one(*arguments: str, **changes: str) -> Terminal:
        one = Terminal(["run", "--line", *arguments, *PLAIN], environment | changes)
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()


def turns(path, id=1):
    with History(path) as history:
        return [(turn.role, turn.state, turn.content) for turn in history.load(id).turns]


@pytest.mark.terminal
def test_a_chat_that_was_killed_goes_on(terminal, path, smollm2_path):
    chat = terminal(str(smollm2_path), "-n", "-1", "--system", "You count.", "--logit-bias", END + "-inf")
    chat.expect(PROMPT)
    chat.type("Count to five hundred.\r")
    chat.expect("hundred.\n")
    chat.more(20)
    early = chat.text().split("hundred.\n", 1)[1]
    began = time.monotonic()
    while time.monotonic() - began < 1.2:
        chat.more(5)
    os.kill(chat.process.pid, signal.SIGKILL)
    chat.wait()
    (_, _, question), (_, state, answer) = turns(path)
    assert (question, state) == ("Count to five hundred.", "partial")
    assert answer in chat.text()
    assert answer.startswith(early)

    again = terminal("--continue", "-n", "4")
    again.expect("> Count to five hundred.\n")
    again.expect(answer[:40].splitlines()[0])
    again.expect("[stopped]")
    again.expect(PROMPT)
    again.type("Go on.\r")
    again.expect("tok/s")
    again.expect(PROMPT)
    again.type(CTRL_D)
    again.expect("edgespec run --continue 1")
    assert again.wait() == 0
    kept = turns(path)
    assert [state for _, state, _ in kept] == ["complete", "stopped", "complete", "complete"]
    assert kept[1][2] == answer
    with History(path) as history:
        assert history.load(1).system == "You count."


@pytest.mark.terminal
def test_what_is_done_in_a_chat_is_done_to_what_is_kept(terminal, path, smollm2_path):
    chat = terminal(str(smollm2_path), "-n", "4")
    chat.expect(PROMPT)
    for line in ("One?", "/regen", "Two?"):
        chat.type(line + "\r")
        chat.expect("tok/s")
        chat.expect(PROMPT)
    chat.type("/clear\r")
    chat.expect(PROMPT)
    chat.type("/system Be brief.\r")
    chat.expect(PROMPT)
    chat.type("Three? [/] x\r")
    chat.expect("tok/s")
    chat.expect(PROMPT)
    chat.type("/quit\r")
    assert chat.wait() == 0
    assert [role for role, _, _ in turns(path, 1)] == ["user", "assistant"] * 2
    assert [content for role, _, content in turns(path, 2) if role == "user"] == ["Three? [/] x"]
    with History(path) as history:
        assert (history.load(1).system, history.load(2).system) == (None, "Be brief.")


@pytest.mark.terminal
def test_a_place_that_cannot_be_written_is_one_warning_and_the_chat_goes_on(terminal, tmp_path, smollm2_path):
    (tmp_path / "file").write_text("")
    chat = terminal(str(smollm2_path), "-n", "3", EDGESPEC_DATA=str(tmp_path / "file"))
    chat.expect(PROMPT)
    for _ in range(2):
        chat.type("Hi\r")
        chat.expect("tok/s")
        chat.expect(PROMPT)
    chat.type(CTRL_C)
    chat.expect("to quit")
    chat.type("/quit\r")
    assert chat.wait() == 0
    assert chat.text().count("not kept") == 1


@pytest.mark.terminal
@pytest.mark.parametrize("off", [["--no-history"], {"EDGESPEC_HISTORY": "off"}], ids=["flag", "variable"])
def test_history_can_be_off(terminal, path, smollm2_path, off):
    arguments, variables = (off, {}) if isinstance(off, list) else ([], off)
    chat = terminal(str(smollm2_path), "-n", "3", *arguments, **variables)
    chat.expect(PROMPT)
    chat.type("Hi\r")
    chat.expect("tok/s")
    chat.expect(PROMPT)
    chat.type(CTRL_D)
    assert chat.wait() == 0
    assert not path.exists()


def test_a_single_answer_is_kept_only_when_asked_for_or_going_on(run, path, smollm2_path):
    ask = ("run", str(smollm2_path), *PLAIN, "-n", "3", "-p")
    assert run(*ask, "not kept").returncode == 0
    assert not path.exists()
    assert run(*ask, "kept", "--history").returncode == 0
    more = run("run", "--continue", *PLAIN, "-n", "3", "--json", "-p", "more")
    assert more.returncode == 0
    summary = json.loads(more.stdout.splitlines()[-1])
    assert summary["prompt_tokens"] > 40
    assert run("run", "--continue", "1", "--no-history", *PLAIN, "-n", "3", "-p", "unkept").returncode == 0
    assert [content for role, _, content in turns(path) if role == "user"] == ["kept", "more"]
    with History(path) as history:
        assert history.load(1).model == str(smollm2_path)
        assert history.load(1).turns[1].figures.tokens == 3


def test_continuing_nothing_is_one_line(run):
    for arguments in (["--continue"], ["--continue", "5"]):
        done = run("run", *arguments, "-p", "x")
        assert done.returncode == 1
        assert done.stdout == b""
        assert done.stderr.count(b"\n") == 1
