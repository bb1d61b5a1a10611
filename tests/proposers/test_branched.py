"""Trees of a draft model: which children, in how many passes, and what stays in its cache."""

import numpy as np
import pytest
from engine_kit import N_VOCAB, PROMPT, looping, wandering
from session_kit import Recording

from edgespec.backends.scripted import Faults, ScriptedBackend, from_script
from edgespec.proposers import ModelProposer, SuffixProposer
from edgespec.sampling import Sampler, confidence
from edgespec.types import Plan, SamplingSettings

GREEDY = SamplingSettings(temperature=0.0)
HOT = SamplingSettings(temperature=1.2, top_k=0, top_p=1.0, min_p=0.0, seed=6)
WIDTH = 3


def levels(n):
    """Everything is kept, for so many levels."""
    asked = []

    def grow(tree):
        asked.append(tree)
        return tree, len(asked) <= n

    return grow


def plan(n, most=16):
    return Plan(("draft",), most, tree=True, grow=levels(n))


def proposer(logits, sampling=GREEDY, backend=None, guide=None):
    p = ModelProposer(backend or Recording(logits, N_VOCAB), N_VOCAB, lambda _: None, guide)
    p.configure(sampling, "coupled")
    return p


def children(draft, node):
    return [draft.tokens[i] for i in range(len(draft)) if draft.parents[i] == node]


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "sampled"])
def test_a_nodes_children_are_what_the_model_would_say_and_what_it_would_say_otherwise(sampling):
    logits = wandering()
    draft, sampler = proposer(logits, sampling).propose(PROMPT, plan(2)), Sampler(sampling)
    assert not draft.is_chain
    assert draft.q is None
    assert draft.sources == ("draft",) * len(draft)
    inner = {*draft.parents}
    for node in inner:
        path = draft.path(node)
        row = logits((*PROMPT, *path))
        found = children(draft, node)
        assert found[0] == sampler.choose(row, PROMPT, path)
        for i, token in enumerate(found):
            others = row.copy()
            others[found[:i]] = -np.inf
            assert token == sampler.choose(others, PROMPT, path)
        first = next(i for i in range(len(draft)) if draft.parents[i] == node)
        assert draft.evidence[first] == (confidence(row), 0.0)


def test_a_level_is_one_pass_and_none_of_it_stays():
    backend = Recording(looping(), N_VOCAB)
    p = proposer(None, backend=backend)
    p.begin(PROMPT)
    backend.passes.clear()
    first = p.propose(PROMPT, plan(3, 64))
    assert backend.passes == [1, WIDTH, WIDTH + WIDTH**2]
    assert len(first) == WIDTH + WIDTH**2 + WIDTH**3
    assert backend.length == len(PROMPT)
    assert p.propose(PROMPT, plan(3, 64)) == first
    backend.passes.clear()
    p.propose((*PROMPT, 3, 4), plan(1))
    assert backend.passes == [2], "the accepted tokens"


def test_the_likeliest_nodes_are_taken_where_there_is_no_room_for_all():
    whole = proposer(looping()).propose(PROMPT, plan(2))
    few = proposer(looping()).propose(PROMPT, plan(2, 5))
    assert len(whole) == 12
    assert len(few) == 5
    assert few.tokens[:3] == whole.tokens[:3]
    paths = [whole.path(i) for i in range(len(whole))]
    assert all(few.path(i) in paths for i in range(len(few)))


@pytest.mark.parametrize("most", [1, 2, 4, 7])
def test_rows_of_the_model_and_of_its_context_are_kept_to(most):
    by_rows = ScriptedBackend(looping(), N_VOCAB, faults=Faults(max_rows=most))
    by_context = ScriptedBackend(looping(), N_VOCAB, n_ctx=len(PROMPT) + most)
    for backend in (by_rows, by_context):
        assert len(proposer(None, backend=backend).propose(PROMPT, plan(9, 64))) == most


def test_not_worth_a_level_is_no_draft_and_no_pass():
    backend = Recording(looping(), N_VOCAB)
    assert proposer(None, backend=backend).propose(PROMPT, plan(0)).tokens == ()
    assert backend.passes == []


def test_what_was_dropped_is_not_grown():
    def grow(tree):
        return (tree.keep([1]), True) if len(tree) == WIDTH else (tree, not tree.tokens)

    draft = proposer(looping()).propose(PROMPT, Plan(("draft",), 16, tree=True, grow=grow))
    assert children(draft, -1) == [draft.tokens[0]]
    assert draft.parents == (-1, 0, 0, 0)


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "sampled"])
def test_without_branches_in_its_backend_it_is_a_chain_with_leaves_where_the_model_is_in_doubt(sampling):
    logits, sampler = wandering(), Sampler(sampling)
    bare = Recording(logits, N_VOCAB, faults=Faults(tree=False))
    draft = proposer(None, sampling, bare).propose(PROMPT, Plan(("draft",), 6, tree=True, grow=levels(3)))
    straight = proposer(logits, sampling).propose(PROMPT, Plan(("draft",), 6))
    node, at = -1, 0
    for token in straight.tokens:
        path = draft.path(node)
        row = logits((*PROMPT, *path))
        found = [child for child, _ in sampler.choices(row, PROMPT, path, WIDTH, confidence(row))]
        assert children(draft, node) == (found if confidence(row) < 0.95 else [token])
        node = next(i for i in range(len(draft)) if draft.parents[i] == node)
        at += len(found) if confidence(row) < 0.95 else 1
    assert len(draft) == at > len(straight)
    assert bare.passes[-5:] == [1] * 5, "leaves take no pass"


def test_with_rejection_it_is_a_chain():
    p = proposer(wandering())
    p.configure(HOT, "rejection")
    draft = p.propose(PROMPT, plan(3))
    assert draft.is_chain
    assert draft.q is not None


def test_copying_says_which_children_it_agrees_with_and_goes_on_behind_the_leaf():
    text = [1, 2, 3, 4, 5, 6, 7, 1, 2]
    guide = SuffixProposer()
    guide.begin(text)
    backend = ScriptedBackend(from_script([3, 4, 9, 9], len(text), N_VOCAB), N_VOCAB)
    draft = proposer(None, backend=backend, guide=guide).propose(text, plan(2))
    assert [agrees for _, agrees in draft.evidence[:2]] == [1.0, -1.0]
    copied = [i for i, source in enumerate(draft.sources) if source == "suffix"]
    assert copied == [12, 13, 14, 15]
    assert draft.path(15)[:2] in [draft.path(i) for i in range(12)]
    whole = [*text, *draft.path(15)]
    ending = whole[-int(draft.evidence[15][0]) :]
    assert ending == text[text.index(ending[0]) :][: len(ending)]
