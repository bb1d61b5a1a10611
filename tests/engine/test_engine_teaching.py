"""What proposers are told of computed rows: the best ids of each, within a share of the time."""

import numpy as np
import pytest
from engine_kit import CURVES, GREEDY, N_VOCAB, PROMPT, answer, looping, proposer, session, timed

from edgespec.backends.scripted import SimulatedClock
from edgespec.engine.teaching import Teaching
from edgespec.proposers.recycling import RecyclingProposer
from edgespec.types import Verdict, chain


class Pupil(RecyclingProposer):
    """Notes what it is told."""

    def __init__(self, clock=None, takes=0.0):
        super().__init__()
        self.told, self._clock, self._takes = [], clock, takes

    def learn(self, token, best):
        self.told.append((token, best.tolist()))
        if self._clock is not None:
            self._clock.advance(self._takes)
        super().learn(token, best)


DRAFT = chain((4, 5, 6), "suffix", [(1.0, 1.0, 1.0)] * 3)
ROWS = np.eye(4, 9, dtype=np.float32)
ROWS[:, 8] = 0.5


def test_every_row_is_told_with_the_token_before_it_the_accepted_path_first():
    pupil = Pupil()
    Teaching(SimulatedClock()).teach([pupil], 3, DRAFT, 3, ROWS, Verdict((0, 1), 7), 1.0)
    assert [(token, best[:2]) for token, best in pupil.told] == [
        (3, [0, 8]), (4, [1, 8]), (5, [2, 8]), (6, [3, 8])
    ]  # fmt: skip
    assert all(len(best) == pupil.n_best for _, best in pupil.told)


def test_branches_that_were_not_taken_are_told_last():
    pupil = Pupil()
    Teaching(SimulatedClock()).teach([pupil], 3, DRAFT, 3, ROWS, Verdict((), 7), 1.0)
    assert [token for token, _ in pupil.told] == [3, 4, 5, 6]


def test_guesses_of_a_window_teach_nothing_unless_they_come_true():
    for path, told in (((), [3, 4]), ((0, 1), [3, 4, 5])):
        pupil = Pupil()
        Teaching(SimulatedClock()).teach([pupil], 3, DRAFT, 1, ROWS, Verdict(path, 7), 1.0)
        assert [token for token, _ in pupil.told] == told


@pytest.mark.parametrize("takes", [0.001, 0.01, 0.1])
def test_it_takes_a_small_share_of_the_time_that_passes_take(takes):
    clock = SimulatedClock()
    pupil, teaching = Pupil(clock, takes), Teaching(clock)
    for _ in range(1000):
        teaching.teach([pupil], 3, DRAFT, 3, ROWS, Verdict((), 7), 1.0)
    assert clock() <= 0.005 * 1000 + takes
    assert clock() >= 0.004 * 1000 or len(pupil.told) == 4000


def test_proposers_that_do_not_learn_cost_nothing():
    clock = SimulatedClock()
    Teaching(clock).teach([proposer("suffix", looping())], 3, DRAFT, 3, ROWS, Verdict((), 7), 1.0)
    assert clock() == 0.0


def test_a_session_teaches_what_the_target_says():
    logits, pupil = looping(), Pupil()
    target, clock = timed(logits, CURVES["flat"])
    got = answer(session(target, pupil, 3, clock=clock), PROMPT, 40, GREEDY)
    text = [*PROMPT, *got.ids]
    for i in range(len(PROMPT), len(text) - 1):
        best = logits(text[: i + 1]).argsort()[::-1][: pupil.n_best].tolist()
        assert (text[i], best) in pupil.told
    assert all(0 <= token < N_VOCAB for token, _ in pupil.told)
