"""Whatever a file holds: an answer or one line, soon, and without much memory."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc

import pytest
from hub_files import SMALL
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgespec.errors import EdgespecError
from edgespec.hub.gguf import check
from edgespec.hub.gguf_reader import KnownLists

MOST_MEMORY = 64 << 20
LONGEST = 5.0
"""Seconds; the bound is for busy machines."""
HEADER = 2 << 20


def examined(path) -> str:
    """What is said of the file, "" if it is sound. Fails for anything but an answer or one line."""
    tracemalloc.start()
    began = time.perf_counter()
    try:
        check(path)
        said = ""
    except EdgespecError as error:
        said = str(error)
    finally:
        took, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert said.isprintable()
    assert peak < MOST_MEMORY
    assert took < LONGEST
    return said


@pytest.fixture(scope="module")
def real(smollm2_path, tmp_path_factory):
    """A copy of the real model, as long as it, whose header may be damaged: its weights are a hole."""
    with smollm2_path.open("rb") as file:
        header = file.read(HEADER)
    path = tmp_path_factory.mktemp("fuzz") / "real.gguf"
    with path.open("wb") as file:
        file.write(header)
        file.truncate(smollm2_path.stat().st_size)
    assert examined(path) == ""
    return path, header


def flipped(real, places, examine):
    """What is said of the file with one bit of each place turned, one after another."""
    path, header = real
    generator = random.Random(7)
    for place in places:
        with path.open("r+b") as file:
            file.seek(place)
            file.write(bytes([header[place] ^ (1 << generator.randrange(8))]))
        yield examine(path)
        with path.open("r+b") as file:
            file.seek(place)
            file.write(header[place : place + 1])


FIRST, TOKENS_END, END = 2000, 1_768_000, 1_785_000
"""Where counts and lengths are dense, where the lists of texts end, and the tensors' list."""


@pytest.mark.model
def test_flipped_bits_of_a_real_header(real):
    generator = random.Random(5)
    places = [generator.randrange(*span) for span in ((FIRST,), (END,), (TOKENS_END, END)) for _ in range(5)]
    said = list(flipped(real, places, examined))
    assert len(said) == len(places)
    assert any(said)


@pytest.mark.model
def test_flipped_bits_as_a_listing_reads_them(real):
    """Lists of texts that are known are jumped over, so many more can be tried."""
    known: KnownLists = {}
    check(real[0], known)

    def quick(path) -> str:
        try:
            check(path, known)
            return ""
        except EdgespecError as error:
            return str(error)

    generator = random.Random(6)
    spans = ((0, 500), (500, FIRST), (TOKENS_END, END))
    places = [generator.randrange(*span) for span in spans for _ in range(100)]
    said = list(flipped(real, places, quick))
    assert sum(map(bool, said)) > 50
    assert all(line.isprintable() for line in said)
    assert quick(real[0]) == ""


@pytest.mark.model
@pytest.mark.parametrize("value", [0, 0xFF, 0x7F])
def test_eight_bytes_of_a_real_header_at_once(real, value):
    """Lengths and counts become zero or absurd."""
    path, header = real
    for place in (8, 16, 24, 1099, 1091, 960_187, 1_768_872):
        with path.open("r+b") as file:
            file.seek(place)
            file.write(bytes([value]) * 8)
        examined(path)
        with path.open("r+b") as file:
            file.seek(place)
            file.write(header[place : place + 8])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=6),
    cut=st.integers(0, len(SMALL)),
)
def test_any_damage(tmp_path, changes, cut):
    content = bytearray(SMALL)
    for place, value in changes:
        content[place] = value
    path = tmp_path / "fuzz.gguf"
    path.write_bytes(content[:cut])
    examined(path)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=st.tuples(*[st.sampled_from([0, 1, 2, 3, 255, 1 << 16, 1 << 31, (1 << 64) - 1])] * 2),
    rest=st.binary(max_size=300),
)
def test_any_bytes_after_the_magic(tmp_path, counts, rest):
    path = tmp_path / "fuzz.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, *counts) + rest)
    assert examined(path)
