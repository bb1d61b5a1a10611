"""The installed command in a pseudo terminal, with a real model: the full screen from begin to end."""

from __future__ import annotations

import os
import time

import pytest
from cli.conftest import PLAIN, environment
from cli.pseudo_terminal import Terminal

from edgespec.history import History

pytestmark = [pytest.mark.model, pytest.mark.terminal]
__all__ = ["environment"]
COUNT = ("-n", "-1", "--logit-bias", "2-inf")
"""An answer that does not end by itself."""


@pytest.fixture
def opened(environment, smollm2_path, tmp_path):
    terminals = []

    def start(*arguments: str, **changes: str) -> Terminal:
        env = environment | {"EDGESPEC_DATA": str(tmp_path / "data"), "EDGESPEC_CONFIG": str(tmp_path)}
        env.pop("NO_COLOR", None)
        one = Terminal(["run", *arguments, *PLAIN], env, COLUMNS="90", LINES="30", **changes)
        terminals.append(one)
        return one

    yield start
    for one in terminals:
        one.close()


def last(tmp_path):
    with History(tmp_path / "data" / "history" / "conversations.db") as history:
        id = history.latest()
        return [] if id is None else [(t.state, t.content) for t in history.load(id).turns]


def until(condition, seconds=40.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_type_watch_stop_ask_again_quit_and_resume(opened, smollm2_path, tmp_path):
    chat = opened(str(smollm2_path), *COUNT)
    chat.expect("Ask something")
    chat.expect("Enter")  # the hint of the first run
    chat.type("Count to five hundred.")
    chat.expect("hundred.")
    chat.type("\r")
    chat.expect("Esc stops", 60)
    chat.expect("tok/s")
    chat.type("\x1b")
    chat.expect("stopped")
    chat.type("And backwards?\r")
    chat.expect("Esc stops", 60)
    chat.type("\x03")
    chat.expect("stopped")
    chat.type("\x11")
    assert chat.wait() == 0
    assert b"\x1b[?1049l" in chat.raw  # the screen is given back
    assert [state for state, _ in last(tmp_path)] == ["complete", "stopped", "complete", "stopped"]

    again = opened("--continue", *COUNT)
    again.expect("backwards?")
    again.expect("tok/s")
    again.type("Third.\r")
    again.expect("Esc stops", 60)
    until(lambda: len(last(tmp_path)) == 6 and last(tmp_path)[-1][1])
    again.process.kill()
    again.process.wait()
    state, content = last(tmp_path)[-1]
    assert state == "partial"
    assert content


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_where_no_screen_is_wanted_the_chat_is_in_lines_with_a_note(opened, smollm2_path, changes):
    chat = opened(str(smollm2_path), **changes)
    chat.expect("the chat is in lines")
    chat.expect("> ")
    chat.type("\x04")
    assert chat.wait() == 0


def test_sigterm_gives_the_terminal_back(opened, smollm2_path):
    chat = opened(str(smollm2_path))
    chat.expect("Ask something")
    chat.expect("0/", 60)
    os.kill(chat.process.pid, 15)
    assert chat.wait() == 143
    assert b"\x1b[?1049l" in chat.raw
