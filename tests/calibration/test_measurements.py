import json
import math
import threading

import pytest
from engine_kit import N_VOCAB, looping

from edgespec.backends.rows import exact_rows
from edgespec.backends.scripted import Faults, ScriptedBackend, SimulatedClock
from edgespec.calibration import (
    SECONDS,
    Measurements,
    choose_numerics,
    draft_seconds,
    fingerprint,
    measured,
)
from edgespec.calibration.cost import Stopwatch, fill
from edgespec.calibration.numerics import COUNTS, TIMED

SETTINGS = {"threads": 4, "flash": True, "library": "1.0"}


def test_what_was_put_is_there_next_time(tmp_path):
    Measurements("m", SETTINGS, tmp_path).put("exact_rows", [1, 2])
    assert Measurements("m", SETTINGS, tmp_path).get("exact_rows") == [1, 2]
    assert Measurements("m", dict(reversed(SETTINGS.items())), tmp_path).get("exact_rows") == [1, 2]


@pytest.mark.parametrize("other", [("n", SETTINGS), ("m", SETTINGS | {"threads": 8})])
def test_another_model_or_setting_knows_nothing_of_it(tmp_path, other):
    Measurements("m", SETTINGS, tmp_path).put("x", 1)
    assert Measurements(*other, tmp_path).get("x") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b"null", b'"text"', b'{"key": 1}', b'{"key": {}, "values": {"x": 9}}'],
)
def test_a_damaged_or_foreign_file_reads_as_empty_and_is_replaced(tmp_path, content):
    m = Measurements("m", SETTINGS, tmp_path)
    m.path.write_bytes(content)
    again = Measurements("m", SETTINGS, tmp_path)
    assert again.get("x") is None
    again.put("x", 2)
    assert Measurements("m", SETTINGS, tmp_path).get("x") == 2


@pytest.mark.parametrize("values", [[], "x", None, 3])
def test_values_of_the_wrong_kind_read_as_empty(tmp_path, values):
    m = Measurements("m", SETTINGS, tmp_path)
    m.path.write_text(json.dumps({"key": m.key, "values": values}))
    assert Measurements("m", SETTINGS, tmp_path).get("x") is None


def test_a_place_that_cannot_be_written_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    m = Measurements("m", SETTINGS, blocked)
    m.put("x", 1)
    assert m.get("x") == 1
    assert blocked.read_text() == "not a directory"


def test_a_directory_in_place_of_the_file_is_no_error(tmp_path):
    m = Measurements("m", SETTINGS, tmp_path)
    m.path.mkdir()
    again = Measurements("m", SETTINGS, tmp_path)
    again.put("x", 1)
    assert again.get("x") == 1
    assert list(tmp_path.glob("*.tmp")) == []


def test_two_writers_keep_what_the_other_measured(tmp_path):
    one, two = Measurements("m", SETTINGS, tmp_path), Measurements("m", SETTINGS, tmp_path)
    one.put("a", 1)
    two.put("b", 2)
    last = Measurements("m", SETTINGS, tmp_path)
    assert (last.get("a"), last.get("b")) == (1, 2)


def test_many_writers_at_once_leave_one_whole_file(tmp_path):
    def write(n):
        for i in range(20):
            Measurements("m", SETTINGS, tmp_path).put("x", [n, i] * 50)

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    value = Measurements("m", SETTINGS, tmp_path).get("x")
    assert value[1] == 19
    assert len(list(tmp_path.iterdir())) == 1, "no temporary files are left"


def test_a_fingerprint_tells_files_apart(tmp_path):
    size = 3 << 20
    a, b, c = (tmp_path / name for name in "abc")
    a.write_bytes(bytes(size))
    b.write_bytes(b"\1" + bytes(size - 1))
    c.write_bytes(bytes(size - 1) + b"\1")
    (tmp_path / "copy").write_bytes(bytes(size))
    assert len({fingerprint(p) for p in (a, b, c)}) == 3
    assert fingerprint(tmp_path / "copy") == fingerprint(a)


class Uneven(ScriptedBackend):
    """Rows of passes with more than `exact` rows come out a little different."""

    def __init__(self, exact, **faults):
        super().__init__(looping(), N_VOCAB, faults=Faults(**faults))
        self.exact = exact

    def forward(self, tokens, parents=None, *, rows="all"):
        out = super().forward(tokens, parents, rows=rows)
        return out + 1e-3 if rows == "all" and len(tokens) > self.exact else out


TEXT = [i % N_VOCAB for i in range(80)]


def test_exact_counts_are_measured_once_and_stored(tmp_path):
    notices, backend = [], Uneven(3)
    got = measured(backend, TEXT, Measurements("m", SETTINGS, tmp_path), notices.append)
    assert got.exact == (1, 2, 3)
    assert len(notices) == 1
    assert backend.length == 0
    calls = backend.calls
    again = measured(backend, TEXT, Measurements("m", SETTINGS, tmp_path), notices.append)
    assert again == got
    assert backend.calls == calls
    assert len(notices) == 1


@pytest.mark.parametrize("known", ["all", [2, 3], [1, "2"], [1, math.inf], {"1": 2}, None])
def test_a_stored_value_that_makes_no_sense_is_measured_again(tmp_path, known):
    stored = Measurements("m", SETTINGS, tmp_path)
    stored.put("exact_rows", known)
    assert measured(Uneven(2), TEXT, stored, lambda _: None).exact == (1, 2)


@pytest.mark.parametrize(
    "seconds",
    [
        "x",
        [],
        None,
        {},
        {"2": 1.0},
        {"1": 0.0},
        {"1": 1.0, "2": -1.0},
        {"1": 1.0, "4": math.inf},
        {"one": 1.0},
    ],
)
def test_stored_times_that_make_no_sense_are_measured_again(tmp_path, seconds):
    stored = Measurements("m", SETTINGS, tmp_path)
    stored.put("exact_rows", [1, 2])
    stored.put(SECONDS, seconds)
    got = measured(Uneven(2), TEXT, stored, lambda _: None)
    assert min(got.seconds.values()) > 0
    assert {1, 2, 32} <= set(got.seconds)
    assert measured(Uneven(2), TEXT, stored, lambda _: None) == got


def test_the_time_of_a_pass_is_measured_on_the_way_by_row_count(tmp_path):
    clock = SimulatedClock()
    backend = ScriptedBackend(looping(), N_VOCAB, clock=clock, seconds=lambda n: 0.01 * n + 0.02)
    watch = Stopwatch(backend, clock)
    exact_rows(watch, TEXT, COUNTS)
    seconds = fill(watch, TEXT, TIMED)
    assert {1, *TIMED} <= set(seconds)
    assert seconds == pytest.approx({n: 0.01 * n + 0.02 for n in seconds})
    assert backend.length == 0


def test_of_several_passes_of_a_row_count_the_fastest_is_noted():
    clock, slow = SimulatedClock(), iter([3.0, 1.0, 2.0])
    watch = Stopwatch(ScriptedBackend(looping(), N_VOCAB, clock=clock, seconds=lambda n: next(slow)), clock)
    for _ in range(3):
        watch.forward([1, 2])
        watch.commit([])
    assert watch.seconds == {2: 1.0}


def test_times_never_ask_for_more_rows_or_context_than_there_is(tmp_path):
    small = ScriptedBackend(looping(), N_VOCAB, n_ctx=90, faults=Faults(max_rows=12))
    seconds = fill(Stopwatch(small), TEXT, TIMED)
    assert max(seconds) <= 12
    assert small.length == 0


def test_a_draft_models_token_is_timed_and_leaves_nothing_behind():
    clock = SimulatedClock()
    backend = ScriptedBackend(looping(), N_VOCAB, clock=clock, seconds=lambda n: 0.25 * n)
    assert draft_seconds(backend, TEXT, clock) == pytest.approx(0.25)
    assert backend.length == 0


def test_counts_beyond_the_backends_rows_are_not_tried(tmp_path):
    stored = Measurements("m", SETTINGS, tmp_path)
    assert measured(Uneven(99, max_rows=5), TEXT, stored, lambda _: None).exact == (1, 2, 3, 4, 5)


def test_a_fully_exact_backend_has_all_counts(tmp_path):
    got = measured(Uneven(99), TEXT, Measurements("m", SETTINGS, tmp_path), lambda _: None)
    assert got.exact == (1, *COUNTS)


@pytest.mark.parametrize(
    ("asked", "exact", "mode"),
    [
        ("auto", (1, 2, 3, 4), "exact"),
        ("auto", (1, 2, 3), "near"),
        ("auto", (1,), "near"),
        ("exact", (1, 2), "exact"),
        ("near", (1, 2, 3, 4), "near"),
    ],
)
def test_the_mode_follows_what_was_asked_and_measured(asked, exact, mode):
    rows = choose_numerics(asked, exact)
    assert rows.mode == mode
    assert rows.allowed == (exact if mode == "exact" else None)
    assert rows.reason
