"""Text files that go along with a message."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgespec.errors import EdgespecError
from edgespec_tui.text import count, short

MOST_BYTES = 8_000_000
_FILE = re.compile(r'\n*<file name="([^"\n]*)">\n(.*?)\n</file>', re.DOTALL)
_AT = re.compile(r'(?<!\S)@(?:"([^"]+)"|(\S+))')


class AttachmentError(EdgespecError):
    """The file cannot go along."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file's name and its text."""

    name: str
    text: str

    @property
    def summary(self) -> str:
        lines = self.text.count("\n") + 1
        return f"{self.name} · {short(len(self.text.encode()))}B · {count(lines, 'line')}"


def read(name: str) -> Attachment:
    """A text file. Raises AttachmentError."""
    path = Path(name).expanduser()
    try:
        if not path.is_file():
            raise AttachmentError(f"{name} is not a file")
        if path.stat().st_size > MOST_BYTES:
            raise AttachmentError(f"{name} is too big to attach: at most {short(MOST_BYTES)}B")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise AttachmentError(f"{name}: {getattr(error, 'strerror', None) or error}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise AttachmentError(f"{name} is not UTF-8 text") from None
    return Attachment(path.name.replace('"', "'"), text.replace("\r\n", "\n").removesuffix("\n"))


def mentioned(text: str) -> list[Attachment]:
    """The files that a message names with `@path`. What names no file is text. Raises AttachmentError."""
    names = [quoted or plain for quoted, plain in _AT.findall(text)]
    return [read(name) for name in dict.fromkeys(names) if _is_file(name)]


def joined(text: str, attachments: Sequence[Attachment]) -> str:
    """The message as the model gets it."""
    files = [f'<file name="{a.name}">\n{a.text}\n</file>' for a in attachments]
    return "\n\n".join(part for part in (text, *files) if part)


def parted(message: str) -> tuple[str, list[Attachment]]:
    """A message taken apart again, to be shown."""
    found = [Attachment(match[1], match[2]) for match in _FILE.finditer(message)]
    return (_FILE.sub("", message).strip("\n"), found) if found else (message, [])


def completions(typed: str, most: int = 20) -> list[str]:
    """Paths that begin with what was typed after the `@`; folders end with a slash."""
    typed = typed.removeprefix('"')
    head, _, start = typed.rpartition("/")
    folder = Path(head + "/" if head or typed.startswith("/") else ".").expanduser()
    out = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                hidden = name.startswith(".") and not start.startswith(".")
                if not hidden and name.lower().startswith(start.lower()) and name.isprintable():
                    path = f"{head}/{name}" if head or typed.startswith("/") else name
                    out.append(path + ("/" if entry.is_dir() else ""))
    except OSError:
        return []
    return sorted(out, key=lambda path: (not path.endswith("/"), path.lower()))[:most]


def quoted(path: str) -> str:
    """`@path` as it is typed."""
    return f'@"{path}"' if " " in path else f"@{path}"


def _is_file(name: str) -> bool:
    try:
        return Path(name).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False
