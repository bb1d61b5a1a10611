"""The vocabulary of a model folder that has a tokenizer.json, and its chat template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edgespec.errors import BackendError, ModelFileError

_EOG_TEXTS = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<EOT>",
    "</s>",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<|repo_name|>",
    "<|fim_repo|>",
    "<fim-repo>",
    "<reponame>",
    "<|file_sep|>",
)
"""Tokens that end an answer wherever they are in a vocabulary, as in llama.cpp."""


class TokenizerJson:
    """A `Vocabulary` by the `tokenizers` library. `n_vocab` is the model's, which may be padded;
    None is the tokenizer's own.

    Raises ModelFileError where the folder has no tokenizer.json that the library reads.
    """

    def __init__(self, folder: Path, n_vocab: int | None) -> None:
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise ModelFileError(f"{folder.name} has no tokenizer.json: get it from the model's page")
        from tokenizers import Tokenizer

        try:
            self._parsing, self._plain = Tokenizer.from_file(str(path)), Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare exceptions
            raise ModelFileError(f"{folder.name}/tokenizer.json cannot be read: {error}") from None
        for tokenizer in (self._parsing, self._plain):
            tokenizer.no_truncation()
            tokenizer.no_padding()
        self._plain.encode_special_tokens = True
        self.n_vocab = self._parsing.get_vocab_size() if n_vocab is None else n_vocab
        self.kind, self._bytes_of = _kind(json.loads(self._parsing.to_str()))
        added = self._parsing.get_added_tokens_decoder()
        self._added: dict[int, tuple[str, bool]] = {i: (one.content, one.special) for i, one in added.items()}
        config, model, generation = (
            read_json(folder / f"{name}.json") for name in ("tokenizer_config", "config", "generation_config")
        )
        self.bos = self._special(config.get("bos_token"), model.get("bos_token_id"))
        self.eos = self._special(config.get("eos_token"), model.get("eos_token_id"))
        self.add_bos = self.bos is not None and self._parsing.encode("a").ids[:1] == [self.bos]
        ends = [self.eos, *_ids(generation.get("eos_token_id")), *_ids(model.get("eos_token_id"))]
        named = {text: self._parsing.token_to_id(text) for text in _EOG_TEXTS}
        self._added |= {i: (text, True) for text, i in named.items() if i is not None}
        self._eog = frozenset(i for i in (*ends, *named.values()) if i is not None)

    def _special(self, token: Any, listed: Any) -> int | None:
        text = token.get("content") if isinstance(token, dict) else token
        if isinstance(text, str):
            found: int | None = self._parsing.token_to_id(text)
            return found
        return next(iter(_ids(listed)), None)

    def _checked(self, token: int) -> int:
        if not 0 <= token < self.n_vocab:
            raise BackendError(f"token {token} is outside the vocabulary of {self.n_vocab}")
        return int(token)

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Ids of `text`, without BOS; `special` lets the text of control tokens become them."""
        tokenizer = self._parsing if special else self._plain
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return list(tokenizer.encode(clean, add_special_tokens=False).ids)

    def piece(self, token: int) -> bytes:
        """The bytes that the token adds to the text; control tokens give b""."""
        added = self._added.get(self._checked(token))
        if added is not None:
            return b"" if added[1] else added[0].encode()
        spelled = self._parsing.id_to_token(token)
        return b"" if spelled is None else self._bytes_of(spelled)

    def text(self, token: int) -> str:
        """The token as the vocabulary spells it, control tokens included; padding as llama.cpp names it."""
        spelled: str | None = self._parsing.id_to_token(self._checked(token))
        return f"[PAD{token}]" if spelled is None else spelled

    def is_eog(self, token: int) -> bool:
        return token in self._eog

    def is_control(self, token: int) -> bool:
        return self._added.get(token, ("", False))[1]


def chat_template(folder: Path) -> str | None:
    """The chat template of a folder, wherever it is kept; None where it has none."""
    own = folder / "chat_template.jinja"
    if own.is_file():
        return own.read_text("utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        found = read_json(folder / name).get("chat_template")
        if isinstance(found, list):
            found = next((one["template"] for one in found if one.get("name") == "default"), None)
        if isinstance(found, str):
            return found
    return None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is no file. Raises ModelFileError."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path.parent.name}/{path.name} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise ModelFileError(f"{path.parent.name}/{path.name} is no JSON object")
    return found


def _ids(listed: Any) -> list[int]:
    return listed if isinstance(listed, list) else [] if listed is None else [int(listed)]


def _kind(described: dict[str, Any]) -> tuple[str, Any]:
    """The name of the tokenizer's type in llama.cpp, and how a token's spelling becomes bytes."""
    model = described["model"]
    if model["type"] == "BPE" and not model.get("byte_fallback"):
        return "bpe", _from_byte_level
    kinds = {"BPE": "spm", "Unigram": "ugm", "WordPiece": "wpm"}
    return kinds.get(model["type"], "unknown"), _from_sentencepiece


def _byte_level() -> dict[str, int]:
    """GPT-2's letters for bytes: printable ones stand for themselves, the others follow from 256 on."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(b): b for b in shown} | {chr(256 + i): b for i, b in enumerate(hidden)}


_BYTES = _byte_level()


def _from_byte_level(spelled: str) -> bytes:
    return bytes(_BYTES[c] for c in spelled) if all(c in _BYTES for c in spelled) else spelled.encode()


def _from_sentencepiece(spelled: str) -> bytes:
    if len(spelled) == 6 and spelled.startswith("<0x") and spelled.endswith(">"):
        return bytes([int(spelled[3:5], 16)])
    return spelled.replace("▁", " ").encode()
