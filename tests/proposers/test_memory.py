import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgespec.proposers.memory import MemoryProposer
from edgespec.proposers.textindex import LEAST, LONGEST, TextIndex
from edgespec.types import NO_DRAFT, Plan

TEXTS = st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1, max_size=4)
PLAN = Plan(("memory",), 8)


def index(*texts):
    return TextIndex([(i, np.array(text, np.int32)) for i, text in enumerate(texts)])


def longest(texts, tail):
    """Of the matches of an ending with something that goes on."""
    best = 0
    for text in texts:
        for end in range(1, len(text)):
            n = 0
            while n < min(end, len(tail), LONGEST) and text[end - 1 - n] == tail[-1 - n]:
                n += 1
            best = max(best, n)
    return best


def proposer(*texts):
    made = MemoryProposer()
    made.take_in(index(*texts))
    return made


@given(TEXTS, st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_the_longest_match_is_found(texts, tail):
    length, places = index(*texts).find(tail[::-1])
    expected = longest(texts, tail)
    assert length == (expected if expected >= LEAST else 0)
    assert bool(places) == (length > 0)


def test_every_position_of_a_long_text_is_found_and_known_by_its_number():
    rng = np.random.default_rng(1)
    texts = [rng.integers(0, 150_000, 400).tolist() for _ in range(20)]
    found = index(*texts)
    for number, text in enumerate(texts):
        for end in (3, 57, 399):
            length, places = found.find(text[max(0, end - LONGEST) : end][::-1])
            assert length == min(end, LONGEST)
            assert [found.tokens[at] for at in places] == [text[end]]
            assert found.number(places[0]) == number


def test_a_match_goes_on_as_the_text_did_and_no_further_than_its_end():
    memory = proposer([1, 2, 3, 4, 5, 6], [7, 8, 9])
    draft = memory.propose([0, 1, 2, 3], PLAN)
    assert draft.tokens == (4, 5, 6)
    assert draft.is_chain
    assert set(draft.sources) == {"memory"}
    assert [length for length, *_ in draft.evidence] == [3, 4, 5]
    assert memory.propose([0, 1, 2, 3, 4, 5, 6], PLAN) == NO_DRAFT


def test_what_most_of_the_matches_did_is_drafted_with_their_share():
    draft = proposer([1, 2, 3, 4, 5], [1, 2, 3, 9], [1, 2, 3, 4, 6]).propose([1, 2, 3], PLAN)
    assert draft.tokens == (4, 6), "the latest among equals"
    assert [(share, times) for _, share, times in draft.evidence] == [(2 / 3, 2), (1 / 2, 1)]


def test_short_matches_and_unknown_text_draft_nothing():
    memory = proposer([1, 2, 3, 4, 5])
    for history in ([1], [1, 2], [8, 1, 2], [9] * 40):
        assert memory.propose(history, PLAN) == NO_DRAFT
    assert MemoryProposer().propose([1, 2, 3], PLAN) == NO_DRAFT


def test_an_answer_is_followed_and_a_turn_off_looked_up_anew():
    long = list(range(10, 60))
    memory = proposer(long, [5, 6, 7, 8])
    memory.begin([1])
    history = [1, *long[:20]]
    assert memory.propose(history, PLAN).tokens == tuple(long[20:28])
    history += long[20:25]
    assert memory.propose(history, PLAN).tokens == tuple(long[25:33])
    assert memory.recalled == {0: 5}
    history += [5, 6, 7]
    assert memory.propose(history, PLAN).tokens == (8,)


def test_what_was_just_answered_is_known_next():
    memory = proposer([1, 2, 3, 4])
    memory.remember(-1, np.arange(10, 30, dtype=np.int32))
    memory.remember(-2, np.arange(40, 60, dtype=np.int32))
    assert memory.propose([12, 13, 14], PLAN).tokens == tuple(range(15, 23))
    memory.begin(())
    assert memory.propose([42, 43, 44], PLAN).tokens == tuple(range(45, 53))
    memory.begin(())
    assert memory.propose([1, 2, 3], PLAN).tokens == (4,)


def test_much_that_is_new_is_still_all_known():
    memory, rng = MemoryProposer(), np.random.default_rng(2)
    texts = [rng.integers(0, 50_000, 30_000).astype(np.int32) for _ in range(6)]
    for number, text in enumerate(texts):
        memory.remember(-1 - number, text)
    for text in texts:
        memory.begin(())
        assert memory.propose(text[5:20].tolist(), PLAN).tokens == tuple(text[20:28].tolist())


def test_the_same_prompt_is_a_match_before_anything_was_said():
    prompt, answer = [4, 4, 4, 4], list(range(10, 40))
    memory = MemoryProposer()
    memory.begin(prompt)
    memory.remember(-1, np.array([*memory.anchor, *answer], np.int32))
    memory.begin(prompt)
    draft = memory.propose(prompt, PLAN)
    assert draft.tokens == tuple(answer[:8])
    assert draft.evidence[0][0] == 8
    assert memory.propose([*prompt, 10], PLAN).tokens == tuple(answer[1:9])
    memory.begin([4, 4, 4])
    assert memory.propose([4, 4, 4], PLAN) == NO_DRAFT
    assert memory.propose([4, 4, 4, 10, 11, 12], PLAN).tokens == tuple(answer[3:11])


def test_a_prompt_that_ends_in_an_earlier_answer_is_continued():
    memory = proposer(list(range(10, 40)))
    prompt = [1, 12, 13, 14]
    memory.begin(prompt)
    assert memory.propose(prompt, PLAN).tokens == tuple(range(15, 23))


def test_anchors_are_never_drafted():
    memory = MemoryProposer()
    memory.begin([7])
    memory.remember(-1, np.array([*memory.anchor, 1, 2, 3], np.int32))
    for n in range(1, 8):
        assert memory.propose([7, *memory.anchor[:n]], PLAN) == NO_DRAFT
