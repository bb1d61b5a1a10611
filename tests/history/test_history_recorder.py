"""A conversation is kept while it happens."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from history.history_kit import NASTY, conversation, pieces

from edgespec.history import Figures, History, Recorder, Run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history" / "c.db"


def texts(path, id=1):
    with History(path) as history:
        return [(turn.role, turn.content, turn.state) for turn in history.load(id).turns]


def test_a_turn_is_there_before_its_answer_and_the_answer_while_it_runs(path):
    with Recorder(path) as recorder:
        recorder.describe(system="Be brief.", model="/m.gguf")
        assert not path.exists()
        recorder.ask("Why?")
        assert recorder.flush()
        assert texts(path) == [("user", "Why?", "complete")]
        recorder.answering("m")
        recorder.add(pieces("Be", "cause"))
        assert recorder.flush()
        assert texts(path)[1:] == [("assistant", "Because", "partial")]
        recorder.add(pieces(" so.", source="draft"))
        recorder.answered("stop", Figures(tokens=3))
        assert recorder.flush()
        with History(path) as history:
            kept = history.load(1)
            assert history.search("because so")[0].id == 1
        assert kept.turns == recorder.conversation.turns
        last = kept.turns[1]
        assert (last.state, last.finish, last.model) == ("complete", "stop", "m")
        assert last.runs == (Run(7, "target"), Run(4, "draft"))
        assert (kept.system, kept.model) == ("Be brief.", "/m.gguf")


def test_the_answer_reaches_the_disk_by_itself_within_a_second(path):
    with Recorder(path) as recorder:
        recorder.ask("Why?")
        recorder.answering()
        for _ in range(40):
            recorder.add(pieces("word "))
            time.sleep(0.02)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            if path.exists() and len(texts(path)) == 2:
                break
        assert texts(path)[1][1].startswith("word word")


def test_stopped_answers_stay_and_empty_ones_do_not(path):
    with Recorder(path) as recorder:
        recorder.ask("a")
        recorder.answering()
        recorder.answered("cancelled")
        recorder.ask("b")
        recorder.answering()
        recorder.add(pieces("half"))
        recorder.answered("cancelled")
        recorder.ask("c")
        recorder.answering()
        recorder.answered("stop")
    assert texts(path) == [
        ("user", "a", "complete"),
        ("user", "b", "complete"),
        ("assistant", "half", "stopped"),
        ("user", "c", "complete"),
        ("assistant", "", "complete"),
    ]


def test_edited_turns_cut_the_tail(path):
    with Recorder(path) as recorder:
        for question in ("one", "two", "three"):
            recorder.ask(question)
            recorder.answering()
            recorder.add(pieces(f"answer {question}"))
            recorder.answered("stop")
        recorder.flush()
        recorder.cut(2)
        recorder.ask("zwei")
        recorder.flush()
        assert [content for _, content, _ in texts(path)] == ["one", "answer one", "zwei"]
        with History(path) as history:
            assert history.search("three") == []
        recorder.cut(0)
        recorder.ask("eins")
    assert [content for _, content, _ in texts(path)] == ["eins"]


def test_resuming_goes_on_in_the_same_conversation(path):
    with History(path) as history:
        id = history.add(conversation("a", "b", title="named"))
        kept = history.load(id)
    with Recorder(path, kept) as recorder:
        recorder.flush()
        assert texts(path, id) == [("user", "a", "complete"), ("assistant", "b", "complete")]
        recorder.ask("c")
        recorder.describe(title="renamed")
    assert [content for _, content, _ in texts(path, id)] == ["a", "b", "c"]
    with History(path) as history:
        (entry,) = history.list()
        assert entry.title == "renamed"
        assert entry.updated > kept.updated


def test_two_processes_in_one_conversation_get_one_each(path):
    with History(path) as history:
        kept = history.load(history.add(conversation("a", "b")))
    with Recorder(path, kept) as one, Recorder(path, kept) as two:
        one.ask("from one")
        one.flush()
        two.ask("from two")
        two.flush()
        one.answering()
        one.add(pieces("to one"))
        assert one.id == 1
        assert two.id == 2
    assert [content for _, content, _ in texts(path, 1)] == ["a", "b", "from one", "to one"]
    assert [content for _, content, _ in texts(path, 2)] == ["a", "b", "from two"]


def test_beginning_another_and_deleting(path):
    with Recorder(path) as recorder:
        recorder.describe(system="Be brief.")
        recorder.ask("first")
        recorder.answering()
        recorder.add(pieces("half"))
        recorder.begin()
        recorder.ask("second")
        recorder.flush()
        assert recorder.conversation.system == "Be brief."
        assert [content for _, content, _ in texts(path, 1)] == ["first", "half"]
        assert [content for _, content, _ in texts(path, 2)] == ["second"]
        recorder.answering()
        recorder.add(pieces("going"))
        recorder.delete()
        recorder.flush()
        with History(path) as history:
            assert [entry.id for entry in history.list()] == [1]
            recorder.begin(history.load(1))
        recorder.ask("more")
    assert [content for _, content, _ in texts(path, 1)] == ["first", "half", "more"]


def test_any_text_can_be_kept(path):
    with Recorder(path) as recorder:
        for text in NASTY:
            recorder.describe(system=text, title=text)
            recorder.ask(text)
            recorder.answering(text)
            recorder.add(pieces(text))
            recorder.answered("stop")
        assert recorder.flush()
    kept = [content for _, content, _ in texts(path)][::2]
    assert kept == [text.replace("\ud83d", "\ufffd") for text in NASTY]


def test_nothing_is_kept_when_it_is_off(path):
    with Recorder(path, on=False) as recorder:
        recorder.ask("a")
        recorder.answering()
        recorder.add(pieces("b"))
        recorder.answered("stop")
        assert recorder.flush()
        assert len(recorder.conversation.turns) == 2
    assert not path.parent.exists()


def test_a_place_that_cannot_be_written_is_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    told = []
    with Recorder(tmp_path / "file" / "c.db", notify=told.append) as recorder:
        for _ in range(3):
            recorder.ask("a")
            assert not recorder.flush()
    (line,) = told
    assert "not kept" in line
    assert "\n" not in line


def test_a_full_disk_is_one_warning_and_made_up_for_when_there_is_room(path):
    """The file system says "full" through SQLite's own limit on the size of the file."""
    told, limited = [], []

    class Small(History):
        def _connect(self, *, writable):
            db = super()._connect(writable=writable)
            pages = db.execute("PRAGMA page_count").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {pages + 2}")
            limited.append(db)
            return db

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgespec.history.recorder.History", Small)
        with Recorder(path, notify=told.append) as recorder:
            recorder.ask("a" * 20_000)
            assert not recorder.flush()
            recorder.ask("b" * 20_000)
            assert not recorder.flush()
            limited[-1].execute("PRAGMA max_page_count = 100000")
            recorder.ask("c")
            assert recorder.flush()
    (line,) = told
    assert "full" in line
    assert [content[0] for _, content, _ in texts(path)] == ["a", "b", "c"]


def test_a_file_damaged_or_removed_while_chatting_is_begun_anew_with_the_whole_chat(path):
    told = []
    with Recorder(path, notify=told.append) as recorder:
        recorder.ask("first")
        recorder.flush()
        for file in path.parent.iterdir():
            file.unlink()
        recorder.ask("second")
        assert recorder.flush()
        assert [content for _, content, _ in texts(path)] == ["first", "second"]
    assert told == []


def test_a_lock_of_another_process_delays_nothing_but_the_writing(path):
    with Recorder(path) as recorder:
        recorder.ask("first")
        recorder.flush()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            began = time.perf_counter()
            recorder.ask("second")
            recorder.answering()
            for _ in range(1000):
                recorder.add(pieces("x"))
            assert time.perf_counter() - began < 0.2
            assert not recorder.flush(0.1)
            other.execute("COMMIT")
        assert recorder.flush(8)
    assert [content for _, content, _ in texts(path)] == ["first", "second", "x" * 1000]


_TALK = """
import sys, time
from pathlib import Path
from edgespec.history import Recorder
from edgespec.types import Piece
recorder = Recorder(Path(sys.argv[1]))
recorder.ask("Count.")
recorder.flush()
recorder.answering("m")
for i in range(100000):
    recorder.add([Piece(i, f"{i} {time.time()}\\n", "target", i)])
    print(i, flush=True)
    time.sleep(0.005)
"""


def test_a_killed_process_loses_at_most_a_second(path):
    talk = subprocess.Popen([sys.executable, "-c", _TALK, str(path)], stdout=subprocess.PIPE)
    assert talk.stdout is not None
    began = None
    while began is None or time.time() - began < 2.0:
        assert talk.stdout.readline()
        began = began or time.time()
    os.kill(talk.pid, signal.SIGKILL)
    said = len(talk.stdout.read().split()) and time.time()
    talk.wait()
    talk.stdout.close()
    (_, question, _), (_, answer, state) = texts(path)
    assert question == "Count."
    assert state == "partial"
    lines = answer.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(len(lines)))
    assert said - float(lines[-1].split()[1]) < 1.0
    with History(path) as history:
        assert history.search("count")[0].turns == 2
        assert history.search(lines[-1].split()[0])[0].id == 1
        kept = history.load(1)
    with Recorder(path, kept) as recorder:
        recorder.ask("Go on.")
    assert [state for _, _, state in texts(path)] == ["complete", "stopped", "complete"]


def test_an_answer_given_again_takes_the_place_of_the_last(path):
    with Recorder(path) as recorder:
        recorder.ask("a")
        for _ in range(2):
            recorder.answering(again=True)
            recorder.add(pieces("old"))
            recorder.answered("stop")
        recorder.answering(again=True)
        recorder.flush()
        assert texts(path)[1:] == [("assistant", "old", "complete")]
        recorder.answered("cancelled")
        recorder.flush()
        assert texts(path)[1:] == [("assistant", "old", "complete")]
        recorder.answering(again=True)
        recorder.add(pieces("ne"))
        recorder.flush()
        assert texts(path)[1:] == [("assistant", "ne", "partial")]
        recorder.add(pieces("w"))
        recorder.answered("stop")
    assert texts(path) == [("user", "a", "complete"), ("assistant", "new", "complete")]
