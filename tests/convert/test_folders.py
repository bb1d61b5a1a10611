"""Converted folders appear whole or not at all."""

import os
import re
import shutil
import subprocess

import pytest

from edgespec.convert import convert, prepare, prepared
from edgespec.errors import Cancelled, ConversionError, UnsupportedModelError, UsageError
from tests.backends.tiny import tiny_mamba
from tests.convert.families import family


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "cache"))
    return family(tmp_path / "tiny.gguf", "llama")


def quiet(*_):
    pass


def test_a_folder_that_is_there_is_left_alone(source, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        convert(source, "onnx", tmp_path / "there", notify=quiet, progress=quiet)
    assert [file.name for file in (tmp_path / "there").iterdir()] == ["mine.txt"]


def test_cancelled_in_the_middle(source, tmp_path):
    shares = []

    def progress(share):
        shares.append(share)
        if share > 0.4:
            raise Cancelled("interrupted")

    with pytest.raises(Cancelled):
        convert(source, "onnx", tmp_path / "out" / "model", notify=quiet, progress=progress)
    assert 0 <= shares[0] < shares[-1] < 1
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("form", ["onnx", "mlx"])
def test_a_full_disk(source, tmp_path, form):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not mount or os.geteuid():
        pytest.skip("mounting needs root")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no mounts here: {done.stderr.strip()}")
    try:
        with pytest.raises(ConversionError, match=r"disk of .* is full: make room"):
            convert(source, form, disk / "model", notify=quiet, progress=quiet)
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run([umount, str(disk)], check=True)


def test_once_into_the_cache(source):
    notes = []
    assert prepared(source, "onnx") is None
    folder = prepare(source, "onnx", notify=notes.append, progress=quiet)
    assert re.match(r"converting tiny\.gguf for onnx, once, into ", notes[0])
    assert prepared(source, "onnx") == folder
    assert prepare(source, "onnx", notify=lambda line: pytest.fail(line), progress=quiet) == folder


def test_another_file_of_the_same_name_is_another_folder(source, tmp_path):
    folder = prepare(source, "onnx", notify=quiet, progress=quiet)
    family(source, "qwen2")
    assert prepared(source, "onnx") is None
    assert prepare(source, "onnx", notify=quiet, progress=quiet) != folder


def test_nothing_is_left_of_what_cannot_be_converted(source, tmp_path):
    with pytest.raises(UnsupportedModelError):
        prepare(tiny_mamba(tmp_path / "mamba.gguf"), "onnx", notify=quiet, progress=quiet)
    left = [file for file in (tmp_path / "cache" / "converted").iterdir() if file.suffix != ".lock"]
    assert left == []


def test_forms_that_are_unknown(source, tmp_path):
    with pytest.raises(UsageError, match="unknown form 'tflite'"):
        convert(source, "tflite", tmp_path / "x", notify=quiet, progress=quiet)
