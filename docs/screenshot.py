"""Writes docs/app.svg: the app with the small default model, an answer and the panel.

make screenshot
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from edgespec_tui.app import ChatApp
from edgespec_tui.choices import Choices, Start
from edgespec_tui.engine import Loader

import edgespec
from edgespec import SamplingSettings

QUESTION = "Write a Python class Stack with push and pop, and a class Queue."


async def picture() -> str:
    def loader(*_: object) -> Loader:
        return lambda progress: edgespec.load(progress=progress, backend="llamacpp", calibrate="first")

    choices = Choices(sampling=SamplingSettings(temperature=0.0), max_tokens=240)
    app = ChatApp(Start(loader, choices=choices, history=False))
    async with app.run_test(size=(112, 38), notifications=False) as pilot:
        await pilot.press("f2")
        while app.engine.busy or app.engine.model is None:
            await pilot.pause(0.1)
        app.composer.load(QUESTION)
        await pilot.press("enter")
        while app.talk.answering or not app.talk.turns:
            await pilot.pause(0.1)
        await pilot.pause(0.5)
        svg = app.export_screenshot(title="edgespec run")
    app.close()
    return svg


if __name__ == "__main__":
    os.environ["EDGESPEC_DATA"] = tempfile.mkdtemp(prefix="edgespec-")
    out = Path(__file__).with_name("app.svg")
    out.write_text(asyncio.run(picture()), "utf-8")
    print(out)
