"""The vocabulary of a model without its weights."""

from __future__ import annotations

from pathlib import Path

from edgespec.backends.base import Vocabulary
from edgespec.convert.weights import VOCABULARY


def read_vocabulary(path: Path, n_vocab: int | None = None) -> tuple[Vocabulary, str | None]:
    """Of a GGUF file, or of a folder: the GGUF's own where it was made from one, else of its tokenizer.json.

    `n_vocab` is the size of the folder's model, None where it does not matter. With the chat template.
    Raises ModelFileError or UnsupportedModelError.
    """
    own = path / VOCABULARY if path.is_dir() else path
    if path.is_dir() and not own.is_file():
        from edgespec.backends.tokenizer_json import TokenizerJson, chat_template

        return TokenizerJson(path, n_vocab), chat_template(path)
    from edgespec.backends.llamacpp.vocabulary import read_vocabulary as from_gguf

    return from_gguf(own)
