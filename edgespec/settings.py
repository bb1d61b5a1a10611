"""What the user prefers, in a TOML file: for all models at its top, for one model in its section.

    theme = "dark"
    temp = 0.6

    [models."smollm2:135m"]
    system = "Answer in one sentence."

Keys are the long options of `edgespec run`. This module knows neither the options nor their types.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edgespec.errors import EdgespecError

Value = str | int | float | bool | list[Any]
_MODELS = "models"


class SettingsError(EdgespecError):
    """The settings cannot be written."""


def location() -> Path:
    """`config.toml` in `EDGESPEC_CONFIG`, or in the user's folder for settings."""
    import platformdirs

    root = os.environ.get("EDGESPEC_CONFIG") or platformdirs.user_config_dir("edgespec", appauthor=False)
    return Path(root) / "config.toml"


def _ignore(_: str) -> None:
    pass


class SettingsFile:
    """The file as it is on the disk when a method is called.

    A file that cannot be read counts as empty, which `notify` is told once in one line; it is never
    overwritten. `model` is what the user calls a model, a path or a name; None means all models.
    """

    def __init__(self, path: Path | None = None, notify: Callable[[str], None] = _ignore) -> None:
        self.path = path or location()
        self._notify = notify
        self._told = ""

    def values(self, model: str | None = None) -> dict[str, Any]:
        """What is set for a model: its own section over what is set for all."""
        content = self._read()
        common = {key: value for key, value in content.items() if not isinstance(value, dict)}
        return common | self.own(model, content)

    def own(self, model: str | None, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What is set in the section of this model alone."""
        sections = (self._read() if content is None else content).get(_MODELS)
        if model is None or not isinstance(sections, dict):
            return {}
        section = sections.get(_section(model, sections))
        return dict(section) if isinstance(section, dict) else {}

    def change(self, changes: Mapping[str, Value | None], model: str | None = None) -> None:
        """Set values, for all models or for one; None takes one out. Everything else in the file stays,
        comments too. Raises SettingsError.
        """
        import tomlkit

        try:
            text = self.path.read_text("utf-8") if self.path.exists() else ""
            document = tomlkit.parse(text)
            sections: Any = (
                document.setdefault(_MODELS, tomlkit.table(is_super_table=True)) if model is not None else {}
            )
            if not isinstance(sections, dict):
                raise ValueError("models is no table")
        except (OSError, ValueError) as error:
            raise SettingsError(f"{self._unreadable(error)}: mend it, or move it away") from error
        table: Any = document
        if model is not None:
            name = _section(model, sections)
            if name not in sections:
                sections[name] = tomlkit.table()
            table = sections[name]
        for key, value in changes.items():
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
        self._write(tomlkit.dumps(document))

    def _read(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            notice = f"{self._unreadable(error)}: defaults are used until it is mended"
            if notice != self._told:
                self._notify(notice)
            self._told = notice
            return {}

    def _unreadable(self, error: Exception) -> str:
        what = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        return f"the settings {self.path} cannot be read ({what})"

    def _write(self, text: str) -> None:
        """The whole new file or the whole old one; a link stays a link."""
        path = Path(os.path.realpath(self.path))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
            try:
                with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                with contextlib.suppress(OSError):
                    Path(name).chmod(path.stat().st_mode & 0o777)
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise SettingsError(f"cannot write the settings {path}: {error.strerror or error}") from error


def names(model: str) -> tuple[str, ...]:
    """What the section of a model may be called, the best name first: that of its card, or of its file."""
    from edgespec import hub

    wanted, file = model.strip().casefold(), Path(model).name
    with contextlib.suppress(EdgespecError):  # a damaged card is told where a model is looked for
        for card in hub.cards():
            if file == card.file or wanted in {name.casefold() for name in card.names}:
                return (*card.names, card.file or card.name)
    return tuple(dict.fromkeys((file if file.lower().endswith(".gguf") else model, model, Path(file).stem)))


def _section(model: str, sections: Mapping[str, Any]) -> str:
    """The section that there is for the model, or the one to make."""
    known = {name.casefold(): name for name in sections}
    found = names(model)
    return next((known[name.casefold()] for name in found if name.casefold() in known), found[0])
