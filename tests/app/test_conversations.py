"""Conversations kept: found, opened, renamed, deleted, resumed."""

from __future__ import annotations

import pytest
from app_kit import ask, conversation, drawn, say, tell, texts, until
from edgespec_tui.screens.conversations import ConversationsScreen
from textual.widgets import Input, OptionList

from edgespec.history import History


@pytest.fixture
def kept():
    """Three conversations in the history; their numbers."""
    with History() as history:
        return [
            history.add(conversation(2, f"All about {what} [/].", title=title))
            for what, title in (("tides", "Moon [/]"), ("apples", None), ("rivers", None))
        ]


def listed(app):
    options = app.screen.query_one("#list", OptionList)
    return [str(options.get_option_at_index(i).prompt) for i in range(options.option_count)]


async def opened(app, pilot):
    await pilot.press("ctrl+o")
    await until(pilot, lambda: isinstance(app.screen, ConversationsScreen) and listed(app))


def test_conversations_are_searched_and_opened(kept):
    async def story(app, pilot):
        await opened(app, pilot)
        assert len(listed(app)) == 3
        assert any("Moon [/]" in line for line in listed(app))
        await pilot.press(*"tides")
        await until(pilot, lambda: len(listed(app)) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1 and app.transcript.views)
        assert "All about tides [/]." in texts(app)[1]
        await until(pilot, lambda: "Moon [/]" in drawn(app).split("\n")[0])
        assert "24 tokens" in texts(app)[1]
        await until(pilot, lambda: app.engine.model.context_used > 0)
        await ask(pilot, "more")
        assert len(app.talk.turns) == 4

    app = tell(story, ["x", "Fresh."])
    with History() as history:
        assert [turn.content for turn in history.load(kept[0]).turns][-2:] == ["more", "Fresh."]
    assert app.talk.recorder.id == kept[0]


def test_a_conversation_is_renamed_and_deleted(kept):
    async def story(app, pilot):
        await opened(app, pilot)
        await pilot.press("down", "f2")
        await until(pilot, lambda: app.focused is app.screen.query_one("#rename", Input))
        app.screen.query_one("#rename", Input).value = "New [name]"
        await pilot.press("enter")
        await until(pilot, lambda: any("New [name]" in line for line in listed(app)))
        await pilot.press("ctrl+x")
        assert len(listed(app)) == 3
        await pilot.press("ctrl+x")
        await until(pilot, lambda: len(listed(app)) == 2)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)

    tell(story)


def test_what_is_said_is_kept_and_a_new_conversation_begins_empty():
    async def story(app, pilot):
        await ask(pilot, "one [/]")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.talk.turns == () and not app.transcript.views)
        assert "◆ edgespec" in texts(app)[0]
        await ask(pilot, "two")
        await say(pilot, "/title Second")

    tell(story)
    with History() as history:
        assert [entry.title for entry in history.list()] == ["Second", "one [/]"]
        figures = history.load(history.list()[1].id).turns[1].figures
    assert figures.tokens > 0


def test_leaving_in_the_middle_of_an_answer_keeps_it():
    from app_kit import Gate

    async def story(app, pilot):
        await say(pilot, "Go")
        await until(pilot, lambda: "word 5" in texts(app)[-1])
        await pilot.press("ctrl+q")

    tell(story, [" ".join(f"word {i}" for i in range(200))], seconds=Gate(30), spec="off")
    with History() as history:
        last = history.load(history.latest()).turns[-1]
    assert last.state == "stopped"
    assert last.content.startswith("word 0")


def test_opening_another_conversation_while_an_answer_runs_mixes_nothing(kept):
    from app_kit import Gate

    gate = Gate(30)

    async def story(app, pilot):
        await say(pilot, "Go")
        await until(pilot, lambda: "word 5" in texts(app)[-1])
        await opened(app, pilot)
        await pilot.press(*"tides")
        await until(pilot, lambda: len(listed(app)) == 1)
        gate.open.set()
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1 and len(app.transcript.views) == 2)
        await until(pilot, lambda: not app.engine.busy)
        assert len(app.talk.turns) == 2
        assert "word" not in texts(app)[1]

    tell(story, [" ".join(f"word {i}" for i in range(200))], seconds=gate, spec="off")
    with History() as history:
        contents = [turn.content for entry in history.list() for turn in history.load(entry.id).turns]
    assert any(content.startswith("word 0 word 1") for content in contents)


def test_a_chat_without_history_leaves_nothing():
    async def story(app, pilot):
        await ask(pilot, "secret")

    tell(story, history=False)
    with History() as history:
        assert history.list() == []
