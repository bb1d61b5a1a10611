"""Single answers of the real model."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import PLAIN

from edgespec.cli import main

pytestmark = pytest.mark.model
HI = ("-p", "Say hello.", "-n", "4")


def lines(data: bytes) -> list[dict]:
    return [json.loads(line) for line in data.splitlines()]


def test_text_goes_to_stdout_and_nothing_else(run, smollm2_path):
    done = run("run", str(smollm2_path), *PLAIN, *HI)
    assert done.returncode == 0
    assert done.stdout.endswith(b"\n")
    assert done.stdout.count(b"\n") == 1
    assert b"\x1b" not in done.stdout + done.stderr
    assert b"loading" not in done.stderr


def test_prompt_sources_give_the_same_prompt(run, smollm2_path, text_file):
    """-p, a blank line, then the file or what is piped in."""
    model = ("run", "-m", str(smollm2_path), *PLAIN, "-n", "1", "--json")
    whole = "What colour?\n\nThe sky is green today."
    counts = {
        lines(done.stdout)[-1]["prompt_tokens"]
        for done in (
            run(*model, "-p", whole),
            run(*model, "-p", "What colour?", "-f", str(text_file)),
            run(*model, "-p", "What colour?", input=text_file.read_bytes()),
            run(*model, "-f", "-", input=whole.encode() + b"\n"),
        )
    }
    assert len(counts) == 1


def test_json_lines_and_counting(run, smollm2_path, tmp_path):
    trace = tmp_path / "trace.jsonl"
    prompt = "Write the numbers from 1 to 30 separated by commas, twice."  # answered in a loop
    how = ("--spec", "suffix", "--draft-max", "4")  # whether it pays on a busy machine or not
    settings = ("-t", "1", "--temp", "0", "-n", "64", "--seed", "5", "--json", "--trace", str(trace), *how)
    done = run("run", str(smollm2_path), *settings, "-p", prompt)
    assert done.returncode == 0, done.stderr
    *tokens, summary = lines(done.stdout)
    assert {tuple(token) for token in tokens} == {("type", "id", "text", "source", "kind", "position")}
    assert [token["position"] for token in tokens] == [
        summary["prompt_tokens"] + i for i in range(len(tokens))
    ]
    assert summary["type"] == "summary"
    assert (summary["seed"], summary["tokens"]) == (5, len(tokens))
    assert summary["numerics"] in ("exact", "near")
    assert {"on", "proposer", "depth", "reason"} <= set(summary["speculation"])
    assert 0 < summary["draft_n_accepted"] <= summary["draft_n"]

    header, *rounds = lines(trace.read_bytes())
    assert header["type"] == "header"
    assert len(rounds) == summary["rounds"]
    assert sum(r["tokens"] for r in rounds) == summary["tokens"]
    assert sum(r["accepted"] for r in rounds) == summary["draft_n_accepted"]
    assert sum(len(r["drafted"]) for r in rounds) == summary["draft_n"]
    # emitted = accepted + rounds - trimmed, and only the last round can be trimmed
    assert all(r["tokens"] == r["accepted"] + 1 for r in rounds[:-1])
    trimmed = summary["draft_n_accepted"] + summary["rounds"] - summary["tokens"]
    assert trimmed in (0, 1)

    plain = run("run", str(smollm2_path), *PLAIN, "-n", "64", "--json", "-p", prompt)
    if summary["numerics"] == "exact":
        assert [t["id"] for t in tokens] == [t["id"] for t in lines(plain.stdout)[:-1]]


def test_seed_and_stats(smollm2_path, capfd):
    arguments = ["run", str(smollm2_path), "--spec", "off", "-t", "1", *HI, "--stats"]
    texts = []
    for seed in ("11", "11", "-1"):
        assert main([*arguments, "--seed", seed]) == 0
        out, err = capfd.readouterr()
        texts.append(out)
        for word in ("tok/s", "first token", "rounds", "draft_n", "numerics", "speculation", "device"):
            assert word in err
        assert "seed " in err
    assert texts[0] == texts[1]


def test_stop_text_and_raw(smollm2_path, capfd):
    raw = ["run", str(smollm2_path), *PLAIN, "--raw", "-p", "1, 2, 3, 4,", "-n", "12"]
    assert main(raw) == 0
    assert capfd.readouterr().out.startswith(" 5, 6")
    assert main([*raw, "--stop", " 6"]) == 0
    assert capfd.readouterr().out == " 5,\n"


def test_an_option_from_the_environment_works(run, environment, smollm2_path):
    env = environment | {
        "EDGESPEC_MODEL": str(smollm2_path),
        "EDGESPEC_N_PREDICT": "9",
        "EDGESPEC_PREDICT": "2",
    }
    done = run("run", *PLAIN, "-p", "hi", "--json", env=env)
    assert lines(done.stdout)[-1]["tokens"] <= 2


def test_odd_paths(run, environment, smollm2_path, tmp_path):
    """A home, a temporary folder and a model with awkward names; a name that begins with a dash."""
    odd = tmp_path / "模型 ü (1)"
    odd.mkdir()
    os.link(smollm2_path, odd / "a b#%.gguf") if _same_disk(smollm2_path, odd) else shutil.copy(
        smollm2_path, odd / "a b#%.gguf"
    )
    (odd / "-x.gguf").symlink_to("a b#%.gguf")
    env = environment | {"HOME": str(odd), "TMPDIR": str(odd), "EDGESPEC_CACHE": str(odd / "cache [b]")}
    arguments = ("run", *PLAIN, *HI, "--json", "--trace", str(odd / "t [b].jsonl"))
    done = run(*arguments, "-m", str(odd / "a b#%.gguf"), env=env)
    assert done.returncode == 0, done.stderr
    assert lines(done.stdout)[-1]["path"] == str(odd / "a b#%.gguf")
    assert (odd / "t [b].jsonl").exists()
    done = run(*arguments, "--", "-x.gguf", env=env, cwd=odd)
    assert done.returncode == 0, done.stderr


def _same_disk(a: Path, b: Path) -> bool:
    return a.stat().st_dev == b.stat().st_dev


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("run", "/no/such.gguf", "-p", "x"), "/no/such.gguf"),
        (("run", "-md", "/no/such.gguf", "-p", "x"), "draft model cannot be used"),
        (("run", "-md", "no-such", "-p", "x"), "draft model cannot be used"),
        (
            ("run", "-p", "x", "--cascade", "/no/such.gguf"),
            "needs a draft model, give one with --draft MODEL",
        ),
        (("run", "-p", "x", "--spec", "draft"), "needs a draft model, give one with --draft MODEL"),
        (("run", "-p", "x", "-f", "/no/such.txt"), "/no/such.txt"),
        (("run", "-p", "x", "--trace", "/no/such/trace"), "/no/such/trace"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_code_1(smollm2_path, capfd, arguments, part):
    assert main([*arguments, "-t", "1"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("edgespec: ")
    assert part in last


def test_an_error_is_the_last_json_object_too(smollm2_path, capfd):
    assert main(["run", str(smollm2_path), *PLAIN, "-c", "256", "--json", "-p", "word " * 500]) == 1
    out, err = capfd.readouterr()
    message = err.splitlines()[-1].removeprefix("edgespec: ")
    assert lines(out.encode()) == [{"type": "error", "message": message}]
    assert "256" in message


def test_verbose_adds_the_traceback(capfd):
    assert main(["run", "/no.gguf", "-p", "x"]) == 1
    short = capfd.readouterr().err
    assert main(["run", "/no.gguf", "-p", "x", "--verbose"]) == 1
    long = capfd.readouterr().err
    assert short.count("\n") == 1
    assert "Traceback" in long
    assert long.splitlines()[-1] == short.splitlines()[-1]


def test_a_file_that_is_not_text(tmp_path, capfd):
    path = tmp_path / "x.bin"
    path.write_bytes(b"ab\xff")
    assert main(["run", "-f", str(path)]) == 1
    assert "not UTF-8" in capfd.readouterr().err


def test_bytes_that_are_not_utf8_and_a_stdout_that_is_not(run, environment, smollm2_path):
    env = environment | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run(
        "run", str(smollm2_path), *PLAIN, "-n", "6", "--raw", b"-p", b"caf\xff \xc3\xa9 \xe6\xa8\xa1", env=env
    )
    assert done.returncode == 0, done.stderr
    done.stdout.decode("ascii")


def test_closed_and_full_outputs(run, smollm2_path):
    line = 'exec "$@" {}'
    arguments = ("run", str(smollm2_path), *PLAIN, *HI)

    def shell(redirection: str) -> subprocess.CompletedProcess[bytes]:
        script = line.format(redirection)
        return subprocess.run(
            ["/bin/sh", "-c", script, "sh", sys.executable, "-m", "edgespec", *arguments],
            capture_output=True,
            check=False,
            timeout=60,
        )

    closed = shell(">&-")
    assert closed.returncode == 1
    assert closed.stderr.startswith(b"edgespec: standard output is closed")
    assert closed.stderr.count(b"\n") == 1
    quiet = shell("2>&-")
    assert quiet.returncode == 0
    assert quiet.stdout
    if Path("/dev/full").exists():
        full = shell(">/dev/full")
        assert full.returncode == 1
        assert full.stderr.splitlines()[-1].startswith(b"edgespec: cannot write the answer: No space")
        assert b"Traceback" not in full.stderr
        assert b"Exception ignored" not in full.stderr
        assert shell("2>/dev/full").returncode == 0
        trace = run(*arguments, "--trace", "/dev/full")
        assert trace.returncode == 1
        assert trace.stdout
        assert b"/dev/full" in trace.stderr.splitlines()[-1]


def test_a_broken_pipe_ends_in_silence(start, smollm2_path):
    process = start("run", str(smollm2_path), *PLAIN, "-n", "400", "--raw", "-p", "1, 2, 3,", "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    assert b'"token"' in process.stdout.readline()
    process.stdout.close()
    assert process.wait(30) == 141
    assert b"edgespec:" not in process.stderr.read()
    process.stderr.close()
