"""What a file is that is no GGUF model, told from its first bytes."""

from __future__ import annotations

import struct

from edgespec.errors import ModelFileError, UnsupportedModelError

VERSIONS = (2, 3)


def recognise(start: bytes, shown: str) -> None:
    """Raises ModelFileError or UnsupportedModelError unless a GGUF file of a readable version begins so."""
    if start[:4] == b"GGUF" and len(start) >= 8:
        _check_version(start[4:8], shown)
        return
    if start[:4] == b"GGUF" or b"GGUF".startswith(start[:4]):
        raise ModelFileError(f"{shown} is cut off inside its header: download it again")
    what, remedy = _other(start)
    raise ModelFileError(f"{shown} is {what}: {remedy}")


def _check_version(raw: bytes, shown: str) -> None:
    little, big = struct.unpack("<I", raw)[0], struct.unpack(">I", raw)[0]
    if little in VERSIONS:
        return
    if big in (*VERSIONS, 1):
        raise UnsupportedModelError(f"{shown} is a big-endian GGUF file: get the little-endian one")
    age = "newer" if little > max(VERSIONS) else "older"
    raise UnsupportedModelError(
        f"{shown} is GGUF version {little}, {age} than the supported {VERSIONS[0]} and {VERSIONS[-1]}"
    )


def _other(start: bytes) -> tuple[str, str]:
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"version https://git-lfs"):
        return "a git-lfs pointer, not the model", "run `git lfs pull`, or download the file itself"
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return "a web page, not a model", "download the file itself, not the page about it"
    if start.startswith(b"PK\x03\x04"):
        return "a zip archive or PyTorch file", "edgespec loads GGUF files"
    if len(start) > 9 and start[8:9] == b"{" and start[5:8] == b"\0\0\0":
        return "a safetensors file", "edgespec loads GGUF files; convert it first"
    if start[:4] in (b"lmgg", b"fmgg", b"tjgg", b"algg"):
        return "an old GGML file from before GGUF", "get the model as GGUF"
    if not start.strip(b"\0"):
        return "not a GGUF file, it begins with zeros", "its download never ended; download it again"
    return "not a GGUF file", "edgespec loads GGUF files"
