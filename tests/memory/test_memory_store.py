"""What is kept of past answers: bounded, private, and harmless when damaged."""

import os
import sqlite3
import stat
import subprocess
import sys

import pytest

from edgespec.memory import Kept, MemoryStoreError, Store, clear, kept


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory" / "answers.db"


def texts(store):
    return [tokens.tolist() for _, tokens in store.load()]


def test_answers_are_there_in_the_next_run_the_last_used_first(path):
    store = Store("a", "Model A", path)
    first, *_ = [store.add([n, 2, 150_000]) for n in range(3)]
    assert texts(Store("a", "Model A", path)) == [[2, 2, 150_000], [1, 2, 150_000], [0, 2, 150_000]]
    store.used([first])
    assert texts(store)[0] == [0, 2, 150_000]


def test_models_have_their_own(path):
    a, b = Store("a", "Model A", path), Store("b", "Model B", path)
    number = a.add([1, 2, 3, 4])
    b.add([5])
    b.used([number])
    assert texts(a) == [[1, 2, 3, 4]]
    assert texts(b) == [[5]]
    a.add_file("notes", [[9]])
    a.add_file("notes", [])
    b.add_file("notes", [[6, 7], [8]])
    assert kept(path) == [Kept("Model A", 1, 0, 16), Kept("Model B", 1, 1, 16)]


def test_a_file_is_kept_once_as_it_was_last(path):
    store = Store("a", "A", path)
    store.add([1])
    for parts in ([[2], [3]], [[4], [5], [6]], [[4], [5], [6]]):
        store.add_file("notes", parts)
    store.add_file("more", [[7]])
    assert texts(store) == [[7], [6], [5], [4], [1]]
    assert kept(path) == [Kept("A", 1, 2, 20)]


def test_of_a_file_that_is_broken_off_nothing_is_kept(path):
    def broken():
        yield [2]
        raise KeyboardInterrupt

    store = Store("a", "A", path)
    store.add_file("notes", [[1]])
    with pytest.raises(KeyboardInterrupt):
        store.add_file("notes", broken())
    assert texts(store) == [[1]]


def test_files_give_way_to_what_is_used(path):
    store = Store("a", "A", path, most_bytes=200_000)
    store.add_file("old", [[n] * 1000 for n in range(20)])
    store.used([number for number, tokens in store.load() if tokens[0] == 3])
    store.add_file("new", [[n] * 1000 for n in range(100, 135)])
    assert path.stat().st_size <= 208_192
    left = {tokens[0] for tokens in texts(store)}
    assert left >= {3, *range(100, 135)}
    assert 0 not in left


def first_version(path):
    """A memory as it was before files were kept."""
    path.parent.mkdir()
    with sqlite3.connect(path) as db:
        db.executescript(
            "CREATE TABLE answers (id INTEGER PRIMARY KEY, model TEXT NOT NULL, name TEXT NOT NULL,"
            " used INTEGER NOT NULL, tokens BLOB NOT NULL); PRAGMA user_version = 1"
        )
        db.execute("INSERT INTO answers VALUES (1, 'a', 'A', 1, ?)", (b"\1\0\0\0" * 3,))
    db.close()


def test_a_memory_from_before_files_goes_on(path):
    first_version(path)
    store = Store("a", "A", path)
    assert texts(store) == [[1, 1, 1]]
    store.add_file("notes", [[2]])
    assert kept(path) == [Kept("A", 1, 1, 16)]


def test_looking_makes_no_file(path):
    assert Store("a", "A", path).load() == []
    assert kept(path) == []
    assert not clear(path)
    assert not path.parent.exists()


def test_the_file_stays_within_its_bound_and_what_was_used_stays(path):
    most = 200_000
    store = Store("a", "A", path, most_bytes=most)
    useful = store.add([7] * 1000)
    for n in range(80):
        store.add([n] * 1000)
        store.used([useful])
        assert path.stat().st_size <= most + 8192
    left = texts(store)
    assert left[0] == [7] * 1000
    assert left[1] == [79] * 1000
    assert 20 < len(left) < 50


def test_an_answer_above_the_bound_leaves_a_file_within_it(path):
    store = Store("a", "A", path, most_bytes=50_000)
    store.add([1] * 100_000)
    store.add([2] * 100)
    assert texts(store) == [[2] * 100]
    assert path.stat().st_size <= 60_000


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX: no signals there either")
def test_nobody_else_may_read(path):
    before = os.umask(0)
    try:
        Store("a", "A", path).add([1])
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_was_cleared_is_gone_from_the_disk(path):
    store = Store("a", "A", path)
    store.add([0x41424344] * 50)
    assert b"DCBA" * 50 in path.read_bytes()
    assert clear(path)
    assert list(path.parent.iterdir()) == []
    assert store.load() == []
    store.add([1])
    assert texts(store) == [[1]]


def test_what_gave_way_is_overwritten(path):
    store = Store("a", "A", path, most_bytes=100_000)
    store.add([0x41424344] * 1000)
    for _ in range(40):
        store.add([1] * 1000)
    assert b"DCBA" not in path.read_bytes()


@pytest.mark.parametrize("content", [b"nothing of the kind" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_told_once_and_begun_anew(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    store = Store("a", "A", path)
    with pytest.raises(MemoryStoreError, match=r"^the memory .* was damaged: it begins anew, without"):
        store.load()
    assert store.load() == []
    store.add([1, 2])
    assert texts(store) == [[1, 2]]


def test_a_file_cut_in_the_middle_is_harmless(path):
    store = Store("a", "A", path)
    for n in range(50):
        store.add([n] * 500)
    path.write_bytes(path.read_bytes()[:30_000])
    with pytest.raises(MemoryStoreError, match="begins anew"):
        store.load()
    store.add([1, 2])
    assert texts(store) == [[1, 2]]


def test_another_ones_database_is_left_alone(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE answers (text)")
    db.close()
    with pytest.raises(MemoryStoreError, match="cannot be used"):
        Store("a", "A", path).load()
    assert path.stat().st_size > 0


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "memory").write_text("a file")
    store = Store("a", "A", tmp_path / "memory" / "answers.db")
    with pytest.raises(MemoryStoreError, match="cannot be used"):
        store.add([1])


def test_several_processes_lose_nothing(path):
    first_version(path)
    code = (
        "import sys; from pathlib import Path; from edgespec.memory import Store\n"
        "s = Store('a', 'A', Path(sys.argv[1]))\n"
        "for n in range(20): s.add([int(sys.argv[2]), n]); s.load()\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(path), str(k)]) for k in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert sorted(texts(Store("a", "A", path))) == sorted(
        [[1, 1, 1], *([k, n] for k in range(3) for n in range(20))]
    )
