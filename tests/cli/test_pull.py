"""`edgespec pull`, and `run` with a model that is not here yet, against a local Hugging Face."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from cli.conftest import PLAIN, command
from cli.pseudo_terminal import Terminal
from hub.hub_files import gguf, tensor
from hub.hub_server import Hub, serving

SIZE = 25_000_000
LARGE = gguf(tensors=[tensor("output.weight", (SIZE,), 24, 0)], data=SIZE)
REPO = "org/Large-GGUF"
FILE = "large-Q4_K_M.gguf"
STOPPED = "stopped: the same command goes on with what is here"


@pytest.fixture
def site():
    with serving(Hub(repos={REPO: {FILE: LARGE}, "org/old": {"old-Q4_0.gguf": gguf()}})) as hub:
        yield hub


@pytest.fixture
def env(environment, site, tmp_path):
    kept = {name: value for name, value in environment.items() if not name.startswith("HF_")}
    where = {"HF_ENDPOINT": site.url, "HF_HOME": str(tmp_path / "hf"), "EDGESPEC_MODELS": str(tmp_path / "m")}
    return kept | where


@pytest.fixture
def halted(site):
    """The first transfer stops at 40% and waits until it is let go."""
    release = threading.Event()
    site.cut = lambda request: len(LARGE) * 2 // 5 if request == 1 else None
    site.after_cut = lambda: release.wait(60)
    yield release
    release.set()


def part(env) -> Path | None:
    return next((Path(env["EDGESPEC_MODELS"]) / REPO).glob(".*.part"), None)


def waited_for_part(env) -> None:
    end = time.monotonic() + 30
    while not (found := part(env)) or found.stat().st_size < SIZE * 0.39:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_pipe_gets_the_path_and_plain_lines(run, env, site):
    done = run("pull", REPO, env=env | {"HF_TOKEN": "hf_secret"})
    path = Path(env["EDGESPEC_MODELS"]) / REPO / FILE
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == f"{path}\n"
    assert path.read_bytes() == LARGE
    first, second, *rest = done.stderr.decode().splitlines()
    assert first == f"{REPO}: taking Q4_K_M"
    assert second == f"downloading Large:Q4_K_M (25 MB) into {env['EDGESPEC_MODELS']}"
    assert len(rest) == 10
    assert all(line.startswith("downloading Large:Q4_K_M, ") for line in rest)
    assert rest[-1].endswith("(100%)")
    assert not {"\x1b", "\r"} & set(done.stderr.decode())
    assert b"hf_secret" not in done.stderr + done.stdout
    assert {request.authorization for request in site.requests} == {"Bearer hf_secret"}
    again = run("pull", f"{REPO}:q4_k_m", env=env)
    assert (again.stdout, again.stderr) == (done.stdout, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_at_forty_percent_it_goes_on(start, run, env, site, halted, number):
    process = start("pull", REPO, env=env)
    waited_for_part(env)
    process.send_signal(number)
    began = time.monotonic()
    _, err = process.communicate(timeout=30)
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert time.monotonic() - began < 3
        assert err.decode().splitlines()[-1] == STOPPED
    halted.set()
    site.moved = 0
    done = run("pull", REPO, env=env)
    assert done.returncode == 0, done.stderr
    assert site.moved <= 0.61 * len(LARGE)
    assert b"going on with Large:Q4_K_M at 1" in done.stderr
    assert part(env) is None


@pytest.mark.terminal
def test_a_terminal_gets_a_bar_that_goes_away(env, site, halted):
    terminal = Terminal(["pull", REPO], env)
    try:
        terminal.expect("downloading Large:Q4_K_M, 10 MB of 25 MB [########            ] 40%")
        terminal.type(b"\x03")
        terminal.expect(STOPPED)
        assert terminal.wait() == 130
    finally:
        terminal.close()


def test_one_that_fails_does_not_stop_the_others(run, env):
    done = run("pull", "org/none", "org/old", "nosuchname", env=env)
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [f"{env['EDGESPEC_MODELS']}/org/old/old-Q4_0.gguf"]
    lines = done.stderr.decode().splitlines()
    assert [line for line in lines if line.startswith("edgespec: ")] == [lines[0], lines[-1]]
    assert "there is no org/none, or it is private" in lines[0]
    assert "org/old: taking Q4_0, the nearest to Q4_K_M that it has" in lines
    assert "unknown model 'nosuchname'" in lines[-1]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("pull",), 2, "no model: name one"),
        (("pull", "nosuchname"), 2, "unknown model"),
        (("pull", "/no/such.gguf"), 1, "no such file"),
        (("pull", "org/none:Q4_K_M"), 1, "there is no org/none"),
        (("pull", f"{REPO}:Q3_K_M"), 2, "has no Q3_K_M: it has Q4_K_M"),
        (("run", "org/none", "-p", "x"), 1, "there is no org/none"),
        (("pull", "-hf", "org/none"), 1, "there is no org/none"),
    ],
)
def test_what_cannot_be_had_is_one_line(run, env, arguments, code, said):
    done = run(*arguments, env=env)
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.count(b"\n") == 1
    assert said in done.stderr.decode()


def test_a_traceback_shows_no_token(run, env):
    done = run("pull", REPO, "--verbose", env=env | {"HF_TOKEN": "hf_secr\u00e9t"})
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
    assert b"hf_sec" not in done.stderr


@pytest.mark.parametrize("command", ["run", "pull"])
def test_offline_what_is_not_here_is_one_line(run, env, site, command):
    rest = ("-p", "x") if command == "run" else ()
    done = run(command, REPO, *rest, env=env | {"HF_HUB_OFFLINE": "1"})
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().splitlines() == [
        f"edgespec: {REPO} is not on this machine and HF_HUB_OFFLINE forbids downloading it: "
        "unset HF_HUB_OFFLINE, or give the path of a model"
    ]
    assert site.requests == []


@pytest.mark.model
def test_run_fetches_and_then_opens_no_socket(run, env, site, smollm2_path):
    """The second time any use of a socket ends the process."""
    site.repos["org/Smol-GGUF"] = {"smol.Q4_1.gguf": smollm2_path.read_bytes()}
    arguments = ("run", "org/Smol-GGUF:q4_1", *PLAIN, "-p", "Say hello.", "-n", "4")
    first = run(*arguments, env=env)
    assert first.returncode == 0, first.stderr
    assert first.stdout
    guard = (
        "import os, sys\n"
        "sys.addaudithook(lambda name, _: name.startswith('socket.') and os._exit(99))\n"
        "from edgespec.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    site.requests.clear()
    for reference in ("org/Smol-GGUF:Q4_1", "org/Smol-GGUF"):
        line = [sys.executable, "-c", guard, "run", reference, *arguments[2:]]
        second = subprocess.run(line, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert (second.returncode, second.stdout) == (0, first.stdout), second.stderr
    assert site.requests == []


def test_odd_places(run, env, tmp_path):
    odd = tmp_path / "模型 ü (1)"
    odd.mkdir()
    done = run("pull", "org/old:Q4_0", env=env | {"HOME": str(odd), "EDGESPEC_MODELS": str(odd / "a b#%")})
    assert done.stdout.decode() == f"{odd}/a b#%/org/old/old-Q4_0.gguf\n"


def test_a_closed_output_is_told(env):
    line = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *command(["pull", "org/old"])]
    done = subprocess.run(line, env=env, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"standard output is closed" in done.stderr
    assert (Path(env["EDGESPEC_MODELS"]) / "org/old/old-Q4_0.gguf").is_file()
