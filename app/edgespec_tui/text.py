"""Text of other people, made harmless to draw."""

from __future__ import annotations

_PICTURES = {c: chr(0x2400 + c) for c in range(32) if chr(c) not in "\n\t"}
_PICTURES |= {0x7F: "\u2421"} | dict.fromkeys(range(0x80, 0xA0), "\ufffd")
_PICTURES |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")


def visible(text: str) -> str:
    """Characters that a terminal would obey become pictures of themselves; lines and tabs stay."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


def one_line(text: str, most: int = 200) -> str:
    """On one line, cut with an ellipsis."""
    line = " ".join(visible(text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def count(n: int, what: str) -> str:
    """`1 token`, `2 tokens`, `12,345 tokens`."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def short(n: int) -> str:
    """A number of tokens or bytes in at most four characters: 980, 1.2k, 32k, 1.1M."""
    for unit, size in (("M", 1_000_000), ("k", 1000)):
        if n >= size:
            value = n / size
            return f"{value:.1f}{unit}" if value < 10 else f"{value:.0f}{unit}"
    return str(n)
