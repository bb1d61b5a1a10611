from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgespec.proposers import SuffixProposer
from edgespec.proposers.automaton import SuffixAutomaton
from edgespec.types import Plan

TEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=50)
PLAN = Plan(("suffix",), 8)


def longest_repeated_suffix(text):
    """Length of the longest ending that also ends earlier."""
    for n in range(len(text) - 1, 0, -1):
        if any(text[i : i + n] == text[-n:] for i in range(len(text) - n)):
            return n
    return 0


def occurrences(text, part):
    return sum(text[i : i + len(part)] == part for i in range(len(text) - len(part) + 1))


def state_of(a, part):
    state = 0
    for token in part:
        state = a.next[state][token]
    return state


@given(TEXTS)
def test_the_longest_suffix_seen_before_is_found(text):
    a = SuffixAutomaton()
    a.extend(text)
    state = a.link[a.last]
    assert (a.longest[state] if state > 0 else 0) == longest_repeated_suffix(text)


@given(TEXTS)
def test_every_substring_is_counted_as_often_as_it_occurs(text):
    a = SuffixAutomaton()
    a.extend(text)
    for start in range(len(text)):
        for end in range(start + 1, min(start + 6, len(text)) + 1):
            part = text[start:end]
            assert a.count[state_of(a, part)] == occurrences(text, part)


@given(TEXTS, st.data())
def test_growing_in_steps_is_growing_at_once(text, data):
    cut = data.draw(st.integers(0, len(text)))
    steps, once = SuffixAutomaton(), SuffixAutomaton()
    steps.extend(text[:cut])
    steps.extend(text[cut:])
    once.extend(text)
    assert vars(steps) == vars(once)


@given(TEXTS, st.integers(1, 12))
def test_the_first_guess_is_the_most_frequent_continuation_of_the_longest_match(text, most):
    draft = SuffixProposer()
    draft.begin(text)
    guess = draft.propose(text, Plan(("suffix",), most))
    n = longest_repeated_suffix(text)
    if n < 1:
        assert guess.tokens == ()
        return
    follows = Counter(text[i + n] for i in range(len(text) - n) if text[i : i + n] == text[-n:])
    most_often = max(follows.values())
    latest = next(
        text[i + n]
        for i in range(len(text) - n - 1, -1, -1)
        if text[i : i + n] == text[-n:] and follows[text[i + n]] == most_often
    )
    assert guess.tokens[0] == latest
    assert 1 <= len(guess) <= most
    length, share, times = guess.evidence[0]
    assert length == n
    assert times == most_often
    assert (share == 1.0) == (len(follows) == 1)
    assert share == pytest.approx(most_often / follows.total(), abs=2e-3)


@given(TEXTS, TEXTS, st.integers(0, 8))
def test_an_edited_history_is_like_a_new_one(before, after, shared):
    text = before[:shared] + after
    used, fresh = SuffixProposer(), SuffixProposer()
    used.begin(before)
    used.propose(before, PLAN)
    used.begin(text)
    fresh.begin(text)
    assert used.propose(text, PLAN) == fresh.propose(text, PLAN)


@given(TEXTS, st.integers(1, 40))
def test_drafts_are_chains_that_say_what_each_token_was_copied_for(text, most):
    p = SuffixProposer()
    p.begin(text)
    draft = p.propose(text, Plan(("suffix",), most))
    assert len(draft) <= most
    assert draft.is_chain
    assert draft.q is None
    whole = [*text, *draft.tokens]
    for i, (length, share, times) in enumerate(draft.evidence):
        matched = whole[len(text) + i - int(length) : len(text) + i]
        assert 1 <= times <= occurrences(text, matched)
        assert 0 < share <= 1


@pytest.mark.parametrize("most", [1, 3, 10])
def test_a_long_copy_fills_the_draft(most):
    text = list(range(20)) + list(range(6))
    p = SuffixProposer()
    p.begin(text)
    assert p.propose(text, Plan(("suffix",), most)).tokens == tuple(range(6, 6 + most))


def test_the_majority_wins_and_the_latest_among_equals():
    p = SuffixProposer()
    text = [1, 2, 7, 5, 1, 2, 7, 6, 1, 2, 8, 4, 1, 2]
    p.begin(text)
    assert p.propose(text, PLAN).tokens[0] == 7
    p = SuffixProposer()
    text = [1, 2, 7, 5, 1, 2, 8, 6, 1, 2, 7, 9, 1, 2, 8, 3, 1, 2, 7, 4, 1, 2, 8, 0, 1, 2]
    p.begin(text)
    assert p.propose(text, PLAN).tokens[0] == 8


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=30, max_size=80))
def test_the_guess_is_the_majority_however_many_continuations_there_are(tail):
    text = [item for token in tail for item in (8, 9, token + 10)] + [8, 9]
    p = SuffixProposer()
    p.begin(text)
    n = longest_repeated_suffix(text)
    follows = Counter(text[i + n] for i in range(len(text) - n) if text[i : i + n] == text[-n:])
    assert follows[p.propose(text, PLAN).tokens[0]] == max(follows.values())


def test_a_new_text_has_nothing_to_propose():
    p = SuffixProposer()
    p.begin([1, 2, 3, 4])
    assert p.propose([1, 2, 3, 4], PLAN).tokens == ()


@given(TEXTS, st.integers(1, 12))
def test_a_tree_holds_what_followed_a_match_of_its_path_and_the_chain_first(text, most):
    proposer = SuffixProposer()
    proposer.begin(text)
    chain = proposer.propose(text, Plan(("suffix",), most)).tokens
    tree = proposer.propose(text, Plan(("suffix",), most, tree=True))
    assert len(tree) <= most
    assert all(parent < i for i, parent in enumerate(tree.parents))
    assert len(set(zip(tree.parents, tree.tokens, strict=True))) == len(tree), "siblings differ"
    assert (tree.tokens[0] if tree.tokens else None) == (chain[0] if chain else None)
    for i, token in enumerate(tree.tokens):
        before = list(text)
        path, node = [], tree.parents[i]
        while node >= 0:
            path.insert(0, tree.tokens[node])
            node = tree.parents[node]
        length = int(tree.evidence[i][0])
        assert occurrences(text, [*(before + path)[-length:], token])


def test_a_match_that_went_on_in_two_ways_branches():
    text = [1, 2, 3, 8, 1, 2, 4, 9, 1, 2]
    proposer = SuffixProposer()
    proposer.begin(text)
    tree = proposer.propose(text, Plan(("suffix",), 8, tree=True))
    assert {token for token, parent in zip(tree.tokens, tree.parents, strict=True) if parent < 0} == {3, 4}
