"""Signals: half a second to stop, nothing of the answer lost."""

import json
import signal
import subprocess
import sys
import time

import pytest
from cli.conftest import PLAIN

pytestmark = pytest.mark.model
SOON = 0.5
SLACK = 0.5
"""For the end of the process on a busy machine."""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_a_pipe_keeps_the_text_so_far(start, smollm2_path, number, code):
    process = start("run", str(smollm2_path), *PLAIN, "--raw", "-p", "1, 2, 3, 4,", "--json")
    first = process.stdout.readline()
    sent = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    took = time.monotonic() - sent
    assert process.returncode == code
    assert took < SOON + SLACK
    *tokens, summary = [json.loads(line) for line in (first + out).splitlines()]
    assert summary["finish"] == "cancelled"
    assert summary["tokens"] == len(tokens)
    assert b"Traceback" not in err


def test_a_signal_while_a_long_prompt_is_read(start, smollm2_path):
    process = start("run", str(smollm2_path), *PLAIN, "-c", "8192", "-p", "word " * 7000)
    time.sleep(3)
    assert process.poll() is None
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - sent < SOON + SLACK
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err


def test_a_signal_while_loading(start, smollm2_path, tmp_path):
    trace = tmp_path / "trace"
    process = start("run", str(smollm2_path), "-t", "1", "-p", "x", "--trace", str(trace))
    while not trace.exists():
        time.sleep(0.01)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - sent < 2
    assert process.returncode in (130, -signal.SIGINT)  # a shell shows 130 for both
    assert out == b""
    assert b"Traceback" not in err


def test_a_signal_while_the_command_is_imported():
    """The import of click sends it."""
    code = """
import signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "click":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
import edgespec.cli
print("went on")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")
    code = "import signal, edgespec.cli; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
