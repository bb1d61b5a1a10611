"""What is special about ik_llama.cpp: an older library beside another one, K-quants that stay exact."""

import subprocess
import sys

import numpy as np
import pytest

from edgespec.backends import ik, llamacpp
from edgespec.backends.base import LoadOptions
from edgespec.backends.rows import exact_rows
from edgespec.errors import BackendError, ModelFileError

COUNTS = (2, 3, 4, 5, 8, 16)

OTHER_BUILD = """
import ctypes
from ik_llama_cpp import _ctypes_api as package
class Moved(ctypes.Structure):
    _fields_ = [("more", ctypes.c_int64), *package.llama_context_params._fields_]
right = package.llama_context_default_params
def moved():
    found, size = Moved(), ctypes.sizeof(package.llama_context_params)
    ctypes.memmove(ctypes.addressof(found), ctypes.addressof(right()), size)
    return found
package.llama_context_default_params = moved
from edgespec.backends import ik
from edgespec.backends.base import LoadOptions
from edgespec.errors import BackendError
try:
    ik.load(__import__("sys").argv[1], LoadOptions())
except BackendError as error:
    print(error)
"""


def test_import_is_cheap():
    code = "import sys, edgespec.backends.ik; sys.exit('ik_llama_cpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_another_version_is_told_with_the_command(monkeypatch):
    assert ik.missing() is None
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.2.0")
    assert "0.2.0 is not the version" in ik.missing()
    assert "pip install ik-llama-cpp-python==0.1.5" in ik.missing()


def test_a_file_that_is_no_model_is_one_line(tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"PK\3\4")
    with pytest.raises(ModelFileError, match=r"x\.gguf is not a GGUF file"):
        ik.load(tmp_path / "x.gguf", LoadOptions())
    assert "folder" in ik.refuses(tmp_path)


@pytest.mark.model
def test_another_build_is_refused_in_one_line(smollm2_path):
    """Structures that are laid out in another way are noticed before a model is loaded with them."""
    command = [sys.executable, "-c", OTHER_BUILD, str(smollm2_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("this ik_llama.cpp is another build")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.model
def test_nothing_is_printed(smollm2_path):
    code = (
        "import sys; from edgespec.backends import ik; from edgespec.backends.base import LoadOptions;"
        "b = ik.load(sys.argv[1], LoadOptions(n_ctx=64)).backend; b.forward([1, 2]); b.close()"
    )
    done = subprocess.run([sys.executable, "-c", code, smollm2_path], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.model
def test_q4_0_rows_are_exact_unless_speed_is_asked_for(q4_0_path):
    found = {}
    for exact in (True, False):
        loaded = ik.load(q4_0_path, LoadOptions(n_ctx=256, n_threads=1, exact=exact))
        tokens = loaded.vocabulary.tokenize("one two three four five six seven " * 8, special=False)
        found[exact] = exact_rows(loaded.backend, tokens, COUNTS)
        assert loaded.info.settings["repack"] is not exact
        loaded.backend.close()
    print(f"\nexact rows: {sorted(found[True])}; rearranged weights: {sorted(found[False])}")
    assert {2, 3, 4} <= found[True]


@pytest.mark.model
@pytest.mark.parametrize("first", ["llamacpp", "ik"])
def test_both_libraries_in_one_process_do_not_disturb_each_other(first, smollm2_path):
    """Their symbols have the same names. Rows are those of a process with one library only."""
    adapters = {"llamacpp": llamacpp, "ik": ik}
    order = sorted(adapters, key=lambda name: name != first)
    options = LoadOptions(n_ctx=128, n_threads=1)
    models = {name: adapters[name].load(smollm2_path, options) for name in order}
    rows = {name: model.backend.forward([504, 3575, 282, 4649, 314]).copy() for name, model in models.items()}
    for name, model in models.items():
        code = (
            "import sys; import numpy as np; from edgespec.backends import NAME;"
            "from edgespec.backends.base import LoadOptions;"
            "b = NAME.load(sys.argv[1], LoadOptions(n_ctx=128, n_threads=1)).backend;"
            "sys.stdout.buffer.write(b.forward([504, 3575, 282, 4649, 314]).tobytes()); b.close()"
        ).replace("NAME", name)
        alone = subprocess.run([sys.executable, "-c", code, smollm2_path], capture_output=True, timeout=60)
        assert np.array_equal(rows[name], np.frombuffer(alone.stdout, np.float32).reshape(5, -1))
        model.backend.close()


@pytest.mark.model
def test_a_long_prompt_gives_the_row_that_its_tokens_give_alone(smollm2_path):
    """The library's kernel for 32 rows and more is wrong for this file's Q4_1."""
    loaded = ik.load(smollm2_path, LoadOptions(n_ctx=256, n_threads=1))
    backend = loaded.backend
    prompt = loaded.vocabulary.tokenize("Rain fell on the old town all day long. " * 8, special=False)
    assert len(prompt) > 64
    together = backend.forward(prompt, rows="last")[0].copy()
    backend.commit(())
    for token in prompt:
        alone = backend.forward([token])[0].copy()
        backend.commit([0])
    backend.close()
    assert np.array_equal(together, alone)


@pytest.mark.model
def test_it_takes_no_branches(smollm2_path):
    """Where 128 places end inside a tree, its attention leaves out rows that are not hidden."""
    backend = ik.load(smollm2_path, LoadOptions(n_ctx=128, n_threads=1)).backend
    assert not backend.capabilities.tree
    with pytest.raises(BackendError, match="branches"):
        backend.forward([1, 2, 3], [-1, 0, 0])
    backend.close()
