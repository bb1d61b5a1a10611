"""Models laid out on the disk as other programs do it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def hugging_face(
    cache: Path, repo: str, files: dict[str, bytes], *, revision: str = COMMIT, main: bool = True
) -> Path:
    """As huggingface_hub does: contents in blobs, named by their sums, links in a snapshot. Returns that."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    snapshot = folder / "snapshots" / revision
    for name, content in files.items():
        blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        link = snapshot / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path(*[".."] * (2 + name.count("/"))) / "blobs" / blob.name)
        assert link.read_bytes() == content
    if main:
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs/main").write_text(revision)
    return snapshot


def ollama(root: Path, name: str, content: bytes) -> Path:
    """As Ollama does: a manifest `host/namespace/model/tag` and the blob it names. Returns the blob."""
    digest = hashlib.sha256(content).hexdigest()
    blob = root / "blobs" / f"sha256-{digest}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    manifest = root / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    kind = "application/vnd.ollama.image."
    layers = [
        {"mediaType": f"{kind}model", "digest": f"sha256:{digest}", "size": len(content)},
        {"mediaType": f"{kind}template", "digest": f"sha256:{'1' * 64}", "size": 10},
        {"mediaType": f"{kind}license", "digest": f"sha256:{'2' * 64}", "size": 10},
    ]
    manifest.write_text(
        json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
                "config": {
                    "mediaType": "application/vnd.docker.container.image.v1+json",
                    "digest": f"sha256:{'3' * 64}",
                    "size": 487,
                },
                "layers": layers,
            }
        )
    )
    return blob


def lm_studio(models: Path, inside: str, content: bytes) -> Path:
    """As LM Studio does: `publisher/model/file.gguf`."""
    path = models / inside
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
