"""The prompt: lines, history, completion, attachments, pastes, the clipboard, and leaving."""

from __future__ import annotations

import asyncio
import time

from app_kit import Gate, ask, drawn, say, tell, texts, toasts, until
from edgespec_tui.attachments import Attachment, completions, joined, mentioned, parted
from edgespec_tui.widgets.message import ErrorMessage
from textual import events


def test_enter_sends_and_ctrl_j_and_shift_enter_make_lines():
    async def story(app, pilot):
        await pilot.press("a", "ctrl+j", "b", "shift+enter", "c")
        assert app.composer.text == "a\nb\nc"
        await pilot.press("enter")
        await until(pilot, lambda: not app.talk.answering and app.talk.turns)
        assert app.talk.turns[0].content == "a\nb\nc"

    tell(story)


def test_keys_that_arrive_together_act_in_their_order():
    keys = ("a", "b", "left", "X", "ctrl+j", "Y", "backspace", "Z", "home", "Q", "end", "R", "ctrl+u", "S")

    async def story(app, pilot):
        for key in keys[:-2]:
            app.simulate_key(key)
        app.post_message(events.Paste("one\ntwo"))
        await pilot.pause()
        assert app.composer.text == "aX\nQZbRone\ntwo"
        for key in keys[-2:]:
            app.simulate_key(key)
        await pilot.pause()
        assert app.composer.text == "aX\nQZbRone\nS"

    tell(story)


def test_earlier_messages_come_back_and_what_was_begun_is_kept():
    async def story(app, pilot):
        await ask(pilot, "first")
        await ask(pilot, "second")
        await pilot.press("up")
        assert app.composer.text == "second"
        await pilot.press("up")
        assert app.composer.text == "first"
        await pilot.press("down", "down")
        assert app.composer.text == ""

    tell(story)


def test_a_path_is_completed_and_the_file_goes_along(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "sky [b].txt").write_text("The sky is [green].\n", "utf-8")

    async def story(app, pilot):
        await pilot.press("@", "n", "o")
        assert app.composer.suggesting
        await pilot.press("tab")
        assert app.composer.text == "@notes/"
        await pilot.press("s", "tab")
        assert app.composer.text == '@"notes/sky [b].txt" '
        await pilot.press(*"what?", "enter")
        await until(pilot, lambda: app.talk.turns and not app.talk.answering)
        assert "The sky is [green]." in app.talk.turns[0].content
        shown = texts(app)[0]
        assert "▤ sky [b].txt" in shown
        assert "[green]" not in shown

    tell(story)


def test_an_attached_file_that_is_no_text_is_told_and_nothing_is_sent(tmp_path):
    (tmp_path / "data.bin").write_bytes(b"\xff\xfe\x00")

    async def story(app, pilot):
        await say(pilot, "see @data.bin")
        await until(pilot, lambda: app.transcript.query(ErrorMessage))
        assert "not UTF-8" in texts(app)[-1]
        assert app.composer.text == "see @data.bin"
        assert app.talk.turns == ()

    tell(story)


def test_what_is_attached_can_be_taken_apart_again(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n", "utf-8")
    files = mentioned("look at @a.txt and mail me@a.txt or @missing.txt")
    assert files == [Attachment("a.txt", "one\ntwo")]
    message = joined("look", files)
    assert parted(message) == ("look", files)
    assert completions("a") == ["a.txt"]


def test_pasted_lines_are_kept_and_not_sent():
    async def story(app, pilot):
        app.composer.prompt.post_message(events.Paste("one\r\ntwo\rthree [/]"))
        await pilot.pause()
        assert app.composer.text == "one\ntwo\nthree [/]"
        assert app.talk.turns == ()

    tell(story)


def test_a_megabyte_is_pasted_quickly_and_sent_whole():
    text = "x" * 99 + "\n"

    async def story(app, pilot):
        worst = 0.0

        async def watch():
            nonlocal worst
            while True:
                began = time.thread_time()
                await asyncio.sleep(0.005)
                worst = max(worst, time.thread_time() - began)

        watcher = asyncio.create_task(watch())
        began = time.thread_time()
        app.composer.prompt.post_message(events.Paste(text * 10_000))
        await until(pilot, lambda: app.composer.attachments)
        took = time.thread_time() - began
        watcher.cancel()
        assert took < 1.0
        assert worst < 0.5  # generous: the benchmark has the bound
        assert app.composer.attachments[0].text == (text * 10_000).removesuffix("\n")
        await until(pilot, lambda: "pasted-1.txt" in drawn(app))
        await pilot.press("backspace")
        assert app.composer.attachments == []

    tell(story)


def test_a_selection_is_copied_and_idle_ctrl_c_tells_how_to_quit():
    async def story(app, pilot):
        await pilot.press("ctrl+c")
        await until(pilot, lambda: any("Ctrl+Q quits" in toast for toast in toasts(app)))
        await pilot.press(*"hello", "f7", "ctrl+c")
        await until(pilot, lambda: app.clipboard == "hello")
        assert app.composer.text == "hello"

    tell(story)


def test_ctrl_c_copies_a_selection_instead_of_stopping():
    gate = Gate(30)

    async def story(app, pilot):
        await say(pilot, "Go")
        await until(pilot, lambda: "word 5" in texts(app)[-1])
        await pilot.press(*"abc", "f7", "ctrl+c")
        await until(pilot, lambda: app.clipboard == "abc")
        assert app.talk.answering
        await pilot.press("escape")
        await until(pilot, lambda: not app.talk.answering)

    tell(story, [" ".join(f"word {i}" for i in range(200))], seconds=gate, spec="off")


def test_messages_and_code_are_copied():
    async def story(app, pilot):
        await ask(pilot, "Go")
        await pilot.press("ctrl+up", "c")
        await until(pilot, lambda: app.clipboard == "Text\n\n```py\nx = 1\n```\n\nend")
        await pilot.press("b")
        await until(pilot, lambda: app.clipboard == "x = 1\n")
        await pilot.press("up", "c")
        await until(pilot, lambda: app.clipboard == "Go")
        await pilot.press("escape")
        assert app.focused is app.composer.prompt
        await say(pilot, "/copy")
        await until(pilot, lambda: app.clipboard.startswith("Text"))

    tell(story, ["Text\n\n```py\nx = 1\n```\n\nend"])


def test_ctrl_d_leaves_only_from_an_empty_prompt():
    async def story(app, pilot):
        await pilot.press("a", "left", "ctrl+d")
        assert app.composer.text == ""
        assert app.is_running
        await pilot.press("ctrl+d")
        await pilot.pause(0.2)
        assert app.return_value == 0

    tell(story)


def test_what_is_typed_while_an_answer_runs_is_not_lost():
    gate = Gate(20)

    async def story(app, pilot):
        await say(pilot, "Go")
        await until(pilot, lambda: "word 2" in texts(app)[-1])
        await pilot.press(*"next", "enter")
        await until(pilot, lambda: app.transcript.query(ErrorMessage))
        assert app.composer.text == "next"
        await pilot.press("escape")
        await until(pilot, lambda: not app.talk.answering)

    tell(story, [" ".join(f"word {i}" for i in range(200))], seconds=gate, spec="off")
