"""The tokenizer of a folder: the GGUF's own where the folder was made from one, else tokenizer.json."""

from __future__ import annotations

from edgespec.backends.base import Vocabulary
from edgespec.backends.onnx.folder import Folder
from edgespec.backends.tokenizer_json import TokenizerJson, chat_template
from edgespec.convert.weights import VOCABULARY


def read_vocabulary(folder: Folder, n_vocab: int) -> tuple[Vocabulary, str | None]:
    """The vocabulary and the chat template. Raises ModelFileError or UnsupportedModelError."""
    own = folder.root / VOCABULARY
    if own.is_file():
        from edgespec.backends.llamacpp.vocabulary import read_vocabulary as from_gguf

        return from_gguf(own)
    return TokenizerJson(folder.root, n_vocab), chat_template(folder.root)
