"""The backends that the conformance tests run on, each with a small model that it can load."""

import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgespec.backends.base import LoadedModel, LoadOptions, Vocabulary
from edgespec.backends.registry import ADAPTERS, adapter
from edgespec.backends.scripted import ScriptedBackend, hashed
from edgespec.text.table import TableVocabulary
from tests.backends.reference import FORCED, FORCED_START

NAMES = ("scripted", *ADAPTERS)
OPTIONS = {"n_ctx": 1024, "n_batch": 256, "n_ubatch": 64, "max_rows": 24, "n_threads": 1}
TEXT = (
    "The tower is 324 metres tall, about the same height as an 81-storey building, and the tallest "
    "structure in the city. Its base is square, measuring 125 metres on each side. "
)


@dataclass(frozen=True)
class Subject:
    """`open(**options)` loads the model anew. `vocabulary`: as llama.cpp reads it from the file.

    `ids`: some text of it. `forced`: sequences whose logits should be `reference`, as `reference.forced`
    gives them. `weights`: bytes that one loaded model takes.
    """

    name: str
    open: Callable[..., LoadedModel]
    vocabulary: Vocabulary
    ids: list[int]
    forced: list[list[int]]
    reference: np.ndarray
    weights: int


def scripted() -> Subject:
    vocabulary = TableVocabulary([c.encode() for c in string.printable], eog=[len(string.printable) - 1])
    logits = hashed(vocabulary.n_vocab, order=1, sharpness=12.0)

    def load(**options: object) -> LoadedModel:
        n_ctx = LoadOptions(**OPTIONS | options).n_ctx
        return LoadedModel(ScriptedBackend(logits, vocabulary.n_vocab, n_ctx=n_ctx), vocabulary, None)

    ids = vocabulary.tokenize(TEXT * 20, special=False)
    forced = [ids[i * 10 : i * 10 + FORCED_START + FORCED] for i in range(4)]
    ends = range(FORCED_START + 1, FORCED_START + FORCED + 1)
    rows = [logits(tuple(tokens[:end])) for tokens in forced for end in ends]
    return Subject("scripted", load, vocabulary, ids, forced, np.array(rows), 0)


def real(name: str, path: Path, vocabulary: Vocabulary, forced: list[list[int]], reference) -> Subject:
    """`path`: what the backend loads, made of the weights that `reference` was computed from."""

    def load(**options: object) -> LoadedModel:
        return adapter(name).load(path, LoadOptions(**OPTIONS | options))

    ids = vocabulary.tokenize(TEXT * 20, special=False)
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
    return Subject(name, load, vocabulary, ids, forced, reference, sum(file.stat().st_size for file in files))
