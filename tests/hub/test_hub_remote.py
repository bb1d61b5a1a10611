"""Models by repository: the choice of a quantisation, shards, and what a hub refuses."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hub_files import SMALL, card, gguf, kept, shard, start
from hub_server import COMMIT

from edgespec import hub
from edgespec.errors import DownloadError, ModelFileError, UsageError
from edgespec.hub import pull
from edgespec.hub.catalogue import RepositorySource
from edgespec.hub.pull import hugging_face

REPO = "org/Tiny-GGUF"
OTHER = gguf(vocabulary=60)
SHARDS = {f"Q8_0/tiny-Q8_0-{i + 1:05}-of-00003.gguf": shard(i, 3) for i in range(3)}


@pytest.fixture
def hub_server(hub_server):
    hub_server.repos = {
        REPO: {"README.md": b"#", "tiny-Q4_K_M.gguf": SMALL, "tiny-Q5_K_M.gguf": OTHER, **SHARDS},
        "org/old": {"old.Q4_0.gguf": SMALL, "old.F16.gguf": OTHER, "mmproj-old-Q4_K_M.gguf": OTHER},
        "org/none": {"model.safetensors": b"x"},
    }
    return hub_server


def failed(typed: str, error: type[Exception] = DownloadError) -> str:
    with pytest.raises(error) as caught:
        hub.resolve(typed)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("org/Tiny-GGUF:Q5_K_M", "tiny-Q5_K_M.gguf"),
        ("hf.co/org/Tiny-GGUF:q5_k_m", "tiny-Q5_K_M.gguf"),
        ("hf:org/Tiny-GGUF/tiny-Q5_K_M.gguf", "tiny-Q5_K_M.gguf"),
        ("org/Tiny-GGUF", "tiny-Q4_K_M.gguf"),
    ],
)
def test_a_reference_brings_its_file(hub_server, store, typed, place):
    path = hub.resolve(typed)
    assert path == store / REPO / place
    assert path.read_bytes() == hub_server.repos[REPO][place]
    assert kept(store) == [f"{REPO}/{place}"]
    assert hub_server.asked == [
        f"/api/models/{REPO}",
        f"/{REPO}/resolve/{COMMIT}/{place}",
        f"/cdn/{REPO}/{place}",
    ]
    hub_server.requests.clear()
    assert hub.resolve(typed, notify=pytest.fail) == path
    assert hub_server.requests == []


def test_what_was_chosen_is_told(hub_server, store):
    lines = []
    hub.resolve(REPO, notify=lines.append)
    assert lines == [f"{REPO}: taking Q4_K_M", f"downloading Tiny:Q4_K_M (1 kB) into {store}"]
    lines.clear()
    assert hub.resolve("org/old", notify=lines.append) == store / "org/old/old.Q4_0.gguf"
    assert lines[0] == "org/old: taking Q4_0, the nearest to Q4_K_M that it has"
    lines.clear()
    assert hub.resolve("org/old", notify=lines.append) == store / "org/old/old.Q4_0.gguf"
    assert lines == ["org/old: using Q4_0, which is on this machine"]


def test_a_revision_has_a_place_of_its_own(hub_server, store):
    path = hub.resolve(f"{REPO}@refs/pr/1:Q4_K_M")
    assert path == store / "org/Tiny-GGUF@refs-pr-1/tiny-Q4_K_M.gguf"
    assert hub_server.asked[0] == f"/api/models/{REPO}/revision/refs/pr/1"


@pytest.mark.parametrize("typed", [f"{REPO}:Q8_0", f"hf:{REPO}/Q8_0/tiny-Q8_0-00002-of-00003.gguf"])
def test_shards_are_one_model(hub_server, store, typed):
    seen, lines = [], []
    names = [f"{REPO}/{name}" for name in SHARDS]

    def progress(done: int, total: int, label: str) -> None:
        assert not [name for name in kept(store) if name in names] or done == total
        seen.append((done, total))

    path = hub.resolve(typed, progress=progress, notify=lines.append)
    assert path == store / names[0]
    assert kept(store) == names
    assert [(store / REPO / name).read_bytes() for name in SHARDS] == list(SHARDS.values())
    total = sum(map(len, SHARDS.values()))
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert "in 3 files" in lines[-1]


def test_an_interrupted_shard_costs_only_itself(hub_server, store):
    first, second, _ = SHARDS
    hub_server.sent[second] = SHARDS[second][:-1]
    said = failed(f"{REPO}:Q8_0")
    assert "offers" in said
    assert not list(store.rglob("tiny*"))
    hub_server.sent.clear()
    hub_server.requests.clear()
    hub.resolve(f"{REPO}:Q8_0")
    assert f"/cdn/{REPO}/{first}" not in hub_server.asked
    (store / REPO / second).unlink()
    hub_server.requests.clear()
    hub.resolve(f"{REPO}:Q8_0")
    assert [path for path in hub_server.asked if "cdn" in path] == [f"/cdn/{REPO}/{second}"]


def test_a_model_in_one_file_goes_before_its_shards(hub_server, store):
    hub_server.repos = {"org/both": {"x-q4_k_m.gguf": SMALL, "x-q4_k_m-00001-of-00001.gguf": OTHER}}
    assert hub.resolve("org/both").name == "x-q4_k_m.gguf"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (f"{REPO}:Q2_K", "has no Q2_K: it has "),
        (f"hf:{REPO}/tiny-Q4_K_S.gguf", "it has tiny-Q4_K_M.gguf"),
        ("org/none", "holds no GGUF model"),
    ],
)
def test_what_a_repository_lacks(hub_server, store, typed, said):
    assert said in failed(typed, UsageError)
    assert not store.exists()


@pytest.mark.parametrize(
    ("api", "file", "said"),
    [
        ((401, {"X-Error-Code": "RepoNotFound"}), (200, {}), r"no org/.*private \(HTTP 401\).*HF_TOKEN"),
        ((404, {}), (200, {}), r"there is no org/Tiny-GGUF"),
        ((404, {"X-Error-Code": "RevisionNotFound"}), (200, {}), r"no such revision"),
        ((401, {"X-Error-Message": "Invalid credentials in Auth..."}), (200, {}), "not accepted"),
        ((403, {}), (200, {}), r"refused \(HTTP 403\)"),
        ((429, {"Retry-After": "42"}), (200, {}), r"too many requests \(HTTP 429\): try again in 42 s"),
        ((500, {}), (200, {}), r"the hub has a problem \(HTTP 500\)"),
        ((200, {}), (401, {"X-Error-Code": "GatedRepo"}), r"is gated .*accept its terms at http://.*/org/Tiny-GGUF"),
        ((200, {}), (403, {"X-Error-Code": "GatedRepo"}), r"is gated \(HTTP 403\)"),
        ((200, {}), (404, {"X-Error-Code": "EntryNotFound"}), r"has no tiny-Q4_K_M.gguf"),
        ((200, {}), (429, {}), r"too many requests \(HTTP 429\): try again later"),
        ((200, {}), (502, {}), r"HTTP 502"),
        ((200, {}), (416, {}), r"HTTP 416"),
    ],
)  # fmt: skip
def test_refusals_are_one_clear_line(hub_server, store, monkeypatch, capfd, api, file, said):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub_server.api, hub_server.file = api, file
    line = failed(REPO)
    assert re.search(said, line)
    assert "could not be downloaded" in line
    assert "hf_secret" not in line
    assert capfd.readouterr() == ("", "")
    assert not store.exists() or kept(store) == []


def test_a_token_that_cannot_be_sent_is_not_printed(hub_server, store, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secrét")
    line = failed(REPO)
    assert "HF_TOKEN holds characters that no token has" in line
    assert "hf_sec" not in line
    assert hub_server.requests == []


def test_a_page_in_place_of_the_hub(hub_server, store, monkeypatch):
    monkeypatch.setattr(json, "dumps", lambda _: "<html>Sign in to this network</html>")
    assert "the answer is not the hub's" in failed(REPO)


def test_a_hub_without_an_answer(hub_server, store, monkeypatch):
    monkeypatch.setattr(pull, "FIRST_ANSWER", (0.2, 0.2))
    hub_server.before_answer = lambda: time.sleep(1)
    assert "no answer in 0.2 s" in failed(REPO)


@pytest.mark.parametrize("url", ["localhost:80", "ftp://x"])
def test_an_endpoint_that_is_no_address(store, monkeypatch, url):
    monkeypatch.setenv("HF_ENDPOINT", url)
    assert "HF_ENDPOINT must begin with https:// or http://" in failed(REPO)


def test_a_proxy_is_used(hub_server, store, monkeypatch):
    """The local hub is the proxy of an endpoint that does not exist."""
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("HTTP_PROXY", hub_server.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    from huggingface_hub import close_session

    close_session()  # the client reads the environment when it is made
    try:
        assert hub.resolve(REPO).read_bytes() == SMALL
    finally:
        close_session()


@pytest.mark.parametrize(
    "name", ["../up.Q4_K_M.gguf", "a/../../up.Q4_K_M.gguf", "/abs.Q4_K_M.gguf", "C:\\x.gguf"]
)
def test_a_name_that_leaves_the_store_is_refused(hub_server, store, name):
    hub_server.repos = {"org/bad": {name: SMALL}}
    assert "whose name cannot be used here" in failed("org/bad")
    assert not store.exists()


def test_a_file_without_a_checksum_is_refused(hub_server, store):
    hub_server.repos = {"org/plain": {"x.GGUF": SMALL}}
    assert "gives no sha256 for x.GGUF" in failed("org/plain")


@pytest.mark.parametrize("name", ["EDGESPEC_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline(hub_server, store, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert failed(REPO) == (
        f"{REPO} is not on this machine and {name} forbids downloading it: "
        f"unset {name}, or give the path of a model"
    )
    assert hub_server.requests == []
    (store / REPO).mkdir(parents=True)
    (store / REPO / "tiny-Q4_K_M.gguf").write_bytes(SMALL)
    assert hub.resolve(REPO) == store / REPO / "tiny-Q4_K_M.gguf"
    assert hub_server.requests == []


def test_a_damaged_file_is_fetched_again(hub_server, store, monkeypatch):
    path = hub.resolve(REPO)
    path.write_bytes(SMALL[:-100])
    with monkeypatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        with pytest.raises(ModelFileError, match="cut off"):
            hub.resolve(REPO)
    lines = []
    assert hub.resolve(REPO, notify=lines.append).read_bytes() == SMALL
    assert lines[0] == f"{REPO} on this machine is damaged; fetching it again"


def test_a_server_that_stops_sending(hub_server, store, monkeypatch):
    monkeypatch.setattr(hugging_face, "_READ", 0.3)
    hub_server.before_body = lambda: time.sleep(1)
    assert "no answer in time" in failed(REPO)


def test_a_card_without_a_checksum_asks_the_hub(hub_server, shelf, store, tmp_path):
    source = RepositorySource(REPO)
    shelf(card(SMALL, source, file=None, size=None, sha256=None, quantization="Q5_K_M"))
    lines = []
    path = hub.resolve("tiny", notify=lines.append)
    assert path == store / REPO / "tiny-Q5_K_M.gguf"
    assert lines == [f"downloading tiny:1m (2 kB) into {store}"]
    hub_server.requests.clear()
    assert hub.resolve(f"{REPO}:Q5_K_M") == path
    assert hub.resolve("tiny") == path
    assert hub_server.requests == []


def test_two_processes_pull_one_repository(hub_server, shelf, store, tmp_path):
    shelf(card(SMALL))
    children = [start(tmp_path / "cards", f"{REPO}:Q8_0") for _ in range(2)]
    said = [child.communicate(timeout=60) for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    assert kept(store) == [f"{REPO}/{name}" for name in SHARDS]
    assert all(REPO in path for path in hub_server.asked)  # nothing that the library counts for itself
    assert hub_server.moved == sum(map(len, SHARDS.values()))


def test_an_odd_store_and_odd_names(hub_server, tmp_path, monkeypatch):
    odd = tmp_path / "模型 ü (1)" / "a b#%"
    monkeypatch.setenv("EDGESPEC_MODELS", str(odd))
    hub_server.repos = {"org/odd": {"ü #%20 [x].Q4_K_M.gguf": SMALL}}
    path = hub.resolve("org/odd")
    assert path == odd / "org/odd" / "ü #%20 [x].Q4_K_M.gguf"
    assert path.read_bytes() == SMALL
    assert Path(path).is_file()
