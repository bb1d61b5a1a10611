"""Exact row counts and the seconds of passes: measured a step at a time, kept, and gone on with."""

import math

import pytest
from engine_kit import N_VOCAB, looping

from edgespec.backends.rows import exact_rows
from edgespec.backends.scripted import Faults, ScriptedBackend, SimulatedClock
from edgespec.calibration import SECONDS, Measured, Measurements, Survey, draft_passes, draft_seconds
from edgespec.calibration.cost import Stopwatch
from edgespec.calibration.survey import COUNTS
from edgespec.errors import Cancelled

TEXT = [i % N_VOCAB for i in range(80)]


def a_pass(n):
    return 0.01 * n + 0.02


class Uneven(ScriptedBackend):
    """Rows of passes with more than `exact` rows come out a little different. It takes simulated time."""

    def __init__(self, exact, seconds=a_pass, n_ctx=4096, **faults):
        self.clock = SimulatedClock()
        super().__init__(
            looping(), N_VOCAB, n_ctx=n_ctx, faults=Faults(**faults), clock=self.clock, seconds=seconds
        )
        self.exact = exact

    def forward(self, tokens, parents=None, *, rows="all"):
        out = super().forward(tokens, parents, rows=rows)
        return out + 1e-3 if rows == "all" and len(tokens) > self.exact else out


class Ragged(Uneven):
    """Rows of trees with more than `whole` rows come out a little different."""

    def __init__(self, exact, whole, **how):
        super().__init__(exact, **how)
        self.whole = whole

    def forward(self, tokens, parents=None, *, rows="all"):
        out = super().forward(tokens, parents, rows=rows)
        return out + 1e-3 if parents is not None and len(tokens) > self.whole else out


@pytest.fixture
def stored(tmp_path):
    return Measurements("m", {}, tmp_path)


def survey(backend, stored):
    return Survey(backend, TEXT, stored, backend.clock)


def surveyed(backend, stored):
    s = survey(backend, stored)
    s.advance()
    assert s.complete
    return s.known


def test_nothing_is_known_at_first_and_nothing_is_measured_unasked(stored):
    backend = Uneven(3)
    s = survey(backend, stored)
    assert not s.complete
    assert s.known == Measured((1,), None, ())
    assert backend.calls == 0


def test_what_was_measured_is_kept_for_the_next_start(stored, tmp_path):
    backend = Uneven(3)
    got = surveyed(backend, stored)
    assert got.exact == (1, 2, 3)
    assert backend.length == 0
    calls = backend.calls
    again = survey(backend, Measurements("m", {}, tmp_path))
    again.advance()
    assert again.complete
    assert again.known == got
    assert backend.calls == calls


def test_two_inexact_counts_end_the_search_and_all_counts_are_timed(stored):
    got = surveyed(Uneven(5), stored)
    assert got.tried == (2, 3, 4, 5, 6, 7)
    assert got.exact == (1, 2, 3, 4, 5)
    assert got.seconds == pytest.approx({n: a_pass(n) for n in (1, *COUNTS)})


@pytest.mark.parametrize(
    ("exact", "whole", "tried", "found"),
    [
        (99, 99, (3, 8, 32), (3, 8, 32)),
        (6, 99, (3, 5, 6), (3, 5, 6)),
        (3, 99, (3,), (3,)),
        (99, 20, (3, 8, 32), (3, 8)),
        (99, 2, (3,), ()),
        (2, 99, (), ()),
    ],
)
def test_trees_are_compared_at_a_few_of_the_exact_counts(exact, whole, tried, found, stored):
    got = surveyed(Ragged(exact, whole), stored)
    assert (got.tried_trees, got.exact_trees) == (tried, found)
    assert got.trees == (tried == found != ())
    assert got.seconds == pytest.approx({n: a_pass(n) for n in (1, *COUNTS)})


def test_where_branches_are_not_possible_none_are_tried(stored):
    got = surveyed(Uneven(99, tree=False), stored)
    assert (got.tried_trees, got.trees) == ((), False)


def test_trees_that_were_not_compared_yet_are_not_exact(stored):
    backend = Ragged(99, 99)
    while not (s := survey(backend, stored)).complete:
        assert not s.known.trees
        s.advance(4.0)
    assert s.known.trees


@pytest.mark.parametrize("length", [0, 7, 60])
def test_it_measures_behind_what_the_cache_holds_and_leaves_it_alone(stored, length):
    backend = Uneven(99)
    if length:
        backend.forward(TEXT[:length], rows="none")
        backend.commit(range(length))
    before = backend.tokens
    assert surveyed(backend, stored).exact == (1, *COUNTS)
    assert backend.tokens == before


@pytest.mark.parametrize("seconds", [0.5, 1.0, 3.0])
def test_in_slices_it_learns_the_same_and_each_slice_ends_in_time(tmp_path, seconds):
    whole = surveyed(Uneven(6), Measurements("m", {}, tmp_path / "whole"))
    backend, slices = Uneven(6), 0
    while not (s := survey(backend, Measurements("m", {}, tmp_path / "slices"))).complete:
        began, known = backend.clock.now, s.known
        s.advance(seconds)
        # Before the first pass nobody knows how long one takes; the cache is made long first.
        assert backend.clock.now - began <= seconds + a_pass(len(TEXT)) or known.seconds is None
        if s.known == known:
            break
        slices += 1
        assert set(s.known.exact) <= set(whole.exact)
    assert slices > 1
    backend.clock.advance(1.0)
    survey(backend, Measurements("m", {}, tmp_path / "slices")).advance()
    last = survey(backend, Measurements("m", {}, tmp_path / "slices")).known
    assert (last.exact, last.tried) == (whole.exact, whole.tried)
    assert last.seconds == pytest.approx(whole.seconds)


def test_a_machine_that_is_busier_in_the_second_slice_does_not_bend_the_curve(stored):
    backend = Uneven(99)
    survey(backend, stored).advance(1.0)
    some = dict(survey(backend, stored).known.seconds)
    assert set(some) < {1, *COUNTS}
    backend._seconds = lambda n: 3.0 * a_pass(n)
    got = surveyed(backend, stored).seconds
    assert got == pytest.approx({n: a_pass(n) for n in (1, *COUNTS)})


def test_an_abort_ends_it_and_what_was_found_until_then_stays(stored):
    backend = Uneven(99)
    backend.forward(TEXT[:9], rows="none")
    backend.commit(range(9))
    shares = []

    def progress(share):
        shares.append(share)
        backend.abort(len(shares) == 3)

    with pytest.raises(Cancelled):
        survey(backend, stored).advance(progress=progress)
    assert survey(backend, stored).known.exact == (1, 2, 3, 4)
    assert backend.tokens == tuple(TEXT[:9])
    backend.abort(False)
    survey(backend, stored).advance(progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("known", ["all", [2, 3], [1, "2"], [1, math.inf], [1, 2, 9], {"1": 2}, None])
def test_stored_counts_that_make_no_sense_are_measured_again(stored, known):
    surveyed(Uneven(2), stored)
    stored.put("exact_rows", known)
    assert surveyed(Uneven(2), stored).exact == (1, 2)


@pytest.mark.parametrize(
    "seconds",
    ["x", [], None, {}, {"2": 1.0}, {"1": 0.0}, {"1": 1.0, "2": -1.0}, {"1": 1.0, "4": math.inf}, {"one": 1}],
)
def test_stored_times_that_make_no_sense_are_measured_again(stored, seconds):
    surveyed(Uneven(2), stored)
    stored.put(SECONDS, seconds)
    assert surveyed(Uneven(2), stored).seconds == pytest.approx({n: a_pass(n) for n in (1, *COUNTS)})


def test_of_several_passes_of_a_row_count_the_fastest_is_noted():
    clock, slow = SimulatedClock(), iter([3.0, 1.0, 2.0])
    watch = Stopwatch(ScriptedBackend(looping(), N_VOCAB, clock=clock, seconds=lambda n: next(slow)), clock)
    for _ in range(3):
        watch.forward([1, 2])
        watch.commit([])
    assert watch.seconds == {2: 1.0}


@pytest.mark.parametrize(("n_ctx", "max_rows"), [(90, 12), (20, 65), (3, 65), (2, 65)])
def test_it_never_asks_for_more_rows_or_context_than_there_is(stored, n_ctx, max_rows):
    backend = Uneven(99, n_ctx=n_ctx, max_rows=max_rows)
    got = surveyed(backend, stored)
    assert max(got.seconds) <= min(max_rows, n_ctx)
    assert backend.length == 0


def test_behind_a_context_that_is_nearly_full_it_measures_what_fits(stored):
    backend = Uneven(99, n_ctx=64)
    backend.forward(TEXT[:56], rows="none")
    backend.commit(range(56))
    s = survey(backend, stored)
    s.advance()
    assert not s.complete
    assert backend.length == 56
    backend.truncate(0)
    s.advance()
    assert s.complete


def test_counts_beyond_the_backends_rows_are_not_tried(stored):
    assert surveyed(Uneven(99, max_rows=5), stored).exact == (1, 2, 3, 4, 5)


def test_a_place_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    s = survey(Uneven(3), Measurements("m", {}, tmp_path / "file"))
    s.advance()
    assert s.complete
    assert not s.can_be_kept


def test_exact_rows_at_once_are_those_of_the_survey(stored):
    assert set(surveyed(Uneven(4), stored).exact) == exact_rows(Uneven(4), TEXT, COUNTS)


def test_a_draft_models_token_is_timed_and_leaves_nothing_behind():
    clock = SimulatedClock()
    backend = ScriptedBackend(looping(), N_VOCAB, clock=clock, seconds=lambda n: 0.25 * n)
    assert draft_seconds(backend, TEXT, clock) == pytest.approx(0.25)
    assert backend.length == 0


@pytest.mark.parametrize(
    ("faults", "counts"), [(Faults(), [1, 2, 4, 8]), (Faults(max_rows=4), [1, 2, 4]), (Faults(window=0), [1])]
)
def test_passes_of_a_draft_model_are_timed_where_their_rows_can_be_dropped(faults, counts):
    def seconds(n):
        return 0.2 + 0.02 * (n - 1)

    clock = SimulatedClock()
    backend = ScriptedBackend(looping(), N_VOCAB, clock=clock, seconds=seconds, faults=faults)
    assert draft_passes(backend, TEXT, 0.2, clock) == pytest.approx({n: seconds(n) for n in counts})
    assert backend.length == 0


def test_renewed_it_is_measured_from_the_start_and_slow_moments_do_not_count(stored):
    surveyed(Uneven(2), stored)
    backend, slow = Uneven(4), iter(range(10**6))
    backend._seconds = lambda n: a_pass(n) * (30 if next(slow) % 7 == 0 else 1)
    backend.forward(TEXT[:9], rows="none")
    backend.commit(range(9))
    s, shares = survey(backend, stored), []
    s.renew(math.inf, shares.append)
    assert s.complete
    assert s.known.exact == (1, 2, 3, 4)
    assert s.known.seconds == pytest.approx({n: a_pass(n) for n in (1, *COUNTS)})
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert backend.length == 9


@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_renewing_ends_in_time(stored, seconds):
    backend = Uneven(4)
    survey(backend, stored).advance()
    least = backend.clock.now
    turn = sum(a_pass(n) for n in (1, *COUNTS))
    survey(backend, stored).renew(seconds)
    assert backend.clock.now - least <= least + max(turn, seconds) + 1e-9


def test_a_pass_that_took_far_longer_than_one_of_more_rows_was_slowed_down(stored):
    def odd(n):
        return {1: 0.03, 7: 0.9, 12: 0.2, 16: 0.15}.get(n, a_pass(n))

    got = surveyed(Uneven(99, seconds=odd), stored).seconds
    assert got[7] == pytest.approx(a_pass(8))
    assert got[12] == pytest.approx(0.2), "a kernel for 16 rows may be a little faster than one for 12"
