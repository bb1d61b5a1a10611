"""Slash commands, and settings by name."""

from __future__ import annotations

import json
import os

import pytest
from app_kit import ask, conversation, drawn, say, tell, texts, until
from edgespec_tui.choices import Choices, changed
from edgespec_tui.commands import COMMANDS, parse
from edgespec_tui.slash import Slash
from edgespec_tui.widgets.message import ErrorMessage

from edgespec.errors import UsageError


def test_every_command_has_something_to_do():
    assert all(hasattr(Slash, f"_{command.name}") for command in COMMANDS)


def test_what_is_a_command_and_what_is_a_message():
    assert parse("hello /help") is None
    assert parse(" /help") is None
    assert parse("/usr/bin/env") is None
    assert parse("/system Be brief.\nAlways.") == (COMMANDS[4], "Be brief.\nAlways.")
    with pytest.raises(UsageError, match="unknown command /nope"):
        parse("/nope")
    with pytest.raises(UsageError, match="/read FILE"):
        parse("/read")


def test_settings_by_name():
    choices = changed(Choices(), "temperature", "0.5")
    assert changed(choices, "max_tokens", "-1").max_tokens is None
    assert choices.sampling.temperature == 0.5
    for name, value in (("temperature", "hot"), ("top_p", "2"), ("theme", "pink"), ("n_ctx", "-4")):
        with pytest.raises(UsageError):
            changed(choices, name, value)
    assert changed(choices, "temp", "0").sampling.temperature == 0
    assert changed(choices, "ctx-size", "512").n_ctx == changed(choices, "--n-ctx", "512").n_ctx == 512
    assert changed(choices, "top-k", "7").sampling.top_k == 7
    with pytest.raises(UsageError, match="there is no setting colour"):
        changed(choices, "colour", "red")


def test_commands_that_look_and_set():
    async def story(app, pilot):
        await say(pilot, "/stats")
        assert "no answer yet" in texts(app)[-1]
        await ask(pilot, "Go")
        await say(pilot, "/stats")
        assert "mean acceptance length" in texts(app)[-1]
        await say(pilot, "/set")
        assert "temperature" in texts(app)[-1]
        await say(pilot, "/set top_k 7")
        assert app.talk.choices.sampling.top_k == 7
        await say(pilot, "/system Be brief.")
        assert app.talk.conversation.system == "Be brief."
        await say(pilot, "/system -")
        assert app.talk.conversation.system is None
        await say(pilot, "/model")
        assert "smollm2" in texts(app)[-1].lower()
        await say(pilot, "/nonsense")
        await until(pilot, lambda: app.transcript.query(ErrorMessage))
        await say(pilot, "/spec off")
        await until(pilot, lambda: not app.engine.busy)
        assert app.engine.model.status.reason == "switched off"
        await ask(pilot, "again")
        assert app.talk.turns[-1].content == "An answer."
        await say(pilot, "/help")
        await until(pilot, lambda: "Shift+Enter" in drawn(app))
        await pilot.press("escape")
        await say(pilot, "/clear")
        await until(pilot, lambda: app.talk.turns == ())
        await say(pilot, "/quit")
        await pilot.pause(0.2)
        assert app.return_value == 0

    tell(story, size=(100, 40))


def test_the_system_prompt_is_told_to_the_model():
    async def story(app, pilot):
        await ask(pilot, "Go")
        model = app.engine.model
        said = model.detokenize(model._target.backend.tokens[: model.stats.prompt_tokens])
        assert "system\nYou count." in said

    tell(story, choices=Choices(system="You count."))


def test_conversations_are_written_and_read(tmp_path):
    async def story(app, pilot):
        await say(pilot, "/save talk.json")
        assert json.loads((tmp_path / "talk.json").read_text("utf-8"))["turns"][0]["content"] == "Question 0?"
        await say(pilot, "/save talk.json")
        assert "exists already" in texts(app)[-1]
        await say(pilot, "/export")
        assert "It is *red* light." in (tmp_path / "question-0.md").read_text("utf-8")
        await say(pilot, "/clear")
        await say(pilot, "/load talk.json")
        await until(pilot, lambda: len(app.transcript.views) == 2)
        assert "It is red light." in texts(app)[1]
        await say(pilot, "/load missing.json")
        await until(pilot, lambda: app.transcript.query(ErrorMessage))
        await say(pilot, "/read talk.json")
        await until(pilot, lambda: app.composer.attachments)
        await say(pilot, '/export "my talk.md"')
        await say(pilot, '/read "my talk.md"')
        await until(pilot, lambda: app.composer.attachments[-1].name == "my talk.md")

    tell(story, conversation=conversation(2))


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
def test_a_pipe_is_not_loaded_as_a_conversation(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")

    async def story(app, pilot):
        await say(pilot, "/load pipe.json")
        assert "pipe.json is not a file" in texts(app)[-1]

    tell(story)


def test_commands_that_are_typed_in_one_go_are_what_was_typed():
    async def story(app, pilot):
        for key in (*"/set seed 7", "enter"):
            app.simulate_key(key)
        await until(pilot, lambda: app.talk.choices.seed == 7)
        for key in (*"/sy", "tab", *"Brief"):
            app.simulate_key(key)
        await until(pilot, lambda: app.composer.text == "/system Brief")

    tell(story)


def test_commands_are_completed():
    async def story(app, pilot):
        await pilot.press("/", "s", "y")
        await pilot.press("tab")
        assert app.composer.text == "/system "
        await pilot.press("escape")

    tell(story)


def test_the_command_palette_has_the_commands():
    async def story(app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press(*"theme: light")
        await pilot.pause(0.5)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: app.theme == "light")

    tell(story)
