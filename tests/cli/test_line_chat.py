"""The chat in lines, in a real pseudo terminal."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from cli.conftest import PLAIN
from cli.pseudo_terminal import CTRL_C, CTRL_D, PROMPT, Terminal

pytestmark = [pytest.mark.model, pytest.mark.terminal]


@pytest.fixture
def terminal(environment, smollm2_path):
    opened = []

    def open_one(*arguments: str) -> Terminal:
        one = Terminal(["run", str(smollm2_path), "--line", *PLAIN, *arguments], environment)
        opened.append(one)
        one.expect(PROMPT)
        return one

    yield open_one
    for one in opened:
        one.close()


def test_ask_stop_ask_again_and_leave(terminal):
    chat = terminal()
    chat.type("Count to five hundred.\r")
    chat.expect("hundred.\n")
    chat.more(10)
    stopped = time.monotonic()
    chat.type(CTRL_C)
    chat.expect("[stopped]")
    assert time.monotonic() - stopped < 1.0
    assert "tok" in chat.expect(PROMPT)
    chat.type("/system Answer in one word.\r")
    chat.expect("set")
    chat.expect(PROMPT)
    chat.type("What is the capital of France?\r")
    chat.expect("Paris")
    chat.expect("tok/s")
    chat.expect(PROMPT)
    chat.type("half a line")
    chat.expect("half a line")
    time.sleep(0.2)  # Python misses a signal between a key and its wait for the next
    chat.type(CTRL_C)
    chat.expect("Ctrl-D or /quit")
    chat.expect(PROMPT)
    chat.type("\x1b[A")
    chat.expect("half a line")
    chat.type("\x15")
    chat.type(CTRL_D)
    assert chat.wait() == 0


def test_a_paste_of_lines_is_one_message(terminal, tmp_path):
    chat = terminal("-n", "3")
    saved = tmp_path / "talk.json"
    chat.type("\x1b[200~first line\rsecond line\rthird [/] line\x1b[201~")
    chat.expect("third [/] line")
    time.sleep(0.3)
    chat.type("\r")
    chat.expect("token")
    chat.expect(PROMPT)
    chat.type("one \\\rtwo\r")
    chat.expect("token")
    chat.expect(PROMPT)
    chat.type('"""\ra\r\rb"""\r')
    chat.expect("token")
    chat.expect(PROMPT)
    chat.type(f"/save {saved}\r")
    chat.expect("saved")
    users = [
        turn["content"] for turn in json.loads(saved.read_text("utf-8"))["turns"] if turn["role"] == "user"
    ]
    assert users == ["first line\nsecond line\nthird [/] line", "one \ntwo", "a\n\nb"]
    chat.type("/save " + str(saved.parent) + "\r")
    chat.expect("edgespec: ")
    chat.expect(PROMPT)
    chat.type("/nonsense\r")
    chat.expect("unknown command")
    chat.type("/stats\r")
    chat.expect("mean acceptance length")
    chat.type("/clear\r")
    chat.expect("a new conversation")
    chat.type("/regen\r")
    chat.expect("no message to answer")
    chat.type("/quit\r")
    assert chat.wait() == 0


def test_a_message_that_does_not_fit_is_told_and_the_chat_goes_on(terminal, tmp_path):
    chat = terminal("-c", "256", "-n", "3")
    long = tmp_path / "long.txt"
    long.write_text("word " * 600, "utf-8")
    chat.type(f"/read {long}\r")
    chat.expect("goes with your next message")
    chat.type("Summarise this.\r")
    chat.expect("edgespec: the prompt has")
    chat.expect(PROMPT)
    chat.type("/clear\r")
    chat.expect("a new conversation")
    chat.type("Hi\r")
    chat.expect("tokens")
    os.kill(chat.process.pid, signal.SIGTERM)
    assert chat.wait() == 143


def test_a_terminal_gets_no_control_characters():
    from edgespec.cli.terminal import printable

    assert printable("a\x1b]52;c;QUJD\x07b\n\tc\x9b2Jd\re") == "a]52;c;QUJDb\n\tc2Jde"
