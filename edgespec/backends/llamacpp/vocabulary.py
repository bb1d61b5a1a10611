"""The vocabulary and chat template of a GGUF file for backends that load its weights in another way."""

from __future__ import annotations

import weakref
from pathlib import Path

from edgespec.backends.base import LoadOptions
from edgespec.backends.llama import opening
from edgespec.backends.llama.vocabulary import LlamaVocabulary
from edgespec.backends.llamacpp.library import library
from edgespec.errors import UnsupportedModelError


def read_vocabulary(path: Path) -> tuple[LlamaVocabulary, str | None]:
    """No weights are read; the file need not have any. What it takes is freed with the vocabulary.

    Raises ModelFileError or UnsupportedModelError.
    """
    opening.check_file(path)
    lib = library()
    params = lib.native.llama_model_default_params()
    params.vocab_only = True
    model = opening.load_model(lib, path, params, LoadOptions())
    vocabulary = LlamaVocabulary(lib, model)
    weakref.finalize(vocabulary, lib.native.llama_model_free, model)
    if vocabulary.n_vocab <= 0:
        raise UnsupportedModelError(f"{path.name}: unsupported, the file has no vocabulary")
    return vocabulary, opening.text(lib.native.llama_model_chat_template(model, None))
