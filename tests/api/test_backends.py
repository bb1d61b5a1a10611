"""Which backend runs a file: asked for, preferred, or the first that can."""

import sys
from types import SimpleNamespace

import pytest

from edgespec.api import backends
from edgespec.api.backends import Place
from edgespec.backends.registry import ADAPTERS
from edgespec.errors import BackendError, UnsupportedModelError, UsageError


def adapter(lacks=None, folders=False):
    """Takes files, or folders; `lacks` is what it says where its library is not installed."""

    def refuses(path):
        return None if path.is_dir() is folders else f"{path.name}: {'no files' if folders else 'no folders'}"

    return SimpleNamespace(missing=lambda: lacks, refuses=refuses)


@pytest.fixture
def registered(monkeypatch):
    def register(**adapters):
        for name in [*reversed(ADAPTERS)]:  # put back from the last to the first, and the order matters
            monkeypatch.delitem(ADAPTERS, name)
        for name, made in adapters.items():
            monkeypatch.setitem(ADAPTERS, name, f"test_{name}")
            monkeypatch.setitem(sys.modules, f"test_{name}", made)

    return register


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.gguf"
    path.touch()
    return path


def test_auto_takes_the_first_that_is_installed_and_can(registered, file, tmp_path):
    registered(a=adapter(lacks="pip install a"), b=adapter(), c=adapter(), d=adapter(folders=True))
    assert backends.pick(file, "auto") == Place("b", file)
    assert backends.pick(file, "auto", preferred="c").backend == "c"
    assert backends.pick(file, "auto", preferred="d").backend == "b"
    assert backends.pick(tmp_path, "auto", preferred="b") == Place("d", tmp_path)
    assert backends.able(file) == [Place("b", file), Place("c", file)]


def test_what_was_asked_for_is_used_or_refused(registered, file, tmp_path):
    registered(a=adapter(), b=adapter(), gone=adapter(lacks="x is not installed: pip install x"))
    assert backends.pick(file, "b") == Place("b", file)
    with pytest.raises(UnsupportedModelError, match="no folders"):
        backends.pick(tmp_path, "b")
    with pytest.raises(UsageError, match="unknown backend 'c': use auto, a, b, gone"):
        backends.check_name("c")
    with pytest.raises(BackendError, match="pip install x"):
        backends.check_name("gone")


def test_nobody_can(registered, file, tmp_path):
    registered(a=adapter(folders=True), b=adapter(folders=True, lacks="b is not installed: pip install b"))
    with pytest.raises(UnsupportedModelError, match=r"no backend can load model\.gguf: .*no files"):
        backends.pick(file, "auto")
    registered(a=adapter(), b=adapter(folders=True, lacks="b is not installed: pip install b"))
    with pytest.raises(UnsupportedModelError, match="pip install b"):
        backends.pick(tmp_path, "auto")
