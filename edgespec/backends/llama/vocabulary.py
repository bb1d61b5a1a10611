"""Token ids and their bytes, read from the model file by the native library."""

from __future__ import annotations

import ctypes
from typing import Any

from edgespec.backends.llama.library import Library
from edgespec.errors import BackendError

_KINDS = {0: "none", 1: "spm", 2: "bpe", 3: "wpm", 4: "ugm", 5: "rwkv", 6: "plamo2"}
_FIRST_PIECE = 64


class LlamaVocabulary:
    """A `Vocabulary` over a loaded model. Answers are kept, so it stays usable for known tokens only
    after the model is closed."""

    def __init__(self, library: Library, model: Any) -> None:
        self._native = native = library.native
        self._says_control, self._model = library.is_control, model
        self._vocab = vocab = native.llama_model_get_vocab(model)
        self.n_vocab: int = native.llama_vocab_n_tokens(vocab)
        self.kind: str = _KINDS.get(native.llama_vocab_type(vocab), "unknown")
        self.bos = self._optional(native.llama_vocab_bos(vocab))
        self.eos = self._optional(native.llama_vocab_eos(vocab))
        self.add_bos: bool = bool(native.llama_vocab_get_add_bos(vocab))
        self._pieces: dict[int, bytes] = {}
        self._texts: dict[int, str] = {}
        self._eog: dict[int, bool] = {}
        self._control: dict[int, bool] = {}

    @staticmethod
    def _optional(token: int) -> int | None:
        return token if token >= 0 else None

    def _checked(self, token: int) -> int:
        if not 0 <= token < self.n_vocab:
            raise BackendError(f"token {token} is outside the vocabulary of {self.n_vocab}")
        return int(token)

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Ids of `text`, without BOS; `special` lets the text of control tokens become them."""
        data = text.encode("utf-8", "replace")
        if not data:
            return []
        size = len(data) + 8
        while True:
            buffer = (ctypes.c_int32 * size)()
            n: int = self._native.llama_tokenize(self._vocab, data, len(data), buffer, size, False, special)
            if n >= 0:
                return list(buffer[:n])
            if -n <= size:
                raise BackendError(f"the tokenizer failed on a text of {len(data)} bytes")
            size = -n

    def piece(self, token: int) -> bytes:
        """The bytes that the token adds to the text; control tokens give b""."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._read_piece(self._checked(token))
        return known

    def _read_piece(self, token: int) -> bytes:
        size = _FIRST_PIECE
        while True:
            buffer = ctypes.create_string_buffer(size)
            n: int = self._native.llama_token_to_piece(self._vocab, token, buffer, size, 0, False)
            if n >= 0:
                return buffer.raw[:n]
            if -n <= size:
                raise BackendError(f"the tokenizer failed on token {token}")
            size = -n

    def text(self, token: int) -> str:
        """The token as the vocabulary spells it, control tokens included."""
        known = self._texts.get(token)
        if known is None:
            spelled = self._native.llama_vocab_get_text(self._vocab, self._checked(token))
            known = self._texts[token] = (spelled or b"").decode("utf-8", "replace")
        return known

    def is_eog(self, token: int) -> bool:
        known = self._eog.get(token)
        if known is None:
            known = self._eog[token] = bool(
                self._native.llama_vocab_is_eog(self._vocab, self._checked(token))
            )
        return known

    def is_control(self, token: int) -> bool:
        known = self._control.get(token)
        if known is None:
            known = self._control[token] = bool(
                self._says_control(self._model, self._vocab, self._checked(token))
            )
        return known
