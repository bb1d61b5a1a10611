"""The tokenizer of a GGUF file as a tokenizer.json for tools that know no other."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from edgespec.convert.weights import VOCABULARY, Weights

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_QWEN2: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3: Final = _QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5
_STRING, _ARRAY = 8, 9
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_SIZES: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


@dataclass(frozen=True, slots=True)
class Words:
    """What the metadata says of tokens, and the chat template; `kinds`: GGUF's type of every token."""

    tokens: list[str]
    merges: list[str]
    kinds: list[int]
    chat_template: str | None


def write(weights: Weights, folder: Path, notify: Callable[[str], None]) -> None:
    """The vocabulary itself, and a tokenizer.json for other programs where that can say the same."""
    (folder / VOCABULARY).write_bytes(weights.vocabulary_file())
    lists = words(weights)
    if lists.chat_template:
        (folder / "chat_template.jinja").write_text(lists.chat_template, "utf-8")
    made = tokenizer_json(weights, lists)
    if made is None:
        notify(
            "this tokenizer has no known tokenizer.json: the folder runs with edgespec; "
            "for other programs add the original model's"
        )
        return
    made.save(str(folder / "tokenizer.json"))
    described = json.dumps(tokenizer_config(weights, lists), indent=2, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(described + "\n", "utf-8")


def words(weights: Weights) -> Words:
    """Takes about a second for 150,000 tokens."""
    keys = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type")
    template = "tokenizer.chat_template"
    found = _Walk(weights.vocabulary_file()).values({*keys, template})
    tokens, merges, kinds = (found.get(key) or [] for key in keys)
    return Words(tokens, merges, kinds or [1] * len(tokens), found.get(template))


def tokenizer_json(weights: Weights, lists: Words) -> Tokenizer | None:
    """None for tokenizers whose rules are unknown here: those need the original model's own file."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    splitters: dict[object, Any] = {
        "smollm": pre_tokenizers.Digits(individual_digits=True),
        "gpt-2": None,
        "qwen2": pre_tokenizers.Split(Regex(_QWEN2), "isolated"),
        "llama-bpe": pre_tokenizers.Split(Regex(_LLAMA3), "isolated"),
    }
    rule = weights.facts.get("tokenizer.ggml.pre")
    if weights.facts.get("tokenizer.ggml.model") != "gpt2" or rule not in splitters:
        return None
    ids = {
        token: i
        for i, (token, kind) in enumerate(zip(lists.tokens, lists.kinds, strict=True))
        if kind != _UNUSED
    }
    pairs = [(first, second) for first, _, second in (merge.partition(" ") for merge in lists.merges)]
    made = Tokenizer(models.BPE(vocab=ids, merges=pairs, ignore_merges=rule == "llama-bpe"))
    splitter = splitters[rule]
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=rule in ("smollm", "gpt-2"))
    made.pre_tokenizer = letters if splitter is None else pre_tokenizers.Sequence([splitter, letters])
    made.decoder = decoders.ByteLevel()
    if rule == "qwen2":
        made.normalizer = normalizers.NFC()
    made.add_tokens(
        [
            AddedToken(token, special=kind == _CONTROL, normalized=False)
            for token, kind in zip(lists.tokens, lists.kinds, strict=True)
            if kind in (_CONTROL, _USER_DEFINED)
        ]
    )
    return made


def tokenizer_config(weights: Weights, lists: Words) -> dict[str, Any]:
    """The `tokenizer_config.json` that goes with it."""

    def named(key: str) -> str | None:
        found = weights.facts.get(f"tokenizer.ggml.{key}_token_id")
        return lists.tokens[int(found)] if found is not None else None

    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": bool(weights.facts.get("tokenizer.ggml.add_bos_token", False)),
        "clean_up_tokenization_spaces": False,
        "model_max_length": int(weights.number("context_length")),
        "bos_token": named("bos"),
        "eos_token": named("eos"),
        "pad_token": named("padding"),
    }


class _Walk:
    """Steps through the metadata of a file whose header was checked already."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 24
        self._left: int = struct.unpack_from("<Q", data, 16)[0]

    def values(self, wanted: set[str]) -> dict[str, Any]:
        """Texts, and lists of texts or of whole numbers."""
        found: dict[str, Any] = {}
        for _ in range(self._left):
            key, kind = self._text(), self._number(_U32)
            if key not in wanted:
                self._skip(kind)
            else:
                found[key] = self._text() if kind == _STRING else self._list()
        return found

    def _number(self, form: struct.Struct) -> int:
        found: int = form.unpack_from(self._data, self._at)[0]
        self._at += form.size
        return found

    def _text(self) -> str:
        size = self._number(_U64)
        self._at += size
        return self._data[self._at - size : self._at].decode("utf-8", "replace")

    def _list(self) -> Any:
        kind, count = self._number(_U32), self._number(_U64)
        if kind == _STRING:
            return [self._text() for _ in range(count)]
        start, self._at = self._at, self._at + _SIZES[kind] * count
        return np.frombuffer(self._data, f"<i{_SIZES[kind]}", count, start).tolist()

    def _skip(self, kind: int) -> None:
        if kind == _ARRAY:
            inner, count = self._number(_U32), self._number(_U64)
            if inner != _STRING:
                self._at += _SIZES[inner] * count
            for _ in range(count if inner == _STRING else 0):
                self._step_over_text()
        elif kind == _STRING:
            self._step_over_text()
        else:
            self._at += _SIZES[kind]

    def _step_over_text(self) -> None:
        size = self._number(_U64)
        self._at += size
