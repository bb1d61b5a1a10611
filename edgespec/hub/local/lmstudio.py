"""LM Studio's models: `publisher/model/file.gguf`, publisher and model as on Hugging Face."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from edgespec.hub.local import own
from edgespec.hub.local.found import Place


def places() -> tuple[Place, ...]:
    """Where its settings say, else where it is by itself; older versions kept their own folder."""
    try:
        user = Path.home()
    except RuntimeError:
        return ()
    home = user / ".lmstudio"
    with suppress(OSError, UnicodeDecodeError):
        if pointed := (user / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip():
            home = Path(pointed)
    folders = [_chosen(home / "settings.json") or home / "models", user / ".cache/lm-studio/models"]
    return tuple(Place("lmstudio", folder) for folder in dict.fromkeys(folders))


def _chosen(settings: Path) -> Path | None:
    with suppress(OSError, ValueError, AttributeError):
        folder = json.loads(settings.read_text(encoding="utf-8")).get("downloadsFolder")
        if isinstance(folder, str) and folder:
            return Path(folder)
    return None


scan = own.scan
