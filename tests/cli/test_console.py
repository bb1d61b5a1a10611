"""The line of progress fits the terminal, whatever it has to say."""

from __future__ import annotations

import io

import pytest

from edgespec.cli import console
from edgespec.cli.console import Console

LONG = "downloading Qwen2.5-Coder-7B-Instruct:Q4_K_M, 1.23 GB of 4.68 GB, 12.3 MB/s, 5 min left"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(monkeypatch):
    """What is drawn of a label on a terminal of so many columns."""
    monkeypatch.setattr(console, "DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")

    def draw(label: str, share: float, columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        screen = Screen()
        shows = Console(screen)
        shows.step(label, share)
        shows.draw()
        return screen.getvalue()

    return draw


def test_a_short_label_has_a_whole_bar(shown):
    assert shown("loading", 0.5, 80) == "loading [##########          ] 50%"


def test_a_long_label_shortens_the_bar_and_keeps_the_rate(shown):
    assert shown(LONG, 0.26, 100) == f"{LONG} [#    ] 26%"


@pytest.mark.parametrize("columns", [10, 20, 40, 80, 120])
@pytest.mark.parametrize("share", [-0.1, 0.0, 0.999, 1.0, 7.0])
def test_it_never_breaks_the_line(shown, columns, share):
    assert len(shown(LONG, share, columns)) < columns


def test_what_takes_long_is_shown_though_its_label_changes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    screen = Screen()
    shows = Console(screen)
    for done in range(5):
        shows.step(f"downloading, {done} MB", done / 10)
        shows.draw()
        now[0] += 0.1
    assert "downloading, 4 MB" in screen.getvalue()
    assert "downloading, 0 MB" not in screen.getvalue()
