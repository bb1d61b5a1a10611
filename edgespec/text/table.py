"""A vocabulary given by a table: for the scripted backend, demos and tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class TableVocabulary:
    """Token i adds the bytes `pieces[i]`; control tokens add none and are only spelled that way.

    Text is tokenised greedily, longest token first; the table must cover the text, else ValueError.
    """

    kind = "table"

    def __init__(
        self,
        pieces: Sequence[bytes],
        *,
        control: Collection[int] = (),
        eog: Collection[int] = (),
        bos: int | None = None,
        eos: int | None = None,
        add_bos: bool = False,
    ) -> None:
        self.n_vocab = len(pieces)
        self.bos = bos
        self.eos = eos
        self.add_bos = add_bos
        self._pieces = tuple(pieces)
        self._control = frozenset(control)
        self._eog = frozenset(eog)
        self._plain: dict[bytes, int] = {}
        self._special: dict[bytes, int] = {}
        for token, piece in enumerate(pieces):
            table = self._special if token in self._control else self._plain
            if piece:
                table.setdefault(piece, token)
        self._longest = max((len(piece) for piece in pieces), default=0)

    @classmethod
    def of_bytes(
        cls, words: Sequence[str] = (), *, control: Sequence[str] = (), eog: Sequence[str] = ()
    ) -> TableVocabulary:
        """All 256 single bytes, then `words`, then `control` tokens and the end tokens `eog`."""
        pieces = [bytes([value]) for value in range(256)] + [word.encode() for word in words]
        first = len(pieces)
        pieces += [name.encode() for name in (*control, *eog)]
        ends = range(len(pieces) - len(eog), len(pieces))
        return cls(pieces, control=range(first, len(pieces)), eog=ends, eos=ends[0] if eog else None)

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        data = text.encode()
        out = []
        at = 0
        while at < len(data):
            token, size = self._longest_at(data, at, special)
            out.append(token)
            at += size
        return out

    def _longest_at(self, data: bytes, at: int, special: bool) -> tuple[int, int]:
        for size in range(min(self._longest, len(data) - at), 0, -1):
            word = data[at : at + size]
            token = self._special.get(word) if special else None
            if token is None:
                token = self._plain.get(word)
            if token is not None:
                return token, size
        raise ValueError(f"no token for byte {data[at]:#04x} at {at}")

    def piece(self, token: int) -> bytes:
        return b"" if token in self._control else self._pieces[token]

    def text(self, token: int) -> str:
        return self._pieces[token].decode(errors="replace")

    def texts(self) -> list[str]:
        """All token texts, by id."""
        return [piece.decode(errors="replace") for piece in self._pieces]

    def is_eog(self, token: int) -> bool:
        return token in self._eog

    def is_control(self, token: int) -> bool:
        return token in self._control
