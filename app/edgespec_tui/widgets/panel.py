"""Speculation as it happens."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Sparkline, Static

from edgespec_tui.text import short, visible

_SAMPLES = 66


@dataclass(frozen=True, slots=True)
class Reading:
    """What there is to show now. None is not known. `acceptance`: of the tokens verified lately."""

    rate: float | None = None
    acceptance: float | None = None
    length: float | None = None
    speedup: float | None = None
    on: bool = False
    proposer: str = "none"
    depth: int = 0
    reason: str = ""
    numerics: str = ""
    context: int = 0
    n_ctx: int = 0
    memory: int | None = None
    device: str = ""


class Panel(VerticalScroll, can_focus=False):
    """Rates as curves, and what the controller does and why."""

    DEFAULT_CSS = """
    Panel {
        width: 38; padding: 1 2; background: $surface; display: none;
        scrollbar-size-vertical: 1;
    }
    Panel:ansi { border-left: solid ansi_bright_black; }
    Panel.-shown { display: block; }
    Panel > .title { text-style: bold; color: $text-primary; }
    Panel > .fact { height: auto; margin-top: 1; }
    Panel > Sparkline { height: 2; margin-top: 0; }
    Panel > #rate-curve > .sparkline--max-color { color: $primary; }
    Panel > #rate-curve > .sparkline--min-color { color: $primary 40%; }
    Panel > #acceptance-curve > .sparkline--max-color { color: $success; }
    Panel > #acceptance-curve > .sparkline--min-color { color: $success 40%; }
    """

    def __init__(self) -> None:
        super().__init__(id="panel")
        self._shown: tuple[Reading, int, float] | None = None
        self._rates: deque[float] = deque(maxlen=_SAMPLES)
        self._acceptances: deque[float] = deque(maxlen=_SAMPLES)

    def compose(self) -> ComposeResult:
        yield Static("Speculation", classes="title", markup=False)
        yield Static(id="rate", classes="fact", markup=False)
        yield Sparkline([], id="rate-curve")
        yield Static(id="acceptance", classes="fact", markup=False)
        yield Sparkline([], id="acceptance-curve")
        yield Static(id="facts", classes="fact", markup=False)
        yield Static(id="controller", classes="fact", markup=False)
        yield Static(id="machine", classes="fact", markup=False)

    def sample(self, rate: float, acceptance: float | None) -> None:
        """One more point of the curves."""
        self._rates.append(rate)
        self._acceptances.append(acceptance or 0.0)

    def clear(self) -> None:
        self._rates.clear()
        self._acceptances.clear()

    def show(self, now: Reading) -> None:
        """Draw, if anybody looks."""
        if not self.display or (now, len(self._rates), sum(self._rates)) == self._shown:
            return
        self._shown = (now, len(self._rates), sum(self._rates))
        self._put("rate", _fact("tok/s", _number(now.rate)))
        self._put("acceptance", _fact("accepted / drafted", _percent(now.acceptance)))
        self.query_one("#rate-curve", Sparkline).data = _padded(self._rates)
        self.query_one("#acceptance-curve", Sparkline).data = _padded(self._acceptances)
        speedup = "–" if now.speedup is None else f"{now.speedup:.2f}×"
        length = "–" if not now.length else f"{now.length:.2f}"
        self._put("facts", _lines(("tokens a round", length), ("speed / plain, measured", speedup)))
        self._put("controller", _controller(now))
        self._put("machine", _machine(now))

    def _put(self, id: str, content: Content) -> None:
        self.query_one(f"#{id}", Static).update(content)


def _controller(now: Reading) -> Content:
    state = Content("● on").stylize("$text-success") if now.on else Content("○ off").stylize("$text-warning")
    what = f"  {now.proposer}, depth {now.depth}" if now.on else "  plain decoding"
    return Content.assemble(
        state,
        visible(what),
        "\n",
        Content(visible(now.reason)).stylize("$dim"),
    )


def _machine(now: Reading) -> Content:
    share = now.context / now.n_ctx if now.n_ctx else 0.0
    used = f"{short(now.context)} of {short(now.n_ctx)}, {share:.0%}"
    memory = "–" if now.memory is None else f"{now.memory / 1e9:.2f} GB"
    rows = [("context", used), ("", _bar(share)), ("memory", memory)]
    if now.numerics:
        rows.append(("numerics", now.numerics))
    return _lines(*rows)


def _padded(samples: deque[float]) -> list[float]:
    """As many points as there can be, so that a curve runs in from the right."""
    return [0.0] * (_SAMPLES - len(samples)) + list(samples)


def _bar(share: float, width: int = 33) -> str:
    filled = min(width, round(width * share))
    return "━" * filled + "╌" * (width - filled)


def _lines(*rows: tuple[str, str]) -> Content:
    return Content("\n").join([_fact(label, value) for label, value in rows])


def _fact(label: str, value: str) -> Content:
    gap = " " * max(1, 33 - len(label) - len(value)) if label else ""
    return Content.assemble(Content(label).stylize("$dim"), gap, Content(value).stylize("bold"))


def _number(value: float | None) -> str:
    return "–" if not value else f"{value:.1f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
