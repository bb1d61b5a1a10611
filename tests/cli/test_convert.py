"""`edgespec convert` as people start it."""

import signal
import time
from pathlib import Path

import pytest

from tests.convert.families import family


@pytest.fixture
def tiny(tmp_path):
    return family(tmp_path / "tiny.gguf", "qwen2")


def test_the_folder_is_printed_and_the_rest_is_told(run, tiny, tmp_path):
    done = run("convert", str(tiny), "--to", "onnx", "-o", str(tmp_path / "made"))
    assert done.returncode == 0
    assert done.stdout.decode() == f"{tmp_path / 'made'}\n"
    assert b"F32 weights were rounded to 8 bits: relative error at most" in done.stderr
    assert (tmp_path / "made" / "model.onnx").is_file()


def test_once_into_the_cache(run, tiny):
    first, second = (run("convert", str(tiny), "--to", "onnx") for _ in range(2))
    assert b"once, into" in first.stderr
    assert second.stderr == b""
    assert second.stdout == first.stdout
    assert Path(first.stdout.decode().strip()).name == "tiny"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("{tiny}", "--to", "onnx", "-o", "{there}"), 2, "is there already: name a new folder with -o"),
        (("{there}", "--to", "onnx"), 1, "is a folder"),
        (("{tiny}", "--to", "tflite"), 2, "is not one of"),
        (("{tiny}",), 2, "Missing option '--to'"),
    ],
)
def test_one_line_says_what_is_wrong(run, tiny, tmp_path, arguments, code, message):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").touch()
    done = run("convert", *(a.format(tiny=tiny, there=tmp_path / "there") for a in arguments))
    assert done.returncode == code
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert message in done.stderr.decode()


@pytest.mark.model
def test_interrupted_it_leaves_nothing(start, smollm2_path, tmp_path):
    out = tmp_path / "out"
    process = start("convert", str(smollm2_path), "--to", "onnx", "-o", str(out / "made"))
    while not (out.is_dir() and any(out.iterdir())):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert list(out.iterdir()) == []
