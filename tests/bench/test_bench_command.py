"""The command on the small model, in a process."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

QUICK = ("-t", "1", "-c", "512", "-n", "6", "-r", "1")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EDGESPEC_")}
    if models := os.environ.get("EDGESPEC_MODELS"):
        kept["EDGESPEC_MODELS"] = models
    home = tmp_path_factory.mktemp("home")
    return kept | {"EDGESPEC_CACHE": str(home), "EDGESPEC_DATA": str(home), "PYTHONUTF8": "1"}


def arguments(*given):
    return [sys.executable, "-m", "edgespec", "bench", *map(str, given)]


@pytest.fixture
def bench(environment):
    def run(*given):
        return subprocess.run(
            arguments(*given), env=environment, capture_output=True, text=True, timeout=100, check=False
        )

    return run


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "p.jsonl"
    lines = [
        {"id": "a", "category": "chat", "turns": ["Say hi.", "Again."]},
        {"id": "b", "category": "edit", "turns": ["Repeat: red, green, blue, red, green, blue"]},
        {"id": "c", "category": "edit", "turns": ["much too long " * 400]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


@pytest.mark.model
def test_a_table_saved_compared_and_adopted(bench, prompts, smollm2_path, tmp_path):
    saved = tmp_path / "a.json"
    done = bench(
        smollm2_path, *QUICK, "--prompts", prompts, "--spec", "auto,suffix+ngram",
        "--accept-if", "speedup>0.01 and differ==0", "--save", saved,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "adopt: auto, speedup" in done.stdout.splitlines()[-1]
    assert "Every answer is the plain one" in done.stdout
    assert done.stdout.count("| suffix+ngram") == 3
    assert "c is left out" in done.stderr
    assert "\r" not in done.stderr
    again = bench("--compare", saved, saved)
    assert again.returncode == 0
    assert "1.00" in again.stdout


@pytest.mark.model
def test_traces_of_a_draft_that_is_the_model_itself(bench, prompts, smollm2_path, tmp_path):
    traces = tmp_path / "t.jsonl"
    done = bench(smollm2_path, "-md", smollm2_path, *QUICK, "--prompts", prompts, "--record", traces)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    records = [json.loads(line) for line in traces.read_text("utf-8").splitlines()]
    assert [r["id"] for r in records] == ["a/1", "a/2", "b"]
    for r in records:
        assert r["draft"]["match"] == [True] * len(r["output"])
        assert all(0 < p <= 1 for p in r["draft"]["p"])
        assert [found[0][0] for found in r["draft"]["top"]] == r["output"]
        assert all(p[0][1] >= p[1][1] >= p[2][1] >= 0 for p in r["draft"]["top"])
        assert [best[0] for best in r["best"]] == r["output"]
        assert all(len(set(best)) == 8 for best in r["best"])
        assert all(
            [token for token, _ in found] == best[:3]
            for found, best in zip(r["draft"]["top"], r["best"], strict=True)
        )
        assert r["prompt"]
    told = [
        {**r, "draft": {"match": [False] * len(r["output"]), "p": [0.5] * len(r["output"])}} for r in records
    ]
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text("".join(json.dumps({k: v for k, v in r.items() if k != "best"}) + "\n" for r in told))
    done = bench(smollm2_path, "-md", smollm2_path, *QUICK, "--record", new, "--extend", old)
    assert done.returncode == 0, done.stderr
    again = [json.loads(line) for line in new.read_text("utf-8").splitlines()]
    assert again == [
        {**r, "draft": {**told[i]["draft"], "top": r["draft"]["top"]}} for i, r in enumerate(records)
    ], "what was known stays"
    kept = old.read_text()
    done = bench(smollm2_path, *QUICK, "--record", old, "--extend", old)
    assert done.returncode == 2
    assert "the same file" in done.stderr
    old.write_text(kept.replace('"prompt": [', '"prompt": [99999, '))
    done = bench(smollm2_path, *QUICK, "--record", new, "--extend", old)
    assert done.returncode == 1
    assert "outside the vocabulary" in done.stderr
    assert [json.loads(line) for line in new.read_text("utf-8").splitlines()] == again


@pytest.mark.model
def test_against_a_server_do_not_adopt_in_csv(bench, prompts, smollm2_path, server):
    done = bench(
        smollm2_path, *QUICK, "--prompts", prompts, "--spec", "suffix", "-o", "csv",
        "--against", server.url, "--accept-if", "speedup>1000", "--save",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "do not adopt: suffix" in done.stderr
    assert "saved in" in done.stderr
    records = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [r["configuration"] for r in records[-3:]] == ["plain", "suffix", server.url[7:]]
    assert records[-1]["acceptance_rate"] == "0.25"
    assert server.asked


@pytest.mark.model
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_prints_what_is_done_and_exits_130(environment, prompts, smollm2_path, server):
    process = subprocess.Popen(
        arguments(smollm2_path, "-t", 1, "-r", 500, "-n", 4, "--prompts", prompts, "--against", server.url),
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(server.asked) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "stopped early" in out
    assert "| plain" in out
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--spec", "magic"], "--spec takes"),
        (["--spec", "auto+suffix"], "--spec takes"),
        (["--spec", "off"], "--spec takes"),
        (["--spec", "draft", "--draft", "none"], "-md"),
        (["--accept-if", "speed>1"], "knows no 'speed'"),
        (["--prompts", "/none"], "cannot read the prompts"),
        (["--against", "ftp://x"], "needs an address"),
        (["-n", "1"], "-n"),
        (["-r", "0"], "-r"),
        (["--anyway"], "--compare"),
        (["--compare", "/none", "/none"], "cannot read /none"),
        (["a.gguf", "-m", "b.gguf"], "given twice"),
    ],
)
def test_what_cannot_be_meant_is_told_before_anything_loads(bench, given, told):
    done = bench("/none/model.gguf", *given) if given[0] not in ("a.gguf", "--compare") else bench(*given)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
