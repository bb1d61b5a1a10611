"""Which window of guesses pays, if any."""

import numpy as np
import pytest
from engine_kit import CURVES, GREEDY, PROMPT, VOCABULARY, controller, looping, plain, timed

from edgespec.control import Calibration
from edgespec.control.cost import MOST_ROWS
from edgespec.control.survival import BEYOND
from edgespec.control.windows import Windows, usual_window
from edgespec.engine import Request, Session
from edgespec.proposers.lookahead import LookaheadProposer
from edgespec.text.stream import TokenStream
from edgespec.types import NO_DRAFT, NO_WINDOW, Offer, Window, chain

EVERY = np.ones(MOST_ROWS, bool)


def relative(seconds):
    return np.array([seconds(max(1, n)) for n in range(MOST_ROWS + 1)])


def windows(*sources, calibration=None):
    return Windows(sources, calibration or Calibration())


def offer(source, right):
    return Offer(chain((1,), source, [(0.0,)]), ((0, right),))


def test_no_window_where_rows_cost_more_than_guesses_bring():
    for curve in ("linear", "steep"):
        for source in ("lookahead", "jacobi"):
            made = windows("suffix", source)
            assert not made.can_pay(source, relative(CURVES[curve]), EVERY, True)
            assert made.size == NO_WINDOW


def test_where_rows_are_nearly_free_the_widest_is_taken_and_where_they_are_not_a_smaller_one():
    sizes = []
    for each in (0.0, 0.006, 0.012):
        made = windows("lookahead")
        assert made.can_pay("lookahead", relative(lambda n, each=each: 1.0 + each * (n - 1)), EVERY, True)
        assert made.size.levels > 2
        sizes.append(made.size.rows)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_without_branches_lookahead_is_jacobi():
    made = windows("lookahead")
    assert made.can_pay("lookahead", relative(lambda n: 1.0), EVERY, False)
    assert made.size.levels == 2


def test_a_window_fits_the_row_counts():
    allowed = np.zeros(MOST_ROWS, bool)
    allowed[[0, 1, 2, 8]] = True
    made = windows("lookahead")
    assert made.can_pay("lookahead", relative(lambda n: 1.0), allowed, True)
    assert made.size.rows <= 8
    assert not windows("lookahead").can_pay("lookahead", relative(lambda n: 1.0), EVERY & False, True)


def test_it_is_given_up_when_its_guesses_bring_nothing_that_others_had_not():
    known = Calibration()
    for right in (False, True):
        made = windows("suffix", "lookahead", calibration=known)
        assert made.can_pay("lookahead", relative(lambda n: 1.0), EVERY, True)
        before = made.gain
        for _ in range(100):
            made.learn([offer("suffix", True), offer("lookahead", right)])
        assert made.gain < 0.5 * before
    assert known.as_json()[0][0].endswith("lookahead" + BEYOND)


def test_beside_others_less_is_expected_of_it():
    made = windows("suffix", "lookahead"), windows("lookahead")
    for each in made:
        assert each.can_pay("lookahead", relative(lambda n: 1.0), EVERY, True)
    assert made[0].gain < made[1].gain


def test_it_grows_when_they_alone_were_right():
    made = windows("suffix", "lookahead")
    made.can_pay("lookahead", relative(lambda n: 1.0), EVERY, True)
    before = made.gain
    for _ in range(20):
        made.learn([offer("suffix", False), offer("lookahead", True)])
    assert made.gain > 2 * before


def test_the_usual_window_leaves_half_of_the_rows_to_n_grams():
    assert usual_window(("lookahead",), 24, True) == Window(4, 4)
    assert usual_window(("lookahead",), 6, False) == usual_window(("jacobi",), 6, True) == Window(6)
    assert usual_window(("suffix",), 24, True) == NO_WINDOW


def test_the_controller_asks_for_a_window_only_while_its_ledger_can_bear_it():
    policy = controller(("lookahead",), lambda n: 1.0 + 0.004 * (n - 1), trees=True)
    policy.begin()
    policy.plan(64, True)
    assert policy.window(NO_DRAFT).columns
    policy.plan(1, True)
    assert policy.window(NO_DRAFT).columns, "cut to the row that is left"
    policy.plan(0, True)
    assert policy.window(NO_DRAFT) == NO_WINDOW


@pytest.mark.parametrize(("source", "least"), [("lookahead", 1.5), ("jacobi", 0.99)])
def test_refining_gains_where_n_grams_come_true_and_loses_next_to_nothing_else(source, least):
    seconds = lambda n: 1.0 + 0.002 * (n - 1)  # noqa: E731
    logits = looping(salt=2)
    target, clock = timed(logits, seconds)
    policy = controller((source,), seconds, trees=True)
    session = Session(target, lambda _: False, policy, {source: LookaheadProposer(source)}, clock=clock)
    for _ in range(3):
        request, stream = Request(GREEDY, max_tokens=300), TokenStream(VOCABULARY)
        events = session.generate(PROMPT, request, stream)
        first = next(events)
        began = clock.now
        ids = [piece.token for event in [first, *events] for piece in event.pieces]
        assert ids == plain(logits, n=300).ids
    assert 299 / (clock.now - began) >= least
