"""Ollama's store: `manifests/HOST/NAMESPACE/MODEL/TAG` name the layers, `blobs/sha256-...` hold them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from edgespec.hub.local.found import Found, Place
from edgespec.hub.quantization import quantization_of

_MODEL = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
_HUGGING_FACE = ("hf.co", "huggingface.co")
_MOST = 1 << 20  # bytes of a manifest


def places() -> tuple[Place, ...]:
    """`OLLAMA_MODELS`, else the user's and, on Linux, the service's."""
    if chosen := os.environ.get("OLLAMA_MODELS"):
        return (Place("ollama", Path(chosen)),)
    folders = []
    with suppress(RuntimeError):
        folders.append(Path.home() / ".ollama/models")
    if sys.platform == "linux":
        folders.append(Path("/usr/share/ollama/.ollama/models"))
    return tuple(Place("ollama", folder) for folder in folders)


def scan(place: Place) -> Iterator[Found]:
    """The models whose weights are one GGUF layer."""
    manifests = place.root / "manifests"
    try:
        paths = sorted(path for path in manifests.glob("*/*/*/*") if not path.name.startswith("."))
    except OSError:
        return
    for path in paths:
        digest = _weights(path)
        if digest is None:
            continue
        host, namespace, model, tag = path.relative_to(manifests).parts
        yield Found(
            name=_name(host, namespace, model, tag),
            files=(place.root / "blobs" / f"sha256-{digest}",),
            place=place,
            quantization=quantization_of(tag),
            repo=f"{namespace}/{model}" if host in _HUGGING_FACE else None,
            sha256=digest,
        )


def _weights(manifest: Path) -> str | None:
    """The digest of the layer with the weights."""
    try:
        if manifest.stat().st_size > _MOST:
            return None
        layers = json.loads(manifest.read_bytes())["layers"]
        digest = next(layer["digest"] for layer in layers if layer["mediaType"] == _MODEL)
        match = _DIGEST.fullmatch(digest)
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return None
    return match[1] if match else None


def _name(host: str, namespace: str, model: str, tag: str) -> str:
    """As Ollama shows it."""
    if host in _HUGGING_FACE:
        return f"{namespace}/{model}:{tag}"
    if host != "registry.ollama.ai":
        return f"{host}/{namespace}/{model}:{tag}"
    return f"{model}:{tag}" if namespace == "library" else f"{namespace}/{model}:{tag}"
