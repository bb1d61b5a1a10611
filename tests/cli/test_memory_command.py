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
    assert said("show") == (0, "Some-Model.gguf  2 answers  0.00 MB\n", "")
    assert said("path") == (0, f"{location()}\n", "")
    assert said("clear") == (0, "", "")
    assert not location().exists()
    assert said("clear") == (0, "", "edgespec: no answers are kept\n")
    assert said("show") == (0, "", "edgespec: no answers are kept\n")


def test_a_damaged_memory_is_one_line(said):
    location().parent.mkdir(parents=True)
    location().write_bytes(b"rubbish" * 1000)
    code, out, err = said("show")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "begins anew" in err
    assert said("show")[0] == 0


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
