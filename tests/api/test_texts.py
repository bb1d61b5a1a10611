"""Texts become tokens of a model's vocabulary, in parts from which the memory guesses without a gap."""

import random

import numpy as np
import pytest

from edgespec import TextMemory
from edgespec.api import texts
from edgespec.api.texts import TextError
from edgespec.backends.vocabulary import read_vocabulary
from edgespec.calibration import fingerprint
from edgespec.memory import Kept, Store, kept, location
from edgespec.proposers.memory import MemoryProposer
from edgespec.proposers.textindex import LONGEST, TextIndex
from edgespec.types import Plan

pytestmark = pytest.mark.model
WORDS = ("sea", "light", "keeper", "storm", "ship", "night", "wave", "bell", "rock", "gull")


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_DATA", str(tmp_path / "data"))


@pytest.fixture
def memory(smollm2_path):
    return TextMemory(smollm2_path)


@pytest.fixture
def store(smollm2_path):
    """What `edgespec.load` reads."""
    return Store(fingerprint(smollm2_path), smollm2_path.name)


def prose(words, seed=1):
    draw = random.Random(seed)
    said = [f"{draw.choice(WORDS)} {draw.randrange(10_000)}" for _ in range(words)]
    return "\n".join(" ".join(said[at : at + 7]) for at in range(0, words, 7))


def test_every_place_of_a_long_text_is_guessed_from(memory, store, smollm2_path, monkeypatch):
    monkeypatch.setattr(texts, "_BLOCK", 5000)
    text = prose(3000)
    size = memory.keep(text, "notes")
    parts = store.load()
    assert len(parts) > 3
    assert max(len(part) for _, part in parts) <= 2048
    proposer = MemoryProposer()
    proposer.take_in(TextIndex(parts[::-1]))
    tokens = read_vocabulary(smollm2_path)[0].tokenize(text, special=False)
    assert abs(len(tokens) - size) < 10, "blocks end where lines do"
    ends = range(LONGEST, len(tokens) - 8, 61)
    right = [
        proposer.propose(tokens[end - LONGEST : end], Plan(("memory",), 1)).tokens == (tokens[end],)
        for end in ends
        if not proposer.begin(())
    ]
    assert np.mean(right) > 0.98


@pytest.mark.parametrize("size", [4, LONGEST, LONGEST + 1, 2048, 2049, 4064, 4065])
def test_parts_overlap_by_what_a_match_looks_at_and_lose_nothing(size, memory, store, monkeypatch):
    monkeypatch.setattr(memory, "_vocabulary", Lengths())
    assert memory.keep("x" * size) == size
    *rest, last = [part.tolist() for _, part in store.load()][::-1]
    joined = [token for part in rest for token in part[:-LONGEST]] + last
    assert joined == list(range(size))


class Lengths:
    """A vocabulary in which every character is another token."""

    def tokenize(self, text, *, special):
        return list(range(len(text)))


def test_a_text_is_kept_once_and_under_its_name_as_it_was_last(memory, store):
    first, second = prose(30), prose(40)
    for text in (first, first, second):
        memory.keep(text)
        memory.keep(text, "notes")
    [found] = kept()
    assert found == Kept(store._name, 0, 3, found.size)


def test_what_is_no_use_or_too_much_is_refused(memory, monkeypatch):
    monkeypatch.setattr(texts, "MOST_TOKENS", 1000)
    for text, why in (("", "empty"), (" \n\t", "empty"), ("sea", "too little"), (prose(600), "too long")):
        with pytest.raises(TextError, match=why):
            memory.keep(text)
    assert not location().exists()


def test_one_may_stop_it_and_then_nothing_is_kept(memory, monkeypatch):
    monkeypatch.setattr(texts, "_BLOCK", 1000)
    shares = []

    def progress(share):
        shares.append(share)
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.keep(prose(600), progress=progress)
    assert shares == sorted(shares)
    assert len(shares) > 2
    assert not location().exists()
