"""Conversations as Markdown and JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from history.history_kit import NASTY, answer, conversation
from hypothesis import given
from hypothesis import strategies as st

from edgespec.errors import UsageError
from edgespec.history import Conversation, Turn, as_json, as_markdown, from_json


def test_json_comes_back_the_same():
    kept = conversation("a", "b", *NASTY[:4], title="t")
    kept = replace(
        kept, turns=(*kept.turns, replace(answer("half", 9.0), state="stopped", finish="cancelled"))
    )
    assert from_json(as_json(kept)) == kept


@given(st.lists(st.text(), max_size=6), st.none() | st.text())
def test_any_text_survives_json(texts, title):
    kept = replace(conversation(*texts), title=title)
    assert from_json(as_json(kept)) == kept


def test_a_plain_list_of_messages_is_a_conversation_too():
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    found = from_json(json.dumps(turns))
    assert (found.system, [(turn.role, turn.content) for turn in found.turns]) == ("s", [("user", "u")])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "3",
        "null",
        "{}",
        '{"format": "other"}',
        '{"format": "edgespec.conversation", "version": 99, "turns": []}',
        '[{"role": "wizard", "content": "x"}]',
        '[{"role": "user"}]',
        '[{"role": "user", "content": 7}]',
        "[7]",
    ],
)
def test_other_json_is_refused_in_one_line(text):
    with pytest.raises(UsageError) as caught:
        from_json(text)
    assert "\n" not in str(caught.value)


def test_markdown_has_the_texts_as_they_are():
    text = "| a | b |\n\n```py\nx = a[i]\n```"
    kept = Conversation((Turn("user", "Hi [/]", 1.0), Turn("assistant", text, 2.0, "stopped")), "Be brief.")
    shown = as_markdown(kept)
    assert shown.startswith("# Hi [/]\n\n")
    assert "## System\n\nBe brief.\n\n## User\n\nHi [/]\n\n## Assistant\n\n" + text in shown
    assert shown.endswith("*[stopped]*\n")
