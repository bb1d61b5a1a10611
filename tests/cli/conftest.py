"""The command as people start it: a process, a pipe, a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

PLAIN = ("--spec", "off", "-t", "1", "--temp", "0")
"""Quick and repeatable; one thread, because the tests share the machine."""

Start = Callable[..., "subprocess.Popen[bytes]"]
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


def command(arguments: Sequence[str | bytes]) -> list[str | bytes]:
    return [sys.executable, "-m", "edgespec", *arguments]


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> dict[str, str]:
    """Without options of the person who runs the tests, and without what was measured before."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EDGESPEC_")}
    if models := os.environ.get("EDGESPEC_MODELS"):
        kept["EDGESPEC_MODELS"] = models
    for name in ("CACHE", "CONFIG", "DATA"):
        kept[f"EDGESPEC_{name}"] = str(tmp_path_factory.mktemp(name.lower()))
    return kept | {"PYTHONUTF8": "1"}


@pytest.fixture
def start(environment) -> Start:
    """Start the command with pipes."""

    def popen(*arguments: str | bytes, **changes: object) -> subprocess.Popen[bytes]:
        settings = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": environment,
        }
        return subprocess.Popen(command(arguments), **(settings | changes))

    return popen


@pytest.fixture
def run(environment) -> Run:
    """Run the command to its end."""

    def completed(*arguments: str | bytes, **changes: object) -> subprocess.CompletedProcess[bytes]:
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment, "timeout": 60}
        settings |= changes
        if "input" not in settings and "stdin" not in settings:
            settings["stdin"] = subprocess.DEVNULL
        return subprocess.run(command(arguments), check=False, **settings)

    return completed


@pytest.fixture
def text_file(tmp_path) -> Path:
    path = tmp_path / "note.txt"
    path.write_text("The sky is green today.\n", "utf-8")
    return path
