"""Conversations in a real SQLite file."""

from __future__ import annotations

import sqlite3
import stat
import threading
import time
from dataclasses import replace

import pytest
from history.history_kit import NASTY, answer, conversation
from hypothesis import given
from hypothesis import strategies as st

from edgespec.history import History, HistoryError, NewerHistoryError, NoConversationError
from edgespec.history.schema import MIGRATIONS, VERSION, migrate


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history" / "c.db") as opened:
        yield opened


def test_a_conversation_comes_back_as_it_was(history):
    kept = conversation("Why?", "Because.", *NASTY[:4])
    id = history.add(kept)
    assert history.load(id) == replace(kept, id=id)
    with History(history.path) as again:
        assert again.load(id) == replace(kept, id=id)


def test_the_latest_comes_first_with_a_title_from_its_first_words(history):
    history.add(conversation("old\n  words", "x", began=10.0))
    history.add(conversation("first " * 40, "x", began=20.0))
    long, old = history.list()
    assert old.title == "old words"
    assert (len(long.title), long.title[-1]) == (80, "…")
    assert (old.turns, old.created, old.updated) == (2, 10.0, 12.0)
    assert history.latest() == long.id
    assert history.list(1) == [long]


def test_renaming_and_deleting(history):
    id = history.add(conversation("Tell me of tides", "The moon."))
    history.rename(id, " [/]  new\nname ")
    assert history.list()[0].title == "[/] new name"
    history.rename(id, "")
    assert history.list()[0].title == "Tell me of tides"
    history.delete(id)
    assert history.list() == history.search("moon") == []
    assert history.add(conversation("next", "y")) != id
    for missing in (history.load, history.delete, lambda n: history.rename(n, "x")):
        with pytest.raises(NoConversationError, match="there is no conversation 77"):
            missing(77)


def test_search_finds_parts_of_words_in_any_script_and_case(history):
    tides = history.add(conversation("Explain Tides", "The moon pulls at itertools.chain(a)", began=10.0))
    chinese = history.add(conversation("一个模型文件", "Да, ЯБЛОКО", began=20.0))

    def found(text):
        return [entry.id for entry in history.search(text)]

    assert found("TIDE") == found("ertools.ch") == found("moon pulls") == found("a)") == [tides]
    assert found("模型") == found("яблоко") == found("да") == [chinese]
    assert found("") == found(" \n") == [chinese, tides]
    assert found("moon tides") == []  # not in one message
    history.rename(chinese, "Obst und Äpfel")
    assert found("äpfel") == [chinese]
    (entry,) = history.search("pulls")
    assert entry.match == "The moon pulls at itertools.chain(a)"
    assert len(history.search("", 1)) == 1


@pytest.mark.parametrize(
    "text", [*NASTY, '"', "a* OR b", "NEAR(", "content:x", "{", "-", "'; DROP TABLE turn;--", "%", "_"]
)
def test_search_takes_any_text_literally(history, text):
    other = history.add(conversation("something else", "more of it", began=5.0))
    id = history.add(conversation(f"here: {text}", "ok"))
    assert [entry.id for entry in history.search(text)] == [id]
    assert other not in {entry.id for entry in history.search(text)}


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    with History(tmp_path_factory.mktemp("searched") / "c.db") as opened:
        opened.add(conversation("Some text to be found", "0123456789 äöü"))
        yield opened


@given(text=st.text())
def test_no_search_fails(searched, text):
    assert {entry.id for entry in searched.search(text)} <= {1}


def test_files_are_for_the_user_only(history):
    assert stat.S_IMODE(history.path.parent.stat().st_mode) == 0o700
    history.add(conversation("a", "b"))
    for file in history.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_damaged_file_is_set_aside_and_a_new_one_begun(history):
    history.add(conversation("a", "b"))
    history.close()
    damaged = b"not a database, but somebody's text" * 400
    history.path.write_bytes(damaged)
    told = []
    with History(history.path, told.append) as anew:
        assert anew.list() == []
        anew.add(conversation("c", "d"))
    (line,) = told
    (aside,) = history.path.parent.glob("c-damaged-*.db")
    assert str(aside) in line
    assert aside.read_bytes() == damaged
    with History(history.path, told.append) as again:
        assert len(again.list()) == 1
    assert len(told) == 1


def test_damage_that_shows_later_is_set_aside_too(history):
    for i in range(30):
        history.add(conversation(f"question {i} " * 200, "answer " * 500))
    history.close()
    content = history.path.read_bytes()
    history.path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    told = []
    with History(history.path, told.append) as opened:
        with pytest.raises(HistoryError):
            _ = [opened.load(id) for id in range(1, 31)]
        assert opened.list() == []
    assert len(told) == 1
    (aside,) = history.path.parent.glob("c-damaged-*.db")
    assert aside.stat().st_size == len(content)


def test_a_newer_file_is_refused_in_one_line_and_left_alone(history):
    history.close()
    with sqlite3.connect(history.path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    before = history.path.read_bytes()
    with pytest.raises(NewerHistoryError, match="newer edgespec") as caught:
        History(history.path)
    assert "\n" not in str(caught.value)
    assert history.path.read_bytes() == before


def test_a_migration_comes_whole_or_not_at_all(history):
    id = history.add(conversation("a", "b"))
    history.close()
    db = sqlite3.connect(history.path, isolation_level=None)
    broken = (*MIGRATIONS, ("ALTER TABLE turn ADD COLUMN extra TEXT", "ALTER TABLE nothing ADD COLUMN x"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(db, "c.db", broken)
    assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert "extra" not in [row[1] for row in db.execute("PRAGMA table_info(turn)")]
    sound = (*MIGRATIONS, ("ALTER TABLE turn ADD COLUMN extra TEXT DEFAULT 'x'",))
    migrate(db, "c.db", sound)
    migrate(db, "c.db", sound)
    assert db.execute("SELECT DISTINCT extra FROM turn WHERE conversation = ?", (id,)).fetchall() == [("x",)]
    db.close()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError) as caught:
        History(tmp_path / "file" / "history" / "c.db")
    assert "\n" not in str(caught.value)


def test_several_writers_at_once_lose_nothing(history):
    def write(name):
        with History(history.path) as mine:
            for i in range(20):
                mine.add(conversation(f"{name} {i}", "ok"))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.title for entry in history.list()) == sorted(
        f"{n} {i}" for n in "abcd" for i in range(20)
    )


def test_several_processes_may_create_the_file_at_once(tmp_path):
    path, opened, failed = tmp_path / "history" / "c.db", [], []

    def create():
        try:
            opened.append(History(path))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in opened:
        one.close()
    assert failed == []


def test_a_long_conversation_opens_at_once(history):
    texts = [f"message {i} " * 100 for i in range(500)]
    for i in range(20):
        history.add(conversation(*texts[: 20 + i]))
    id = history.add(conversation(*texts))
    began = time.perf_counter()
    with History(history.path) as fresh:
        assert len(fresh.load(id).turns) == 500
        assert fresh.search("message 499")[0].id == id
        assert len(fresh.list()) == 21
    assert time.perf_counter() - began < 1.0


def test_an_answer_is_stored_with_its_figures(history):
    figures = history.load(history.add(conversation("a", "b"))).turns[1].figures
    assert figures == answer("b", 0).figures
    assert figures.acceptance_rate == pytest.approx(2 / 3)
    assert figures.tokens_per_second == pytest.approx(8.0)
    assert figures.mean_acceptance_length == pytest.approx(1.25)
