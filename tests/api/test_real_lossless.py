"""On real weights: what a proposer guesses never changes what the model says."""

import json
from pathlib import Path

import numpy as np
import pytest

from edgespec.backends import llamacpp
from edgespec.backends.base import LoadOptions
from edgespec.backends.rows import exact_rows
from edgespec.control import Controller, CostModel, FixedPolicy
from edgespec.engine import Request, Session
from edgespec.proposers import ModelProposer, NgramProposer, SuffixProposer
from edgespec.proposers.memory import MemoryProposer
from edgespec.proposers.recycling import RecyclingProposer
from edgespec.sampling import noise
from edgespec.sampling.transform import survivors
from edgespec.text.prompt import Message
from edgespec.text.stream import TokenStream
from edgespec.text.template import ChatTemplate
from edgespec.types import SamplingSettings

pytestmark = pytest.mark.model

PROMPTS = json.loads((Path(__file__).parent / "prompts.json").read_text())
TOKENS, DEPTH = 24, 3
COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16)
SAMPLINGS = {"greedy": SamplingSettings(temperature=0.0), "sampled": SamplingSettings(seed=1234)}


@pytest.fixture(scope="module")
def models(smollm2_path):
    options = LoadOptions(n_ctx=1024, n_batch=512)
    target, draft = (llamacpp.load(smollm2_path, options) for _ in range(2))
    yield target, draft
    target.backend.close()
    draft.backend.close()


@pytest.fixture(scope="module")
def prompts(models):
    """Each text, the last behind the others: kernels change beyond 256 tokens."""
    tokenize = models[0].vocabulary.tokenize
    found = [tokenize(p["text"], special=False) for p in PROMPTS]
    before = [token for prompt in found[:-1] for token in prompt]
    return [*found[:-1], [*before, *found[-1]][-420:]]


@pytest.fixture(scope="module")
def exact(models, prompts):
    """Row counts whose rows equal single rows here, measured as the runtime measures them."""
    return tuple(sorted(exact_rows(models[0].backend, prompts[8], COUNTS)))


class Switch:
    """A policy that can be exchanged between answers."""

    def __init__(self):
        self.policy = OFF

    def __getattr__(self, name):
        return getattr(self.policy, name)


OFF = FixedPolicy((), 0)


class Decoding:
    """One session over the target; every proposer is there and the policy says which may guess."""

    def __init__(self, target, draft):
        self.target, self.switch = target, Switch()
        target.backend.truncate(0)
        draft.backend.truncate(0)
        proposers = {
            "suffix": SuffixProposer(),
            "ngram": NgramProposer(),
            "recycling": RecyclingProposer(),
            "draft": ModelProposer(draft.backend, draft.backend.n_vocab, lambda _: None),
        }
        self.session = Session(target.backend, target.vocabulary.is_eog, self.switch, proposers)

    def __call__(self, prompt, sampling, policy=OFF, tokens=TOKENS):
        """(ids, drafted, accepted)."""
        self.switch.policy = policy
        request, stream = Request(sampling, max_tokens=tokens), TokenStream(self.target.vocabulary)
        ids, outcomes = [], []
        for event in self.session.generate(prompt, request, stream):
            ids += [piece.token for piece in event.pieces]
            outcomes.append(event.outcome)
        assert self.target.backend.length == len(self.session.tokens)
        return ids, sum(len(o.draft) for o in outcomes), sum(o.accepted for o in outcomes)


def policies(exact):
    for name in ("suffix", "ngram", "draft"):
        yield name, FixedPolicy((name,), DEPTH, row_counts=exact)


def tree_policies(exact):
    for name in ("suffix", "draft"):
        yield f"{name}, trees", FixedPolicy((name,), 2 * DEPTH + 1, row_counts=exact, trees=True)


@pytest.mark.parametrize("how", SAMPLINGS)
def test_text_with_speculation_is_text_without_in_exact_mode(how, models, prompts, exact):
    assert max(exact) >= 4, f"only {exact} rows are exact here: nothing to test"
    sampling, totals, decode = SAMPLINGS[how], {}, Decoding(*models)
    recycling = FixedPolicy(("recycling",), DEPTH, row_counts=exact)
    cheap = CostModel({n: 0.02 + 0.001 * n for n in range(1, 17)}, {"draft": 0.002}, 0.01)
    every = ("suffix", "ngram", "recycling", "draft")
    controller = Controller(every, cheap, draft_max=7, row_counts=exact, trees=True)
    others = [("all, by the controller", controller), ("recycling", recycling)]
    for i, (prompt, about) in enumerate(zip(prompts, PROMPTS, strict=True)):
        decode(prompt, sampling, tokens=1)
        expected, *_ = decode(prompt, sampling)
        for name, policy in (
            *policies(exact),
            *([*tree_policies(exact), *others] if i % 3 == 0 else []),
        ):
            ids, drafted, accepted = decode(prompt, sampling, policy)
            assert ids == expected, f"{name} on {about['id']}"
            total = totals.setdefault(name, [0, 0])
            total[0] += drafted
            total[1] += accepted
    print(f"\n{how}, exact rows {exact}: drafted and accepted {totals}")
    assert totals["draft"][0] == totals["draft"][1] > 0, "the same weights are always right"
    assert totals["suffix"][1] > 0
    assert totals["draft, trees"][0] > totals["draft, trees"][1] > 0


@pytest.mark.parametrize("how", SAMPLINGS)
def test_a_question_asked_again_is_answered_in_a_third_of_the_rounds_from_memory(how, models, exact):
    target, sampling, memory = models[0], SAMPLINGS[how], MemoryProposer()
    request = Request(sampling, max_tokens=80)
    chat = ChatTemplate(target.info.chat_template, target.vocabulary, lambda _: None)
    question = Message("user", "Write a long story about a lighthouse keeper and the sea.")
    prompt = chat.render([question]).tokens(target.vocabulary)

    def asked(names):
        target.backend.truncate(0)
        made = {"suffix": SuffixProposer(), "memory": memory}
        policy = FixedPolicy(names, 15, row_counts=exact)
        session = Session(target.backend, target.vocabulary.is_eog, policy, made)
        events = list(session.generate(prompt, request, TokenStream(target.vocabulary)))
        ids = [piece.token for event in events for piece in event.pieces]
        return ids, len(ids) / len(events)

    first, slow = asked(("suffix", "memory"))
    memory.remember(-1, np.array(first, np.int32))
    again, fast = asked(("suffix", "memory"))
    assert len(first) > 60
    assert again == first
    assert fast >= 3 * slow, (slow, fast)


@pytest.mark.parametrize("how", SAMPLINGS)
def test_near_mode_differs_only_where_two_candidates_are_as_close_as_the_kernels_are_apart(
    how, models, prompts
):
    sampling, differences, decode = SAMPLINGS[how], 0, Decoding(*models)
    for prompt in prompts[::3]:
        decode(prompt, sampling, tokens=1)
        expected, *_ = decode(prompt, sampling)
        ids, *_ = decode(prompt, sampling, FixedPolicy(("suffix", "ngram", "draft"), DEPTH))
        if ids == expected:
            continue
        differences += 1
        at = next(i for i, (a, b) in enumerate(zip(ids, expected, strict=False)) if a != b)
        history = [*prompt, *expected[:at]]
        row, deviation = row_and_deviation(models[0].backend, history)
        decode = Decoding(*models)
        assert gap(row, sampling, len(history)) < 2 * deviation
    print(f"\n{how}: {differences} of {len(prompts[::3])} answers differ in near mode")


def row_and_deviation(backend, history):
    """The row after `history` decoded alone, and how far rows of a pass of 6 are from it."""
    backend.truncate(0)
    backend.forward(history[:-6], rows="none")
    backend.commit(range(len(history) - 6))
    together = backend.forward(history[-6:]).copy()
    backend.commit(())
    alone = []
    for token in history[-6:]:
        alone.append(backend.forward([token])[0].copy())
        backend.commit([0])
    return alone[-1], float(np.abs(together - np.array(alone)).max())


def gap(row, sampling, position):
    """Between the two best candidates, after noise, in units of logits."""
    if sampling.temperature <= 0:
        best = np.sort(row)[-2:]
        return float(best[1] - best[0])
    ids, logits = survivors(row, sampling)
    scores = np.sort(logits + noise.gumbel(sampling.seed, position, noise.CHOICE, ids))[-2:]
    return float(scores[1] - scores[0]) * sampling.temperature
