"""The main states as pictures. EDGESPEC_UPDATE_SNAPSHOTS=1 writes them anew: look at what changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from app_kit import Gate, conversation, say, tell, texts, until
from edgespec_tui.choices import Choices
from edgespec_tui.engine import Activity
from edgespec_tui.widgets.panel import Reading

FOLDER = Path(__file__).parent / "snapshots"
ANSWER = """## Rayleigh scattering

Short waves scatter **much more** than long ones, by `1/λ⁴`:

- *blue* reaches us from everywhere
- red goes straight on

| colour | nm |
|---|---|
| blue | 450 |

```python
def scattering(nm: float) -> float:
    return (650 / nm) ** 4  # relative to red
```
"""
READING = Reading(
    rate=41.7,
    acceptance=0.75,
    length=2.4,
    speedup=1.83,
    on=True,
    proposer="suffix",
    depth=5,
    reason="drafted in 9 of 12 rounds, 8.1 tokens ahead of plain",
    numerics="exact",
    context=1234,
    n_ctx=8192,
    memory=1_450_000_000,
)


def picture(name: str, story, **setup) -> None:
    """Compare the screen at the end of the story with the picture of this name."""
    out = []

    async def told(app, pilot):
        await story(app, pilot)
        await pilot.pause(0.3)
        app.live.pause()
        app.clear_notifications()
        app.status.turn = 0
        app.status.show(Activity(app.engine.activity.phase), 41.7, 12)
        app.top.show("Model", "Why is the sky blue?", "● suffix ×5", 1234, 8192)
        for rate, acceptance in ((20, 0.1), (35, 0.6), (42, 0.8)) * 4:
            app.panel.sample(rate, acceptance)
        app.panel.show(READING)
        app.screen.set_focus(None)
        await pilot.pause()
        out.append(app.export_screenshot(title="edgespec", simplify=True))

    tell(told, **setup)
    path = FOLDER / f"{name}.svg"
    if os.environ.get("EDGESPEC_UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(out[0], "utf-8")
    drawn = path.with_suffix(".new.svg")
    if out[0] != path.read_text("utf-8"):
        drawn.write_text(out[0], "utf-8")
        pytest.fail(f"the screen is not as in {path}: compare with {drawn}")
    drawn.unlink(missing_ok=True)


async def nothing(app, pilot):
    pass


async def streaming(app, pilot):
    await say(pilot, "Why is the sky blue?")
    await until(pilot, lambda: "red goes" in texts(app)[-1])


async def provenance(app, pilot):
    await pilot.press("f3")
    await until(pilot, lambda: app.transcript.last_answer.provenance)


async def panel(app, pilot):
    await pilot.press("f2")


async def settings(app, pilot):
    await pilot.press("f4")
    await until(pilot, lambda: len(app.screen_stack) == 2)


TALK = conversation(2, ANSWER)


@pytest.mark.parametrize("theme", ["dark", "light", "plain"])
def test_empty(theme):
    picture(f"empty-{theme}", nothing, choices=Choices(theme=theme), first_run=True)


@pytest.mark.parametrize("size", [(100, 32), (60, 20)])
def test_streaming(size):
    gate = Gate(62)
    name = f"streaming-{size[0]}x{size[1]}"
    picture(name, streaming, answers=[ANSWER], seconds=gate, spec="off", size=size)


def test_provenance():
    picture("provenance", provenance, conversation=TALK)


@pytest.mark.parametrize(("theme", "size"), [("dark", (110, 34)), ("light", (110, 34)), ("dark", (60, 20))])
def test_panel(theme, size):
    name = f"panel-{theme}-{size[0]}x{size[1]}"
    picture(name, panel, conversation=TALK, size=size, choices=Choices(theme=theme))


@pytest.mark.parametrize("size", [(100, 44), (60, 20)])
def test_settings(size):
    picture(f"settings-{size[0]}x{size[1]}", settings, size=size)
