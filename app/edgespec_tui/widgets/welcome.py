"""An empty conversation."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

KEYS = (
    ("Enter", "send; Ctrl+J begins a line"),
    ("Esc", "stop an answer"),
    ("F2", "speculation, live"),
    ("F3", "who proposed which words"),
    ("F1", "all keys and commands"),
)


class Welcome(Static):
    """What this is, and the five keys that matter."""

    DEFAULT_CSS = """
    Welcome { height: auto; width: 1fr; padding: 1 1; color: $dim; }
    """

    def __init__(self, model: str, *, first_run: bool) -> None:
        super().__init__(_text(model, first_run), markup=False)


def _text(model: str, first_run: bool) -> Content:
    lines = [
        Content.assemble(Content("◆ edgespec").stylize("bold $primary"), f"  {model}"),
        Content("A local model, faster, saying exactly what it would have said."),
    ]
    keys = KEYS if first_run else KEYS[-1:]
    lines += [Content(""), *(_key(key, what) for key, what in keys)]
    return Content("\n").join(lines)


def _key(key: str, what: str) -> Content:
    return Content.assemble(Content(f"{key:>6}").stylize("bold $foreground"), f"  {what}")
