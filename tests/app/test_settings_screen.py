"""The settings screen."""

from __future__ import annotations

from app_kit import GREEDY, ask, drawn, tell, until
from edgespec_tui.choices import Choices
from edgespec_tui.screens.settings import SettingsScreen
from textual.widgets import Input, Select, TextArea


async def opened(app, pilot):
    await pilot.press("f4")
    await until(pilot, lambda: isinstance(app.screen, SettingsScreen) and app.screen.query("#temperature"))


def test_settings_are_applied_and_kept():
    kept = []

    async def story(app, pilot):
        await opened(app, pilot)
        app.screen.query_one("#temperature", Input).value = "0.25"
        app.screen.query_one("#max_tokens", Input).value = "3"
        app.screen.query_one("#spec", Select).value = "off"
        app.screen.query_one("#theme", Select).value = "light"
        app.screen.query_one("#system", TextArea).text = "Be [brief]."
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(app.screen_stack) == 1 and not app.engine.busy)
        assert app.theme == "light"
        await ask(pilot, "Go")
        assert app.talk.turns[-1].content == "one two three"
        assert app.talk.conversation.system == "Be [brief]."
        assert app.engine.model.status.reason == "switched off"

    tell(
        story,
        ["one two three four five six"],
        choices=Choices(sampling=GREEDY),
        save=lambda model, choices: kept.append((model, choices)),
    )
    ((model, choices),) = kept
    assert model == "scripted"
    assert choices.sampling.temperature == 0.25
    assert choices.max_tokens == 3


def test_what_cannot_be_meant_is_told_and_nothing_changes():
    async def story(app, pilot):
        await opened(app, pilot)
        app.screen.query_one("#top_p", Input).value = "seven"
        await pilot.press("ctrl+s")
        assert isinstance(app.screen, SettingsScreen)
        await until(pilot, lambda: "top-p cannot be 'seven'" in drawn(app))
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.talk.choices.sampling.top_p == 0.95

    tell(story, size=(100, 40))


def test_another_context_size_loads_the_model_anew():
    loaded = []

    def loader(reference, choices, notify):
        from edgespec.api.demo import scripted

        def load(progress):
            loaded.append(choices.n_ctx)
            return scripted(["Fine."], n_ctx=choices.n_ctx or 1000)

        return load

    async def story(app, pilot):
        await ask(pilot, "Go")
        await opened(app, pilot)
        app.screen.query_one("#n_ctx", Input).value = "2000"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.engine.model.n_ctx == 2000 and not app.engine.busy)
        await ask(pilot, "again")
        assert app.talk.turns[-1].content == "Fine."

    tell(story, loader=loader)
    assert loaded == [0, 2000]
