"""The label of a download: amount, rate over the last seconds, time left."""

from __future__ import annotations

import pytest

from edgespec.hub.meter import Meter, duration
from edgespec.hub.store import amount


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def seen():
    return []


@pytest.fixture
def meter(clock, seen):
    return Meter(lambda *at: seen.append(at), "tiny", 100_000_000, clock)


def test_rate_and_time_left(meter, clock, seen):
    meter.moved(0)
    assert seen[-1] == (0, 100_000_000, "downloading tiny, 0 kB of 100 MB")
    for second in range(1, 4):
        clock.now += 1
        meter.moved(second * 2_000_000)
    assert seen[-1] == (6_000_000, 100_000_000, "downloading tiny, 6 MB of 100 MB, 2.0 MB/s, 47 s left")


def test_what_was_here_before_does_not_count_as_speed(meter, clock, seen):
    meter.moved(60_000_000)
    clock.now += 1
    meter.moved(61_000_000)
    assert "1.0 MB/s, 39 s left" in seen[-1][2]


def test_the_rate_follows_the_last_seconds(meter, clock, seen):
    for _ in range(40):
        clock.now += 0.5
        meter.moved(seen[-1][0] + 100_000 if seen else 0)
    assert "0.2 MB/s" in seen[-1][2]
    for _ in range(12):
        clock.now += 0.5
        meter.moved(seen[-1][0] + 1_000_000)
    assert "2.0 MB/s" in seen[-1][2]


def test_files_that_are_done_count(meter, clock, seen):
    meter.base = 40_000_000
    meter.moved(10_000_000)
    assert seen[-1][:2] == (50_000_000, 100_000_000)
    meter.other("checking", 20_000_000)
    assert seen[-1] == (60_000_000, 100_000_000, "checking tiny")


def test_a_new_start_is_no_negative_speed(meter, clock, seen):
    meter.moved(50_000_000)
    clock.now += 1
    meter.moved(1_000_000)
    assert seen[-1][2] == "downloading tiny, 1 MB of 100 MB"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "0 s"),
        (99, "99 s"),
        (100, "2 min"),
        (3600, "60 min"),
        (7200, "2 h 0 min"),
        (90_000, "25 h 0 min"),
    ],
)
def test_durations(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("n", "said"), [(0, "0 kB"), (134, "0 kB"), (98_362_432, "98 MB"), (4_683_074_240, "4.68 GB")]
)
def test_amounts(n, said):
    assert amount(n) == said
