"""Fixtures that every folder of tests may use."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from edgespec import hub

# A busy machine makes any example slow.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The small default model, fetched once into the user's store. Mark its tests `model`."""
    return hub.resolve(None)


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory) -> Iterator[None]:
    """Neither the settings nor the history of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("EDGESPEC_CONFIG", "EDGESPEC_DATA"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """A shell that runs the tests in the background has them ignore Ctrl-C, and programs inherit that."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


EXPECTED_SKIPS = (
    "no recorded traces",
    "these traces do not have the rows",
    "mounting needs root",
    "no mounts here",
    "no separate ggml library",
    "signals",
)


class UnexpectedSkips:
    """In continuous integration a skip with a reason that nobody expected is a failure."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reason = str(report.longrepr)
        if report.skipped and not any(expected in reason for expected in EXPECTED_SKIPS):
            self.found.append(f"{report.nodeid}: {reason}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.found and os.environ.get("CI"):
            print("\nunexpected skips:", *self.found, sep="\n")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(UnexpectedSkips())
