"""A model on the disk runs with nothing else: no network, no home that can be written."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.model

WATCHED = """
import os, sys
def hook(event, arguments):
    if event.startswith("socket."):
        os.write(2, f"opened a socket: {event}\\n".encode())
        os._exit(99)
sys.addaudithook(hook)
from edgespec.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def watched(environment, tmp_path):
    """Run the command in a process that ends at the first socket, with a home that cannot be written."""
    (tmp_path / "file").touch()
    nowhere = str(tmp_path / "file/home")
    gone = (
        "EDGESPEC_CACHE",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
        "HF_HOME",
    )
    env = {name: value for name, value in environment.items() if name not in gone}
    env |= {"HOME": nowhere, "EDGESPEC_MODELS": str(tmp_path / "models"), "HF_HUB_OFFLINE": "1"}

    def run(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WATCHED, *arguments]
        return subprocess.run(
            command, env=env | changes, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120
        )

    return run


def test_a_path_runs(watched, smollm2_path):
    done = watched("run", str(smollm2_path), "-p", "hi", "-n", "3", "-t", "1", "--temp", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Traceback" not in done.stderr


def test_a_name_in_the_store_runs(watched, smollm2_path, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / smollm2_path.name).symlink_to(smollm2_path)
    done = watched("run", "smollm2:135m", "-p", "hi", "-n", "3", "-t", "1", "--spec", "off")
    assert done.returncode == 0, done.stderr
    assert watched("ls").returncode == 0


@pytest.mark.parametrize("typed", ["smollm2:135m", "org/repo:Q4_K_M", "hf:org/repo/x.gguf"])
def test_one_that_is_not_here_is_one_line(watched, typed):
    done = watched("run", typed, "-p", "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "HF_HUB_OFFLINE forbids downloading it" in done.stderr
