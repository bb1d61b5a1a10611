"""Small model files, wheels and cards for the tests of the hub."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

from edgespec.hub.catalogue import Card, HuggingFaceSource, ModelSource, RepositorySource, WheelSource

U32, STRING, ARRAY = 4, 8, 9


def text(value: str | bytes) -> bytes:
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str, kind: int, payload: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + payload


def word(key: str, value: int) -> bytes:
    return pair(key, U32, struct.pack("<I", value))


def words(key: str, items: list[str]) -> bytes:
    head = struct.pack("<IQ", STRING, len(items))
    return pair(key, ARRAY, head + b"".join(text(item) for item in items))


def tensor(name: str, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    head = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + head + struct.pack("<IQ", kind, offset)


def gguf(
    *,
    version: int = 3,
    pairs: list[bytes] | None = None,
    tensors: list[bytes] | None = None,
    data: int = 2 * 18 * 4 + 16,
    alignment: int = 32,
    vocabulary: int = 50,
) -> bytes:
    """A sound little model: one Q4_0 tensor of 64 x 4, unless parts are replaced."""
    if pairs is None:
        pairs = [
            pair("general.architecture", STRING, text("llama")),
            pair("general.name", STRING, text("Tiny")),
            word("general.file_type", 2),
            word("llama.context_length", 512),
            words("tokenizer.ggml.tokens", [f"token {i}" for i in range(vocabulary)]),
            pair("tokenizer.ggml.scores", ARRAY, struct.pack("<IQ", 6, 3) + bytes(12)),
            pair("tokenizer.ggml.add_bos", 7, b"\1"),
        ]
    if tensors is None:
        tensors = [tensor("output.weight", (64, 4), 2, 0)]
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs + tensors)
    return head + bytes(-len(head) % alignment) + bytes(data)


def shard(number: int, count: int) -> bytes:
    """The part of a model in several files, counted from 0."""
    facts = [pair("general.architecture", STRING, text("llama")), word("general.file_type", 7)]
    return gguf(pairs=[*facts, word("split.no", number), word("split.count", count)])


CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"


def model(
    size: int,
    *,
    vocabulary: int = 1000,
    other: dict[int, str] | None = None,
    kind: str = "gpt2",
    bos: int = 1,
    eos: int = 2,
    add_bos: bool = False,
    template: str | None = CHATML,
    arch: str = "llama",
) -> bytes:
    """A model of about `size` bytes with a vocabulary in which the texts in `other` are different."""
    tokens = [(other or {}).get(i, f"token {i}") for i in range(vocabulary)]
    pairs = [
        pair("general.architecture", STRING, text(arch)),
        word("general.file_type", 7),
        pair("tokenizer.ggml.model", STRING, text(kind)),
        words("tokenizer.ggml.tokens", tokens),
        words("tokenizer.ggml.merges", [f"a{i} b" for i in range(50)]),
        word("tokenizer.ggml.bos_token_id", bos),
        word("tokenizer.ggml.eos_token_id", eos),
        pair("tokenizer.ggml.add_bos_token", 7, struct.pack("<?", add_bos)),
    ]
    if template is not None:
        pairs.append(pair("tokenizer.chat_template", STRING, text(template)))
    return gguf(pairs=pairs, tensors=[tensor("w", (size,), 24, 0)], data=size)


SMALL = gguf()
BIG = gguf(tensors=[tensor("output.weight", (3_000_000,), 24, 0)], data=3_000_000)


def card(content: bytes, *sources: ModelSource | RepositorySource, **changes: object) -> Card:
    facts: dict[str, object] = {
        "name": "tiny:1m",
        "title": "Tiny",
        "file": "tiny.gguf",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "sources": sources or (HuggingFaceSource("org/tiny", "tiny.gguf"),),
        "aliases": ("tiny",),
    }
    return Card(**(facts | changes))  # type: ignore[arg-type]


def card_toml(found: Card) -> str:
    """The card as its file; JSON strings, numbers and lists are TOML too."""
    lines = [
        f"{key} = {json.dumps(value)}"
        for key in ("name", "title", "file", "size", "sha256", "quantization")
        if (value := getattr(found, key)) is not None
    ]
    lines.append(f"aliases = {json.dumps(list(found.aliases))}")
    for source in found.sources:
        lines += ["[[sources]]", f'kind = "{"wheel" if isinstance(source, WheelSource) else "huggingface"}"']
        lines += [
            f"{key} = {json.dumps(value)}" for key in source.__slots__ if (value := getattr(source, key))
        ]
    return "\n".join(lines) + "\n"


def wheel(folder: Path, content: bytes, *, member: str = "tiny_pack/tiny.gguf") -> WheelSource:
    """Write tiny_pack-1.0 with the member into `folder`, so that `--find-links` finds it."""
    info = "tiny_pack-1.0.dist-info"
    files = {
        "tiny_pack/__init__.py": b"raise SystemExit('the package was imported')\n",
        member: content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-pack\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "tiny_pack-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in files.items():
            archive.writestr(name, raw)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in files))
    return WheelSource("tiny-pack", "1.0", "tiny_pack/tiny.gguf")


def kept(store: Path) -> list[str]:
    """What lies in the store, by path, without the empty lock files."""
    files = [path for path in store.rglob("*") if path.is_file()]
    assert all(path.stat().st_size == 0 for path in files if path.suffix == ".lock")
    return sorted(path.relative_to(store).as_posix() for path in files if path.suffix != ".lock")


_CHILD = """
import sys
from pathlib import Path
from edgespec import hub
from edgespec.hub import catalogue
catalogue.folder = lambda: Path(sys.argv[1])
print(hub.resolve(sys.argv[2], notify=lambda line: print(line, file=sys.stderr)))
"""


def start(cards: Path, typed: str = "tiny") -> subprocess.Popen[str]:
    """Resolve in a process of its own: the path on stdout, notices on stderr."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", _CHILD, str(cards), typed], **pipes)  # type: ignore[call-overload]
