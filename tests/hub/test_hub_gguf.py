"""The header check: sound files pass quickly, everything else gets one line that says what it is."""

from __future__ import annotations

import ctypes
import importlib
import os
import struct
import time
from pathlib import Path

import pytest
from hub_files import ARRAY, SMALL, STRING, gguf, pair, tensor, text, word, words
from hypothesis import given, settings
from hypothesis import strategies as st

from edgespec.errors import EdgespecError, ModelFileError, UnsupportedModelError
from edgespec.hub.ggml_types import BLOCKS
from edgespec.hub.gguf import check

LLAMA = pair("general.architecture", STRING, text("llama"))


@pytest.fixture
def write(tmp_path):
    def put(content: bytes):
        path = tmp_path / "x.gguf"
        path.write_bytes(content)
        return path

    return put


def refused(path, error=ModelFileError) -> str:
    with pytest.raises(error) as caught:
        check(path)
    assert type(caught.value) is error
    assert str(caught.value).isprintable()
    assert path.name in str(caught.value)
    return str(caught.value)


def test_a_sound_file(write):
    size = len(SMALL) - 16
    header = check(write(SMALL))
    assert (header.version, header.architecture, header.name) == (3, "llama", "Tiny")
    assert (header.file_type, header.quantization, header.context) == (2, "Q4_0", 512)
    assert (header.n_tensors, header.n_params, header.size) == (1, 256, size)
    assert header.metadata["tokenizer.ggml.scores"] == (0.0, 0.0, 0.0)
    assert header.metadata["tokenizer.ggml.add_bos"] is True
    assert header.lists["tokenizer.ggml.tokens"].count == 50
    assert check(write(SMALL[:size])).size == size
    assert check(write(gguf(version=2))).version == 2
    assert check(write(gguf(pairs=[LLAMA, word("general.alignment", 64)], alignment=64))).context is None


@pytest.mark.model
def test_the_default_model(smollm2_path):
    header = check(smollm2_path)
    assert (header.architecture, header.quantization, header.size) == ("llama", "Q4_1", 98_362_432)


def test_a_large_vocabulary_is_quick(write):
    path = write(gguf(pairs=[LLAMA, words("a", ["Ġword"] * 150_000), words("b", ["Ġa b"] * 150_000)]))
    best = min(_timed(path) for _ in range(3))
    assert best < 0.2


def _timed(path) -> float:
    start = time.perf_counter()
    check(path)
    return time.perf_counter() - start


def test_cut_and_grown_files_give_both_sizes(write):
    need = len(SMALL) - 16
    assert f"needs {need:,} bytes, has {need - 100:,}" in refused(write(SMALL[: need - 100]))
    assert f"needs {need:,} bytes, has {len(SMALL) + 1_000_000:,}" in refused(write(SMALL + bytes(1_000_000)))


def test_cut_anywhere(write):
    for n in range(1, len(SMALL) - 16):
        said = refused(write(SMALL[:n]))
        assert "cut off" in said or f"has {n:,}" in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "git-lfs pointer"),
        (b"\n<!DOCTYPE html><html>", "web page"),
        (b"<html><head>", "web page"),
        (b"PK\x03\x04" + bytes(60), "zip archive"),
        (struct.pack("<Q", 20) + b'{"a": {"dtype": "F32"}}', "safetensors"),
        (b"lmgg" + bytes(40), "old GGML"),
        (b"tjgg" + bytes(40), "old GGML"),
        (bytes(64), "begins with zeros"),
        (b"hello", "not a GGUF file"),
    ],
)
def test_other_things_are_named(write, content, said):
    assert said in refused(write(content))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"GGUF" + struct.pack(">I", 3) + bytes(40), "big-endian"),
        (gguf(version=4), "version 4, newer"),
        (gguf(version=1), "version 1, older"),
        (gguf(tensors=[tensor("w", (32,), 99, 0)]), "unsupported type 99 (w)"),
        (gguf(tensors=[tensor("w", (32,), 31, 0)]), "Q4_0_4_4, which llama.cpp no longer has (w)"),
        (gguf(pairs=[LLAMA, pair("general.type", STRING, text("adapter"))]), "is a LoRA adapter"),
        (gguf(pairs=[pair("general.architecture", STRING, text("clip"))]), "a projector for images"),
    ],
)
def test_sound_but_unknown_is_unsupported(write, content, said):
    assert said in refused(write(content), UnsupportedModelError)


HUGE = (1 << 64) - 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gguf(pairs=[]), "names no architecture"),
        (gguf(pairs=[LLAMA, word("general.alignment", 3)]), "alignment 3"),
        (gguf(pairs=[LLAMA, pair("x", 77, b"")]), "unknown type 77"),
        (gguf(pairs=[LLAMA, pair("x", ARRAY, struct.pack("<IQ", ARRAY, 1))]), "array of type 9"),
        (gguf(pairs=[LLAMA, pair("x", ARRAY, struct.pack("<IQ", STRING, HUGE))]), "list of"),
        (gguf(pairs=[LLAMA, pair("x", ARRAY, struct.pack("<IQ", 10, HUGE))]), "cut off inside"),
        (gguf(pairs=[LLAMA, pair("x", STRING, struct.pack("<Q", HUGE))]), "cut off inside"),
        (gguf(pairs=[LLAMA, words("x", ["a"])[:-9] + struct.pack("<Q", HUGE)]), "cut off inside"),
        (gguf(tensors=[]), "holds no weights"),
        (gguf(tensors=[tensor("w", (1,) * 9, 0, 0)]), "9 dimensions"),
        (gguf(tensors=[tensor("w", (33,), 2, 0)]), "rows of 33"),
        (gguf(tensors=[tensor("w", (HUGE, HUGE), 0, 0)]), "needs"),
        (gguf(tensors=[tensor("w", (32,), 0, HUGE)]), "needs"),
        (b"GGUF" + struct.pack("<IQQ", 3, HUGE, 0), "tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, HUGE), "entries"),
    ],
)
def test_hostile_headers(write, content, said):
    start = time.perf_counter()
    assert said in refused(write(content))
    assert time.perf_counter() - start < 0.5


def test_terminal_codes_in_metadata_are_harmless(write):
    pairs = [LLAMA, pair("general.name", STRING, text("a\x1b[2J\nb"))]
    assert check(write(gguf(pairs=pairs))).name == "a?[2J?b"
    assert "w?[0m" in refused(write(gguf(tensors=[tensor("w\x1b[0m", (32,), 99, 0)])), UnsupportedModelError)


@given(place=st.integers(0, len(SMALL) - 1), value=st.integers(0, 255), cut=st.integers(0, len(SMALL)))
@settings(max_examples=300, deadline=None)
def test_damage_is_an_answer_or_an_edgespec_error(tmp_path_factory, place, value, cut):
    content = bytearray(SMALL)
    content[place] = value
    path = tmp_path_factory.getbasetemp() / "fuzz.gguf"
    path.write_bytes(content[:cut])
    try:
        said, size = "", check(path).size
    except EdgespecError as error:
        said, size = str(error), 0
    assert size <= cut
    assert said.isprintable()


def test_block_sizes_are_the_library_s():
    llama_cpp = importlib.import_module("llama_cpp.llama_cpp")
    libraries = sorted(Path(llama_cpp.__file__).parent.glob("lib/libggml-base*"))
    if not libraries:
        pytest.skip("llama-cpp-python ships no separate ggml library here")
    ggml = ctypes.CDLL(str(libraries[0]))
    ggml.ggml_blck_size.restype, ggml.ggml_type_size.restype = ctypes.c_int64, ctypes.c_size_t
    for kind, (values, size) in BLOCKS.items():
        assert (ggml.ggml_blck_size(kind), ggml.ggml_type_size(kind)) == (values, size)


def test_a_file_larger_than_the_address_space_is_read(tmp_path):
    """Only its beginning is mapped."""
    path = tmp_path / "large.gguf"
    path.write_bytes(gguf(tensors=[tensor("w", (1 << 42,), 24, 0)], data=0))
    start = path.stat().st_size
    assert f"needs {start + (1 << 42):,} bytes, has {start:,}" in refused(path)
    os.truncate(path, start + (1 << 42))
    assert check(path).size == start + (1 << 42)
