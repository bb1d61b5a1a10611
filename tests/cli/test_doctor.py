"""`edgespec doctor` on terminals, in pipes and for programs."""

import json

import pytest

from edgespec.cli.picture import Paper, drawn
from edgespec.doctor import Bar, Finding, Section, Table

BARS = tuple(Bar(n, 0.0125 * n, float(n), n < 8) for n in (1, 2, 4, 8, 16, 32))
SECTION = Section(
    "Title",
    (("a label", "some text " * 20), ("short", "x")),
    BARS,
    Table(("acceptance", "copying"), (("0.60", "plain"), ("0.95", "depth 3, 1.50x"))),
    (Finding("Something is set badly. " * 6, "pip install " + "x" * 90, ("--flag",)),),
)


@pytest.mark.parametrize("width", [20, 40, 80, 100])
def test_lines_fit_and_commands_stay_whole(width):
    lines = drawn(SECTION, Paper(width)).splitlines()
    assert f"    > {SECTION.findings[0].fix}" in lines
    assert "    > --flag" in lines
    if width >= 60:
        assert max(len(line) for line in lines if ">" not in line) <= width


def test_a_bar_for_each_row_count_as_long_as_it_takes():
    lines = drawn(SECTION, Paper()).splitlines()
    bars = [line for line in lines if "█" in line]
    assert len(bars) == len(BARS)
    lengths = [line.count("█") for line in bars]
    assert lengths == sorted(lengths)
    assert lengths[-1] == pytest.approx(2 * lengths[-2], abs=1)
    assert [" = " in line for line in bars] == [bar.exact for bar in BARS]
    assert "12.5" in bars[0]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "no such encoding"])
def test_where_blocks_cannot_be_written_bars_are_made_of_signs(encoding):
    text = drawn(SECTION, Paper(encoding=encoding))
    assert text.isascii()
    assert "####" in text


def test_colour_only_where_it_is_wanted():
    assert "\x1b" not in drawn(SECTION, Paper())
    assert "\x1b[1m" in drawn(SECTION, Paper(colour=True))


def test_nothing_in_a_section_is_obeyed_by_a_terminal():
    evil = Section("t", (("a", "x\x1b[2Jy"),), findings=(Finding("\x1b[2J", "\x1b]0;x\x07"),))
    assert "\x1b" not in drawn(evil, Paper())


def test_without_any_model_it_is_a_machine(run, environment, tmp_path):
    env = environment | {"HOME": str(tmp_path), "EDGESPEC_MODELS": str(tmp_path / "none")}
    done = run("doctor", env=env | {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("ascii")
    for word in ("Machine", "cores", "memory", "GPU", "Backends", "llamacpp", "edgespec pull"):
        assert word in text
    assert done.stderr == b""
    report = json.loads(run("doctor", "--json", env=env).stdout)
    assert [section["title"] for section in report["sections"]] == ["Machine", "Backends", "Models", "Model"]


def test_a_broken_model_is_one_line_after_the_machine(run, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF\x03\x00\x00\x00")
    done = run("doctor", str(broken))
    assert done.returncode == 1
    assert b"Machine" in done.stdout
    assert done.stderr.startswith(b"edgespec: ")
    assert done.stderr.count(b"\n") == 1
    as_json = run("doctor", "--json", str(broken))
    assert as_json.returncode == 1
    report = json.loads(as_json.stdout)
    assert "broken.gguf" in report["error"]
    assert report["sections"][0]["title"] == "Machine"


def test_wrong_usage(run):
    for arguments in (("-t", "x"), ("a", "-m", "b"), ("--load-mode", "mmap", "--no-mmap")):
        done = run("doctor", *arguments)
        assert done.returncode == 2
        assert done.stderr.count(b"\n") == 1


@pytest.mark.model
def test_the_small_model_is_measured_as_it_would_run(run, smollm2_path, environment):
    settings = environment | {"EDGESPEC_THREADS": "64", "EDGESPEC_CACHE_TYPE_K": "q8_0"}
    arguments = ("--backend", "llamacpp", "-ctv", "q8_0", "--json")
    done = run("doctor", str(smollm2_path), *arguments, env=settings)
    assert done.returncode == 0, done.stderr
    sections = {section["title"].split(":")[0]: section for section in json.loads(done.stdout)["sections"]}
    model = sections["Model"]
    assert model["figures"]["settings"]["type_k"] == model["figures"]["settings"]["type_v"] == "q8_0"
    assert any("64 threads are too many" in finding["text"] for finding in model["findings"])
    curve = sections["V(n)"]["chart"]
    assert [bar["rows"] for bar in curve][:3] == [1, 2, 3]
    assert all(bar["exact"] for bar in curve), "this file is exact at every count with these types"
    assert all(bar["seconds"] > 0 for bar in curve)
