"""`edgespec memory`, and what run keeps for it."""

import json

import pytest

from edgespec.cli import main
from edgespec.memory import Store, location


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_DATA", str(tmp_path / "data"))


@pytest.fixture
def environment(environment, tmp_path):
    return environment | {"EDGESPEC_DATA": str(tmp_path / "data")}


@pytest.fixture
def said(capfd):
    """Run the command; its exit code, stdout and stderr."""

    def run(*arguments):
        code = main(["memory", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_it_shows_how_much_is_kept_of_which_model_and_clears_it(said):
    store = Store("a", "Some-Model.gguf")
    for _ in range(2):
        store.add([1] * 600)
    store.add_file("notes", [[1] * 100, [2] * 100])
    assert said("show") == (0, "Some-Model.gguf  2 answers  1 files  0.01 MB\n", "")
    assert said("path") == (0, f"{location()}\n", "")
    assert said("clear") == (0, "", "")
    assert not location().exists()
    assert said("clear") == (0, "", "edgespec: nothing is kept\n")
    assert said("show") == (0, "", "edgespec: nothing is kept\n")


def test_a_damaged_memory_is_one_line(said):
    location().parent.mkdir(parents=True)
    location().write_bytes(b"rubbish" * 1000)
    code, out, err = said("show")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "begins anew" in err
    assert said("show")[0] == 0


STORY = "Write a story about the sea and a lighthouse keeper."


@pytest.mark.model
def test_an_answer_is_guessed_from_a_file_that_it_quotes(run, environment, tmp_path, smollm2_path):
    def answer(*flags):
        return run("run", "-p", STORY, "-n", "80", "--temp", "0", "-t", "1", *flags, env=environment)

    plain = answer("--no-memory")
    half = len(plain.stdout) // 2
    edited = b"Chapter one\n\n" + plain.stdout[:half] + b" (cut) " + plain.stdout[half:] + b"\nThe end\n"
    (tmp_path / "story.md").write_bytes(edited)
    assert not location().exists()
    done = run("memory", "add", str(smollm2_path), "story.md", env=environment, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"story.md: ")
    before = location().read_bytes()
    *said, summary = map(
        json.loads, answer("--json", "--spec", "memory", "--draft-max", "8").stdout.splitlines()
    )
    assert "".join(line["text"] for line in said).strip() == plain.stdout.decode().strip()
    assert summary["sources"]["memory"] > 40
    assert location().read_bytes() == before


@pytest.mark.model
def test_what_cannot_be_kept_is_one_line_each_and_the_rest_is_kept(said, tmp_path, smollm2_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edgespec.cli.memory.MOST_BYTES", 10_000)
    contents = {
        "good": b"one two three four five six",
        "empty": b" \n\n",
        "short": b"one",
        "latin": b"caf\xe9 au lait and more",
        "zero": b"one\0two three four five",
        "large": b"word " * 2001,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    code, out, err = said("add", str(smollm2_path), "missing", "folder", *contents)
    assert (code, out) == (1, "good: 6 tokens\n")
    assert sorted(err.splitlines()) == [
        "edgespec: empty is not kept: it is empty",
        "edgespec: folder: Is a directory",
        "edgespec: large is too large: it has more than 0 MB",
        "edgespec: latin is not UTF-8 text (byte 3): convert it, or give another file",
        "edgespec: missing: No such file or directory",
        "edgespec: short is not kept: there is too little in it to guess from",
        "edgespec: zero is no text: it has zero bytes",
    ]
    assert said("show")[1].split()[1:] == ["0", "answers", "1", "files", "0.00", "MB"]
    assert said("add", str(smollm2_path), "good") == (0, "good: 6 tokens\n", "")
    assert said("show")[1].split()[1:] == ["0", "answers", "1", "files", "0.00", "MB"]


def test_files_need_a_model_that_is_there(said, tmp_path):
    (tmp_path / "notes").write_text("one two three four five six")
    code, out, err = said("add", str(tmp_path / "none.gguf"), str(tmp_path / "notes"))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said("add", "model.gguf")[0] == 2
    assert not location().exists()


@pytest.mark.model
@pytest.mark.parametrize("how", ["variable", "setting"])
def test_nothing_is_added_where_the_memory_is_off(how, run, environment, tmp_path, smollm2_path):
    environment = environment | {"EDGESPEC_CONFIG": str(tmp_path / "config")}
    if how == "variable":
        environment |= {"EDGESPEC_MEMORY": "off"}
    else:
        run("config", "set", "memory", "false", "--for", str(smollm2_path), env=environment)
    done = run("memory", "add", str(smollm2_path), "-", input=b"one two three four five", env=environment)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"edgespec: the memory is off, so nothing is kept")
    assert not location().exists()


@pytest.mark.model
def test_standard_input_is_kept_once(run, environment, smollm2_path):
    for _ in range(2):
        done = run("memory", "add", "smollm2:135m", "-", input=b"one two three four five", env=environment)
        assert (done.returncode, done.stdout) == (0, b"standard input: 5 tokens\n")
    assert run("memory", "show", env=environment).stdout.split()[1:5] == [b"0", b"answers", b"1", b"files"]


@pytest.mark.model
@pytest.mark.parametrize(
    ("flags", "variables", "kept"),
    [
        ((), {}, False),
        (("--memory",), {}, True),
        (("--history",), {}, True),
        (("--history", "--no-memory"), {}, False),
        (("--history",), {"EDGESPEC_MEMORY": "off"}, False),
        (("--memory", "--spec", "off"), {}, False),
    ],
)
def test_run_keeps_answers_where_it_keeps_the_conversation(
    flags, variables, kept, run, environment, smollm2_path
):
    done = run(
        "run",
        "-p",
        "Write a long story about the sea.",
        "-n",
        "24",
        "--temp",
        "0",
        "-t",
        "1",
        *flags,
        env=environment | variables,
    )
    assert done.returncode == 0
    assert location().exists() == kept


@pytest.mark.model
def test_a_setting_switches_it_off(run, environment, tmp_path, smollm2_path):
    environment = environment | {"EDGESPEC_CONFIG": str(tmp_path / "config")}
    assert run("config", "set", "memory", "false", env=environment).returncode == 0
    assert b"memory = false" in run("config", env=environment).stdout
    done = run(
        "run",
        "-p",
        "Write a long story about the sea.",
        "-n",
        "24",
        "--temp",
        "0",
        "-t",
        "1",
        "--history",
        "--json",
        env=environment,
    )
    assert json.loads(done.stdout.splitlines()[-1])
    assert not location().exists()
