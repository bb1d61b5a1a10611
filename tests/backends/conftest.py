"""Files of known quantisation made from the small model, and what float32 says about them."""

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest

from tests.backends import subjects
from tests.backends.reference import FORCED, FORCED_START, Reference

_TEXTS = (
    "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return"
    " a\n\n\ndef factorial(n):\n    result = 1\n    for i in range(2, n + 1):\n        result *= i"
    "\n    return result\n\n\ndef average(values):\n    return sum(values) / len(values)\n",
    "The tide rises because the Moon pulls the water on the near side of the Earth more strongly than"
    " it pulls the Earth itself. On the far side the opposite happens, and the water is left behind."
    " As the planet turns, each coast passes through both bulges every day, which is why most places"
    " see two high tides. The Sun does the same, but less.",
    "Shopping list:\n1. Apples\n2. Bread\n3. Butter\n4. Cheese\n5. Coffee\n6. Eggs\n7. Flour\n8."
    " Honey\n9. Milk\n10. Oats\n11. Olive oil\n12. Potatoes\n13. Rice\n14. Salt\n15. Sugar\n16. Tea\n",
    "<|im_start|>user\nName three primary colours.<|im_end|>\n<|im_start|>assistant\nThe three"
    " primary colours are red, blue and yellow. Mixing two of them gives the secondary colours:"
    " orange, green and purple. All other hues can be made from these by adding white or black to the"
    " mixture, and no two people see them in quite the same way.<|im_end|>\n",
)


def requantised(source: Path, target: Path, kind: str) -> Path:
    """The whole file in one block format, the (tied) embedding in Q8_0, written by llama.cpp."""
    from edgespec.backends.llamacpp.library import library

    native = library().native
    params = native.llama_model_quantize_default_params()
    params.ftype = getattr(native, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.allow_requantize = True
    params.pure = False
    params.token_embedding_type = params.output_tensor_type = native.GGML_TYPE_Q8_0
    assert native.llama_model_quantize(os.fsencode(source), os.fsencode(target), ctypes.byref(params)) == 0
    return target


@pytest.fixture(scope="session")
def q8_0_path(smollm2_path, tmp_path_factory) -> Path:
    return requantised(smollm2_path, tmp_path_factory.mktemp("made") / "smollm2.Q8_0.gguf", "Q8_0")


@pytest.fixture(scope="session")
def q4_0_path(smollm2_path, tmp_path_factory) -> Path:
    return requantised(smollm2_path, tmp_path_factory.mktemp("made") / "smollm2.Q4_0.gguf", "Q4_0")


@pytest.fixture(scope="session")
def forced_tokens(smollm2_path) -> list[list[int]]:
    """Four texts of `FORCED_START + FORCED` tokens, in the vocabulary of the small model."""
    from edgespec.backends.base import LoadOptions
    from edgespec.backends.llamacpp import load

    loaded = load(smollm2_path, LoadOptions(n_ctx=64))
    try:
        return _forced(loaded.vocabulary)
    finally:
        loaded.backend.close()


def _forced(vocabulary) -> list[list[int]]:
    texts = [vocabulary.tokenize(text, special=True) for text in _TEXTS]
    assert all(len(tokens) >= FORCED_START + FORCED for tokens in texts)
    return [tokens[: FORCED_START + FORCED] for tokens in texts]


def _reference(path, sequences) -> np.ndarray:
    logits = Reference(path).logits(sequences)[:, FORCED_START:]
    return logits.reshape(-1, logits.shape[-1])


@pytest.fixture(scope="session")
def q8_0_reference(q8_0_path, forced_tokens) -> np.ndarray:
    """Float32 logits behind every forced token, `[4 * FORCED, n_vocab]`; compare with `reference.forced`."""
    return _reference(q8_0_path, forced_tokens)


@pytest.fixture(scope="session")
def q4_0_reference(q4_0_path, forced_tokens) -> np.ndarray:
    return _reference(q4_0_path, forced_tokens)


@pytest.fixture(scope="session")
def cut_path(q8_0_path, tmp_path_factory) -> Path:
    """The first layers and tokens of the Q8_0 file."""
    from tests.backends.cut import cut

    return cut(q8_0_path, tmp_path_factory.mktemp("made") / "smollm2-cut.Q8_0.gguf")


@pytest.fixture(scope="session")
def real_subject(cut_path, tmp_path_factory):
    """A cut of the small model, as a backend of the registry takes it."""
    from edgespec.backends.llamacpp.vocabulary import read_vocabulary

    vocabulary, _ = read_vocabulary(cut_path)
    forced = _forced(vocabulary)
    reference = _reference(cut_path, forced)

    def subject(name):
        path = _onnx(cut_path, tmp_path_factory.mktemp("made") / "cut.Q8_0") if name == "onnx" else cut_path
        return subjects.real(name, path, vocabulary, forced, reference)

    return subject


def _onnx(source: Path, folder: Path) -> Path:
    from edgespec.convert import convert

    return convert(source, "onnx", folder, notify=print, progress=lambda share: None)


@pytest.fixture(scope="session")
def q8_0_onnx(q8_0_path, tmp_path_factory) -> Path:
    return _onnx(q8_0_path, tmp_path_factory.mktemp("made") / "smollm2.Q8_0")


@pytest.fixture(scope="session")
def q4_0_onnx(q4_0_path, tmp_path_factory) -> Path:
    return _onnx(q4_0_path, tmp_path_factory.mktemp("made") / "smollm2.Q4_0")


@pytest.fixture(scope="module", params=subjects.NAMES)
def subject(request):
    if request.param == "scripted":
        return subjects.scripted()
    return request.getfixturevalue("real_subject")(request.param)
