"""The line at the top, and the line above the prompt that says what is going on."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from edgespec_tui.engine import BACKGROUND, Activity
from edgespec_tui.text import one_line, short

_BAR = 16
_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_DOING = {
    "loading": "loading",
    "reading": "reading the prompt",
    "warming": "filling the cache",
    "measuring": "measuring this model on this device",
}


class TopBar(Horizontal):
    """Who is talking, and how."""

    DEFAULT_CSS = """
    TopBar { height: 1; padding: 0 1; background: $surface; }
    TopBar > #title { width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    TopBar > #state { width: auto; color: $dim; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._now: tuple[str, str, str, int, int] | None = None
        self._who = Static("", id="title", markup=False)
        self._how = Static("", id="state", markup=False)

    def compose(self) -> ComposeResult:
        yield self._who
        yield self._how

    def show(self, model: str, title: str, speculating: str, context: int, n_ctx: int) -> None:
        now = (model, title, speculating, context, n_ctx)
        if now == self._now:
            return
        self._now = now
        name = Content.assemble(
            Content("◆ ").stylize("$primary"),
            Content(one_line(model, 48) or "edgespec").stylize("bold"),
            Content(f"  {one_line(title, 60)}").stylize("$dim") if title else "",
        )
        used = f"{short(context)}/{short(n_ctx)}" if n_ctx else ""
        self._who.update(name)
        self._how.update(Content("  ".join(part for part in (speculating, used) if part)))


class StatusLine(Static):
    """Empty when nothing happens."""

    DEFAULT_CSS = """
    StatusLine {
        height: 1; padding: 0 2; color: $dim;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self) -> None:
        super().__init__("", id="status", markup=False)
        self.turn = 0
        self._shown = Content("")

    def show(self, activity: Activity, rate: float, tokens: int, hint: str = "") -> None:
        line = self._line(activity, rate, tokens, hint)
        if not line.is_same(self._shown):
            self._shown = line
            self.update(line)

    def _line(self, activity: Activity, rate: float, tokens: int, hint: str) -> Content:
        if activity.phase in ("idle", "empty"):
            return Content(one_line(hint))
        self.turn += 1
        spin = Content(_SPIN[self.turn // 2 % len(_SPIN)] + " ").stylize("$primary")
        if activity.phase == "answering":
            what = f"{tokens:,} tokens · {rate:.1f} tok/s" if rate else f"{tokens:,} tokens"
            return Content.assemble(spin, what, " · Esc stops")
        return Content.assemble(spin, *_step(activity))


def _step(activity: Activity) -> list[str | Content]:
    label = one_line(activity.label, 60)
    doing = _DOING.get(activity.phase, activity.phase)
    if activity.phase == "loading":
        doing, label = label or doing, ""
    parts: list[str | Content] = [doing]
    if 0 < activity.share < 1:
        filled = round(_BAR * min(activity.share, 1.0))
        bar = Content("━" * filled).stylize("$primary") + Content("╌" * (_BAR - filled))
        parts += [" ", bar, f" {activity.share:.0%}"]
    if label:
        parts += [" · ", label]
    end = "" if activity.phase in BACKGROUND else " · Esc cancels"
    return [*parts, end]
