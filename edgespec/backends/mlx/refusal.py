"""Whether MLX can load a file or folder, from headers only."""

from __future__ import annotations

from pathlib import Path

from edgespec.errors import EdgespecError


def refuses(path: Path) -> str | None:
    """None where it looks loadable, else why not in one line."""
    if path.is_dir():
        return _folder(path)
    from edgespec.convert.mlx_form import obstacle
    from edgespec.convert.weights import Weights

    try:
        return obstacle(Weights(path))
    except EdgespecError as error:
        return str(error)


def _folder(path: Path) -> str | None:
    if not (path / "config.json").is_file():
        return f"{path.name} is no model folder of mlx-lm: it has no config.json"
    if next(path.glob("model*.safetensors"), None) is None:
        return f"{path.name} is no model folder of mlx-lm: it has no model*.safetensors"
    return None
