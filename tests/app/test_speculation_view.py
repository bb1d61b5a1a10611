"""Who proposed which words, and the panel."""

from __future__ import annotations

from app_kit import Gate, ask, conversation, drawn, say, shown, tell, texts, until
from edgespec_tui.figures import answer_line, speedup
from edgespec_tui.provenance import LOOKS, Stretch, painted, shares, stretches
from edgespec_tui.widgets.panel import Panel, Reading

REPEATING = "the cat sat on the mat and " * 12


def test_each_source_has_a_sign_and_a_style_of_its_own():
    assert len({look.sign for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.style for look in LOOKS.values()}) == len(LOOKS)
    pieces = [Stretch("one ", "target"), Stretch("two ", "suffix"), Stretch("three", "draft")]
    content = painted(pieces)
    assert content.plain == "one ˢtwo ᵈthree"
    assert [content.plain[s.start : s.end] for s in content.spans] == ["ˢtwo ", "ᵈthree"]
    assert shares(pieces) == {"target": 4 / 13, "suffix": 4 / 13, "draft": 5 / 13}


def test_an_answer_changes_between_markdown_and_provenance():
    async def story(app, pilot):
        await pilot.press("f3")
        await until(pilot, lambda: app.transcript.last_answer.provenance)
        text = texts(app)[1]
        assert "It is ˢ*red* ᵈlight." in text
        assert "suffix" in text
        await pilot.press("f3")
        await until(pilot, lambda: not app.transcript.last_answer.provenance)
        assert "It is red light." in texts(app)[1]

    tell(story, conversation=conversation(2))


def test_provenance_follows_a_running_answer():
    gate = Gate(60, seconds=0.005)

    async def story(app, pilot):
        await say(pilot, "Go")
        await until(pilot, lambda: app.live._view is not None and "cat" in texts(app)[-1])
        await pilot.press("f3")
        await until(pilot, lambda: "ˢ" in shown(app.transcript.last_answer))
        await pilot.press("escape")
        await until(pilot, lambda: not app.talk.answering)
        turn = app.talk.turns[-1]
        drawn_text = "".join(piece.text for piece in stretches(turn.content, turn.runs))
        assert drawn_text == turn.content
        assert any(run.source == "suffix" for run in turn.runs)

    tell(story, [REPEATING * 80], seconds=gate, spec="suffix")


def test_the_panel_shows_what_the_controller_does():
    async def story(app, pilot):
        await pilot.press("f2")
        await ask(pilot, "Go")
        await until(pilot, lambda: "tokens a round" in drawn(app))
        screen = drawn(app)
        for word in ("tok/s", "accepted / drafted", "speed / plain", "context", "memory", "GB"):
            assert word in screen
        assert app.engine.model.status.reason.split()[0] in screen
        await pilot.press("f2")
        await until(pilot, lambda: "tokens a round" not in drawn(app))

    tell(story, [REPEATING], size=(110, 36))


def test_the_panel_says_why_speculation_is_off():
    async def story(app, pilot):
        await pilot.press("f2")
        await until(pilot, lambda: "○ off" in drawn(app))
        await until(pilot, lambda: "switched off" in drawn(app))

    tell(story, spec="off", size=(110, 36))


def test_the_line_under_an_answer():
    line = answer_line(conversation(2).turns[1])
    assert line == "24 tokens · 57.5 tok/s · first after 0.21 s · accepted 12/16 (75%)"


def test_speedup_is_plain_time_over_the_time_taken():
    assert speedup(30, {"saved_tokens": 10.0}) == 1.5
    assert speedup(30, {"saved_tokens": 0.0}) == 1.0
    assert speedup(30, {}) is None


def test_a_reading_without_a_model_is_drawn():
    assert Panel()
    assert Reading().speedup is None
