"""--backend and --draft-backend: other libraries, the same text; what cannot be meant is one line."""

import json

import pytest

from edgespec.backends.registry import ADAPTERS
from tests.backends.cut import cut

ANSWER = ("-p", "Once upon a time", "--raw", "-n", "12", "--temp", "0", "-t", "1", "-c", "256")


@pytest.fixture(scope="module")
def short(smollm2_path, tmp_path_factory):
    """The first layers and tokens of the small model."""
    return cut(smollm2_path, tmp_path_factory.mktemp("cut") / "cut.gguf")


def summary(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("option", ["--backend", "--draft-backend"])
def test_a_backend_that_does_not_exist(run, option):
    done = run("run", option, "nosuch", "-p", "hi")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert f"'nosuch' is not one of 'auto', {', '.join(map(repr, ADAPTERS))}" in done.stderr.decode()


def test_a_backend_that_is_not_installed_says_how_to_install_it(run, tmp_path, environment):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.metadata as m\n"
        "def gone(name): raise m.PackageNotFoundError(name)\n"
        "m.version = gone\n"
    )
    done = run("run", "--backend", "ik", "-p", "hi", env=environment | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert b"pip install ik-llama-cpp-python" in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.model
def test_a_folder_is_a_model_of_the_backend_that_takes_it_or_nothing(run, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    done = run("run", str(tmp_path), "-p", "hi")
    assert done.returncode == 1
    assert b"no backend can load" in done.stderr
    assert done.stderr.count(b"\n") == 1
    asked = run("run", str(tmp_path), "-p", "hi", "--backend", "ik")
    assert asked.returncode == 1
    assert b"ik_llama.cpp loads GGUF files" in asked.stderr


@pytest.mark.model
def test_onnx_converts_once_and_says_so(run, short):
    first = run("run", str(short), *ANSWER, "--backend", "onnx", "--json", timeout=120)
    assert summary(first)["backend"] == "onnx"
    assert b"converting cut.gguf for onnx, once" in first.stderr
    again = run("run", str(short), *ANSWER, "--backend", "onnx", "--json", timeout=120)
    assert b"converting" not in again.stderr
    assert summary(run("run", str(short), *ANSWER, "--json"))["backend"] == "llamacpp", "nobody measured it"


@pytest.mark.model
@pytest.mark.parametrize(("target", "draft"), [("llamacpp", "ik"), ("ik", "llamacpp"), ("ik", "auto")])
def test_a_draft_on_another_backend_changes_no_text(run, short, target, draft):
    plain = run("run", str(short), *ANSWER, "--backend", target, "--spec", "off")
    drafting = ("-md", str(short), "--draft-backend", draft, "--spec", "draft", "--draft-max", "3")
    done = run("run", str(short), *ANSWER, "--backend", target, *drafting, "--numerics", "exact", "--json")
    told = summary(done)
    assert told["backend"] == target
    assert told["draft_n"] > 0
    lines = [json.loads(line) for line in done.stdout.splitlines()[:-1]]
    assert "".join(line["text"] for line in lines).strip() == plain.stdout.decode().strip()
