"""Whatever happens in a conversation, in any order: the file has what the chat has."""

from __future__ import annotations

from history.history_kit import pieces
from hypothesis import given, settings
from hypothesis import strategies as st

from edgespec.history import History, Recorder

STEP = st.one_of(
    st.tuples(st.just("ask"), st.text(max_size=5)),
    st.tuples(st.just("answering"), st.booleans()),
    st.tuples(st.just("add"), st.text(min_size=1, max_size=5)),
    st.tuples(st.just("answered"), st.sampled_from(["stop", "length", "cancelled", None])),
    st.tuples(st.just("cut"), st.integers(0, 5)),
    st.tuples(st.just("describe"), st.none() | st.text(max_size=5)),
    st.tuples(st.just("begin"), st.none()),
    st.tuples(st.just("flush"), st.none()),
)


class Expected:
    """What a person would say is in the conversation: roles and texts."""

    def __init__(self):
        self.turns, self.answer = [], None

    def settle(self, finish=None):
        if self.answer is not None and (self.answer[1] or finish in ("stop", "length")):
            self.turns = [*self.answer[0], ("assistant", self.answer[1])]
        self.answer = None

    def apply(self, kind, value):
        if kind == "ask":
            self.settle()
            self.turns = [*self.turns, ("user", value)]
        elif kind == "answering":
            self.settle()
            again = value and self.turns and self.turns[-1][0] == "assistant"
            self.answer = (self.turns[:-1] if again else self.turns, "")
        elif kind == "add" and self.answer is not None:
            self.answer = (self.answer[0], self.answer[1] + value)
        elif kind == "answered":
            self.settle(value)
        elif kind == "cut":
            self.settle()
            self.turns = self.turns[:value]
        elif kind == "begin":
            self.turns, self.answer = [], None

    @property
    def shown(self):
        if self.answer is None or not self.answer[1]:
            return self.turns
        return [*self.answer[0], ("assistant", self.answer[1])]


def apply(recorder, kind, value):
    if kind == "answering":
        recorder.answering("m", again=value)
    elif kind == "add":
        recorder.add(pieces(value))
    elif kind == "describe":
        recorder.describe(system=value)
    elif kind == "begin":
        recorder.begin()
    elif kind == "flush":
        assert recorder.flush(30)
    else:
        getattr(recorder, kind)(value)


def shown(conversation):
    return [(turn.role, turn.content) for turn in conversation.turns]


@settings(max_examples=40)
@given(steps=st.lists(STEP, max_size=25))
def test_the_file_has_what_the_chat_has(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("any") / "history" / "c.db"
    expected = Expected()
    with Recorder(path) as recorder:
        for kind, value in steps:
            apply(recorder, kind, value)
            expected.apply(kind, value)
            assert shown(recorder.conversation) == expected.shown
            if kind == "flush" and expected.shown:
                with History(path) as history:
                    assert shown(history.load(recorder.id)) == expected.shown
                    assert history.load(recorder.id).system == recorder.conversation.system
    if expected.shown:
        with History(path) as history:
            assert shown(history.load(recorder.id)) == expected.shown
            for entry in history.list():
                history.rename(entry.id, "whole")  # the index of the texts is sound
                assert history.search("whole")
                history.delete(entry.id)
            assert history.list() == []
