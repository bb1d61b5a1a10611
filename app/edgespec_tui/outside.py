"""Programs outside: the clipboard and the editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from edgespec.errors import EdgespecError

_MOST_OSC = 74_000
"""Bytes that terminals take through OSC 52."""
_TOOLS = (
    ("pbcopy",),
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("xsel", "--clipboard", "--input"),
    ("clip.exe",),
)


class EditorError(EdgespecError):
    """The editor could not be used."""


def copy_locally(text: str) -> bool:
    """Hand the text to the desktop's clipboard; False where there is no desktop or no tool for it."""
    desktop = (
        sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    for tool in _TOOLS if desktop else ():
        if shutil.which(tool[0]):
            try:
                done = subprocess.run(tool, input=text.encode(), capture_output=True, timeout=2, check=False)
            except (OSError, subprocess.TimeoutExpired):
                continue
            if done.returncode == 0:
                return True
    return False


def fits_terminal(text: str) -> bool:
    """Will a terminal take it through OSC 52?"""
    return len(text.encode()) <= _MOST_OSC


def edited(text: str) -> str:
    """The text after the user's editor has ended. Raises EditorError."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="edgespec-") as folder:
        path = Path(folder, "message.md")
        path.write_text(text, "utf-8")
        try:
            code = subprocess.run([*shlex.split(command), str(path)], check=False).returncode
            if code:
                raise EditorError(f"{command} ended with code {code}: nothing is changed")
            return path.read_text("utf-8").removesuffix("\n")
        except (OSError, ValueError) as error:
            raise EditorError(f"{command}: {error}; set EDITOR to the editor you use") from error
