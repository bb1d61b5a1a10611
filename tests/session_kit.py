"""A session over the scripted backend, and what must hold after it."""

from engine_kit import (
    GREEDY,
    N_VOCAB,
    PROMPT,
    VOCABULARY,
    answer,
    looping,
    plain,
    proposer,
    session,
)

from edgespec.backends.scripted import Faults, ScriptedBackend
from edgespec.engine import Request
from edgespec.text.stream import TokenStream

SECOND = (5, 6, 7)


class Recording(ScriptedBackend):
    """Notes how many tokens each pass evaluates."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passes = []

    def forward(self, tokens, parents=None, *, rows="all"):
        self.passes.append(len(tokens))
        return super().forward(tokens, parents, rows=rows)


def start(s, prompt=PROMPT, n=40, sampling=GREEDY, stops=()):
    return s.generate(prompt, Request(sampling, max_tokens=n), TokenStream(VOCABULARY, stops=stops))


def collect(events, ids):
    """Read to the end, noting every id as it comes."""
    for event in events:
        ids += [piece.token for piece in event.pieces]


def pair(kind="suffix", logits=None, depth=4, **faults):
    logits = logits or looping()
    target = ScriptedBackend(logits, N_VOCAB, faults=Faults(**faults))
    return session(target, proposer(kind, logits), depth), target, logits


def assert_intact(s, target, whole):
    """The cache is what the session says it is, a beginning of what was said."""
    assert s.tokens == target.tokens
    assert len(s.tokens) == target.length
    assert s.tokens == tuple(whole)[: len(s.tokens)]


def assert_next_is_right(s, logits, prompt):
    fresh = plain(logits, prompt, 30).ids
    assert answer(s, prompt, 30).ids == fresh
