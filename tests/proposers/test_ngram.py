import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.proposers import NgramProposer
from edgespec.types import Plan

TEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=50)
PLAN = Plan(("ngram",), 8)


def lookup(text, most, sizes=(4, 3, 2)):
    """Scan for the last earlier place of the longest ending; past the end the copy repeats itself."""
    for size in sizes:
        for end in range(len(text) - 1, size - 1, -1):
            if text[end - size : end] == text[-size:]:
                out = list(text)
                for i in range(most):
                    out.append(out[end + i])
                return tuple(out[len(text) :])
    return ()


@given(TEXTS, st.integers(1, 20))
def test_a_draft_is_what_a_scan_would_find(text, most):
    p = NgramProposer()
    p.begin(text)
    assert p.propose(text, Plan(("ngram",), most)).tokens == lookup(text, most)


@given(TEXTS, st.data())
def test_growing_in_steps_is_growing_at_once(text, data):
    p = NgramProposer()
    p.begin(text[:1])
    cut = data.draw(st.integers(1, len(text)))
    p.propose(text[:cut], PLAN)
    assert p.propose(text, PLAN).tokens == lookup(text, 8)


@given(TEXTS, TEXTS, st.integers(0, 8))
def test_an_edited_history_is_like_a_new_one(before, after, shared):
    text = before[:shared] + after
    p = NgramProposer()
    p.begin(before)
    p.propose(before, PLAN)
    p.begin(text)
    assert p.propose(text, PLAN).tokens == lookup(text, 8)


@given(TEXTS, st.integers(1, 40))
def test_drafts_are_chains_whose_match_grows_by_one_a_token(text, most):
    p = NgramProposer()
    p.begin(text)
    draft = p.propose(text, Plan(("ngram",), most))
    assert len(draft) in (0, most)
    assert draft.is_chain
    assert draft.q is None
    lengths = [length for length, share, times in draft.evidence if (share, times) == (1.0, 1.0)]
    assert len(lengths) == len(draft)
    assert lengths == [lengths[0] + i for i in range(len(lengths))] if lengths else not draft
    assert all(length >= 2 for length in lengths[:1])


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_longest_known_ending_decides(size):
    ending = [1, 2, 3, 4][-size:]
    text = [*ending, 10 + size, 0, 9, *ending]
    p = NgramProposer()
    p.begin(text)
    assert p.propose(text, Plan(("ngram",), 1)).tokens == (10 + size,)
