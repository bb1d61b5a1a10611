"""A model's chat template: messages in, a prompt out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from threading import Lock

from edgespec.backends.base import Vocabulary
from edgespec.errors import TemplateError
from edgespec.text.guard import Guard, private_marks
from edgespec.text.prompt import Message, Prompt, Role, Span
from edgespec.text.thinking import HARMONY, ThinkingTags, find_tags

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
PLAIN = (
    "{% for message in messages %}"
    "{% if message.role != 'system' %}{{ message.role.capitalize() + ': ' }}{% endif %}"
    "{{ message.content + '\\n\\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)


class ChatTemplate:
    """Renders conversations as the model's template does; what people write stays text.

    `source` None falls back to ChatML where the vocabulary knows it, else to a plain form. What a
    template refuses (a system message, two user turns in a row) is put in the way it accepts, with one
    notice in `notices` and to `notify`. Raises TemplateError if the template is broken.
    """

    def __init__(
        self, source: str | None, vocabulary: Vocabulary, notify: Callable[[str], None] | None = None
    ) -> None:
        from edgespec.text.sandbox import Sandbox

        self.notices: list[str] = []
        self._notify = notify
        self._vocabulary = vocabulary
        self.stops: tuple[str, ...] = ()
        """Stop strings that the form needs, because the model does not know its end tokens."""
        if source is None:
            source = self._fallback()
        self.thinking: ThinkingTags | None = find_tags(source, vocabulary)
        """The tags around the model's thinking, None if it has none."""
        self._sandbox = Sandbox(source)
        self._source = source
        self._accepted: dict[tuple[Role, ...], bool] = {}
        self._lock = Lock()
        self._tokens = {
            name: vocabulary.text(token) if token is not None else ""
            for name, token in (("bos_token", vocabulary.bos), ("eos_token", vocabulary.eos))
        }

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> Prompt:
        """The prompt for these messages. Raises TemplateError."""
        with self._lock:
            turns = self._adapted(messages)
            spans = self._guarded(turns, add_generation_prompt)
        tags = self.thinking
        is_open = (
            tags is not None
            and add_generation_prompt
            and bool(spans)
            and spans[-1].special
            and spans[-1].text.rstrip().endswith(tags.open)
        )
        return Prompt(tuple(spans), thinking_open=is_open)

    @cached_property
    def _guard(self) -> Guard:
        return Guard(self._vocabulary, self.thinking)

    def _say(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)
            if self._notify is not None:
                self._notify(notice)

    def _fallback(self) -> str:
        if all(
            len(self._vocabulary.tokenize(name, special=True)) == 1 for name in ("<|im_start|>", "<|im_end|>")
        ):
            self._say("the model has no chat template; using ChatML")
            return CHATML
        self._say("the model has no chat template; using plain 'User: ... Assistant: ...' turns")
        self.stops = ("\nUser:",)
        return PLAIN

    def _text(self, turns: Sequence[Message], add_generation_prompt: bool) -> str:
        variables = {
            "messages": [self._variables(turn) for turn in turns],
            "add_generation_prompt": add_generation_prompt,
            "tools": None,
            "documents": None,
            **self._tokens,
        }
        return self._sandbox.render(variables, sum(len(turn.content) + 200 for turn in turns))

    def _variables(self, turn: Message) -> dict[str, str]:
        if turn.role == "assistant" and self.thinking is HARMONY and HARMONY.open in turn.content:
            thinking, _, content = turn.content.replace(HARMONY.open, "", 1).partition(HARMONY.close)
            return {"role": turn.role, "content": content, "thinking": thinking}
        return {"role": turn.role, "content": turn.content}

    # what people write stays text

    def _guarded(self, turns: list[Message], add_generation_prompt: bool) -> list[Span]:
        guard = self._guard
        if not guard.concerns(turn.content for turn in turns):
            return [Span(self._text(turns, add_generation_prompt), True)]
        marks = private_marks([self._source, *(turn.content for turn in turns)])

        def mark(turn: Message) -> str:
            return guard.mark(turn.content, marks, own=turn.role == "assistant")

        def wrap(turn: Message) -> str:
            return mark(turn) if turn.role == "assistant" else f"{marks[0]}{turn.content}{marks[1]}"

        def spans(change: Callable[[Message], str]) -> list[Span] | None:
            changed = [Message(turn.role, change(turn)) for turn in turns]
            return guard.split(self._text(changed, add_generation_prompt), marks)

        wanted = guard.count(spans(lambda t: guard.harmless(t.content, own=t.role == "assistant")) or ())
        for change in (mark, wrap):
            with suppress(TemplateError):
                found = spans(change)
                if found is not None and guard.count(found) == wanted:
                    return found
        found = spans(lambda t: guard.broken(t.content, own=t.role == "assistant"))
        if found is None:
            raise TemplateError("the chat template mixes messages with control tokens")
        self._say(
            "the chat template mixes messages with control tokens; their spellings in messages are broken up"
        )
        return found

    # what the template refuses is put in the way it accepts

    def _accepts(self, *roles: Role) -> bool:
        """Whether the template shows all of a conversation with these roles."""
        if roles not in self._accepted:
            words = [f"needle{i}needle" for i in range(len(roles))]
            try:
                text = self._text([Message(*pair) for pair in zip(roles, words, strict=True)], False)
                self._accepted[roles] = all(word in text for word in words)
            except TemplateError:
                self._accepted[roles] = False
        return self._accepted[roles]

    def _adapted(self, messages: Sequence[Message]) -> list[Message]:
        turns = [turn for turn in messages if turn.role != "system" or turn.content.strip()]
        if not turns:
            raise TemplateError("the conversation has no messages")
        turns = self._placed_systems(turns)
        turns = self._merged(turns)
        if next((t.role for t in turns if t.role != "system"), "user") == "assistant" and not self._accepts(
            "assistant", "user"
        ):
            self._say("the chat template must begin with a user turn; an empty one was put in front")
            at = int(turns[0].role == "system")
            turns.insert(at, Message("user", ""))
        return turns

    def _placed_systems(self, turns: list[Message]) -> list[Message]:
        if all(turn.role != "system" for turn in turns):
            return turns
        leading = self._accepts("system", "user")
        later = leading and (
            all(turn.role != "system" for turn in turns[1:])
            or self._accepts("system", "user", "assistant", "system", "user")
        )
        out: list[Message] = []
        carried: list[str] = []
        for i, turn in enumerate(turns):
            if turn.role == "system" and not (leading if i == 0 else later):
                carried.append(turn.content)
            elif turn.role == "user" and carried:
                out.append(Message("user", "\n\n".join([*carried, turn.content])))
                carried = []
            else:
                out.append(turn)
        if carried:
            out.append(Message("user", "\n\n".join(carried)))
        if len(out) != len(turns) or any(a.role != b.role for a, b in zip(out, turns, strict=True)):
            self._say("the chat template takes no system message here; its text goes before the user's")
        return out

    def _merged(self, turns: list[Message]) -> list[Message]:
        out: list[Message] = []
        for turn in turns:
            if out and out[-1].role == turn.role and not self._accepts_twice(turn.role):
                out[-1] = Message(turn.role, f"{out[-1].content}\n\n{turn.content}")
                self._say(f"the chat template takes no two {turn.role} turns in a row; they were merged")
            else:
                out.append(turn)
        return out

    def _accepts_twice(self, role: Role) -> bool:
        if role == "assistant":
            return self._accepts("user", "assistant", "assistant", "user")
        return self._accepts(*(("user", "user") if role == "user" else ("system", "system", "user")))
