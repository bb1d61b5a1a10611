"""Interrupted downloads: killed, cut off, damaged, shared; the next run moves only what is missing."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest
from hub_files import card, gguf, kept, start, tensor

from edgespec import hub
from edgespec.errors import DownloadError
from edgespec.hub import store as store_module
from edgespec.hub.catalogue import HuggingFaceSource
from edgespec.hub.pull import ranged

HF = HuggingFaceSource("org/tiny", "tiny.gguf")
SIZE = 25_000_000
LARGE = gguf(tensors=[tensor("output.weight", (SIZE,), 24, 0)], data=SIZE)
FORTY = len(LARGE) * 2 // 5


@pytest.fixture(autouse=True)
def _hurried(monkeypatch):
    monkeypatch.setattr(ranged, "_PAUSES", (0.01, 0.01))


@pytest.fixture
def hub_server(hub_server, shelf):
    hub_server.repos = {"org/tiny": {"tiny.gguf": LARGE}}
    shelf(card(LARGE, HF))
    return hub_server


def part(store: Path) -> Path:
    return next(store.glob(".tiny.gguf.*.part"))


def stopped_at(store: Path, share: float) -> None:
    """A part as a run leaves it that ended there."""
    with pytest.raises(InterruptedError):
        hub.resolve("tiny", progress=_stop_at(share))
    assert 0 < part(store).stat().st_size < len(LARGE)


def _stop_at(share: float):
    def progress(done: int, total: int, label: str) -> None:
        if done >= total * share:
            raise InterruptedError

    return progress


def waited_for(condition, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_killed_at_forty_percent(hub_server, store, tmp_path):
    release = threading.Event()
    hub_server.cut = lambda request: FORTY if request == 1 else None
    hub_server.after_cut = lambda: release.wait(30)
    child = start(tmp_path / "cards")
    waited_for(lambda: list(store.glob(".*.part")) and part(store).stat().st_size > FORTY - 300_000)
    child.kill()
    child.communicate()
    release.set()
    assert kept(store) == [part(store).name]
    hub_server.moved = 0
    lines = []
    assert hub.resolve("tiny", notify=lines.append).read_bytes() == LARGE
    assert kept(store) == ["tiny.gguf"]
    assert hub_server.moved <= 0.61 * len(LARGE)
    assert re.fullmatch(r"going on with tiny:1m at (9|10) MB of 25 MB", lines[0])


def test_a_closed_connection_is_one_line_and_the_next_run_goes_on(hub_server, store):
    hub_server.cut = lambda request: FORTY if request == 1 else 0
    with pytest.raises(DownloadError) as caught:
        hub.resolve("tiny")
    said = str(caught.value)
    assert said.startswith("tiny:1m could not be downloaded (Hugging Face: ")
    assert said.endswith("10 MB are kept, run it again to go on")
    assert said.isprintable()
    hub_server.cut = lambda request: None
    hub_server.moved = 0
    assert hub.resolve("tiny").read_bytes() == LARGE
    assert hub_server.moved == len(LARGE) - FORTY


def test_a_connection_that_breaks_again_and_again_gets_there(hub_server, store):
    hub_server.cut = lambda request: 7_000_000
    assert hub.resolve("tiny").read_bytes() == LARGE
    assert hub_server.moved == len(LARGE)
    assert [request.range for request in hub_server.requests if "/cdn/" in request.path] == [
        None,
        *(f"bytes={n * 7_000_000}-" for n in (1, 2, 3)),
    ]


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_once_bytes_have_come(hub_server, status):
    hub_server.cut = lambda request: FORTY if request == 1 else None
    answers = [(200, {}), (status, {"Retry-After": "1"}), (200, {})]

    def next_answer() -> None:
        if "/resolve/" in hub_server.requests[-1].path:
            hub_server.file = answers.pop(0)

    hub_server.before_answer = next_answer
    assert hub.resolve("tiny").read_bytes() == LARGE
    assert answers == []


def test_a_server_without_ranges_sends_all_again(hub_server, store):
    stopped_at(store, 0.4)
    hub_server.ranges, hub_server.moved = False, 0
    assert hub.resolve("tiny").read_bytes() == LARGE
    assert hub_server.moved == len(LARGE)


@pytest.mark.parametrize("where", ["in what is here", "in what comes"])
def test_a_flipped_byte_is_found_and_the_next_run_starts_afresh(hub_server, store, where):
    stopped_at(store, 0.4)
    if where == "in what is here":
        with part(store).open("r+b") as file:
            file.seek(1000)
            file.write(b"\xff")
    else:
        hub_server.sent["tiny.gguf"] = LARGE[:-1000] + b"\xff" + LARGE[-999:]
    with pytest.raises(DownloadError, match="sha256 is not the model's") as caught:
        hub.resolve("tiny")
    assert "\n" not in str(caught.value)
    assert kept(store) == []
    hub_server.sent.clear()
    assert hub.resolve("tiny").read_bytes() == LARGE


def test_a_whole_part_needs_no_request(hub_server, store, monkeypatch):
    def no_name(self, assets):
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(store_module.Store, "commit", no_name)
        with pytest.raises(InterruptedError):
            hub.resolve("tiny")
    assert kept(store) == [part(store).name]
    hub_server.requests.clear()
    assert hub.resolve("tiny").read_bytes() == LARGE
    assert hub_server.requests == []


def test_a_part_of_another_content_is_not_continued(hub_server, shelf, store):
    stopped_at(store, 0.4)
    before = part(store).name
    other = LARGE[:-1] + b"\1"
    hub_server.repos = {"org/tiny": {"tiny.gguf": other}}
    (store / ".tiny.gguf.part").write_bytes(b"of an older version")
    (store / ".tiny.gguf.gz.0123456789abcdef.part").write_bytes(b"of another file")
    shelf(card(other, HF))
    assert hub.resolve("tiny").read_bytes() == other
    assert kept(store) == [".tiny.gguf.gz.0123456789abcdef.part", "tiny.gguf"]
    assert before not in kept(store)


def test_a_part_that_is_too_long_is_dropped(hub_server, store):
    stopped_at(store, 0.4)
    part(store).write_bytes(LARGE + b"x")
    assert hub.resolve("tiny").read_bytes() == LARGE


def test_room_is_asked_for_the_rest_only(hub_server, store, monkeypatch):
    stopped_at(store, 0.4)
    left = len(LARGE) - part(store).stat().st_size

    class Usage:
        free = left - 1

    monkeypatch.setattr(store_module.shutil, "disk_usage", lambda _: Usage)
    hub_server.requests.clear()
    with pytest.raises(DownloadError, match=r"needs 15 MB in .*, which has 15 MB free"):
        hub.resolve("tiny")
    assert hub_server.requests == []
    Usage.free = left
    assert hub.resolve("tiny").read_bytes() == LARGE


def test_two_processes_fetch_once(hub_server, store, tmp_path):
    begun, release = threading.Event(), threading.Event()
    hub_server.before_body = lambda: (begun.set(), release.wait(30))
    children = [start(tmp_path / "cards") for _ in range(2)]
    assert begun.wait(30)
    said: list[str] = []
    waiting = "another process is downloading tiny:1m; waiting for it\n"

    def listen(child) -> None:
        for line in child.stderr:
            said.append(line)
            if line == waiting:
                release.set()

    listeners = [threading.Thread(target=listen, args=(child,)) for child in children]
    for thread in listeners:
        thread.start()
    assert [child.wait(60) for child in children] == [0, 0]
    for thread in listeners:
        thread.join()
    assert [child.stdout.read() for child in children] == [f"{store / 'tiny.gguf'}\n"] * 2
    assert said.count(waiting) == 1
    assert hub_server.moved == len(LARGE)
    assert (store / "tiny.gguf").read_bytes() == LARGE
    assert kept(store) == ["tiny.gguf"]


def test_who_waited_goes_on_where_the_other_was_killed(hub_server, store, tmp_path):
    hub_server.cut = lambda request: FORTY if request == 1 else None
    release = threading.Event()
    hub_server.after_cut = lambda: release.wait(30)
    child = start(tmp_path / "cards")
    waited_for(lambda: list(store.glob(".*.part")) and part(store).stat().st_size > FORTY - 300_000)
    lines, seen = [], []

    def notify(line: str) -> None:
        lines.append(line)
        child.kill()

    hub_server.moved = 0
    hub.resolve("tiny", progress=lambda *at: seen.append(at), notify=notify)
    child.communicate()
    release.set()
    assert (store / "tiny.gguf").read_bytes() == LARGE
    assert lines[0] == "another process is downloading tiny:1m; waiting for it"
    assert seen[0][2] == "waiting for tiny:1m"
    assert seen[0][0] > FORTY - 300_000
    assert hub_server.moved <= 0.61 * len(LARGE)
