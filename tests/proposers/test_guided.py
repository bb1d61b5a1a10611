"""One draft from a model and from copying."""

import pytest
from engine_kit import N_VOCAB, PROMPT, looping
from hypothesis import given
from hypothesis import strategies as st

from edgespec.backends.scripted import ScriptedBackend, from_script
from edgespec.proposers import ModelProposer, SuffixProposer
from edgespec.proposers.guided import guided
from edgespec.types import NO_DRAFT, Plan, SamplingSettings

TEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=40)


def matched(text):
    p = SuffixProposer()
    p.begin(text)
    return p.match(text)


def choices(*given):
    """A plan that gives these answers in turn, and notes what it is asked."""
    asked, left = [], list(given)

    def choose(drafted, copied):
        asked.append((list(drafted), list(copied)))
        return left.pop(0)

    return Plan(("draft",), 16, choose=choose), asked


def says(*tokens):
    left, paths = list(tokens), []

    def draw(path):
        paths.append(list(path))
        return left.pop(0), 0.7

    return draw, paths


def test_copying_inside_a_draft_goes_on_from_the_drafted_path():
    text = [1, 2, 3, 4, 5, 6, 7, 1, 2]
    draw, paths = says(3)
    plan, asked = choices("draft", "copy")
    draft = guided(draw, matched(text), plan, 6)
    assert draft.tokens == (3, 4, 5, 6, 7, 1)
    assert draft.sources == ("draft", *("suffix",) * 5)
    assert draft.is_chain
    assert draft.evidence[0] == (0.7, 1.0)
    assert [length for length, *_ in draft.evidence[1:]] == [3, 4, 5, 6, 7]
    assert paths == [[]]
    assert asked[1][1] == list(draft.evidence[1:]), "the choice is made on what would be copied"


@pytest.mark.parametrize(("token", "agrees"), [(3, 1.0), (9, -1.0)])
def test_the_evidence_says_whether_copying_agrees(token, agrees):
    draw, _ = says(token)
    plan, _ = choices("draft", "stop")
    assert guided(draw, matched([1, 2, 3, 1, 2]), plan, 6).evidence == ((0.7, agrees),)


def test_where_copying_knows_nothing_the_evidence_says_so():
    for guide in (None, matched([1, 2, 3, 4])):
        draw, _ = says(5)
        plan, asked = choices("draft", "stop")
        assert guided(draw, guide, plan, 6).evidence == ((0.7, 0.0),)
        assert asked[0] == ([], [])


def test_after_a_token_that_copying_did_not_expect_it_looks_elsewhere():
    text = [1, 2, 3, 9, 8, 7, 1, 2]
    draw, _ = says(9)
    plan, _ = choices("draft", "copy")
    assert guided(draw, matched(text), plan, 4).tokens == (9, 8, 7, 1)


def test_a_draft_may_be_copied_from_its_first_token():
    draw, paths = says()
    plan, _ = choices("copy")
    assert guided(draw, matched([1, 2, 3, 1, 2]), plan, 4).tokens == (3, 1, 2, 3)
    assert paths == []


def test_stopping_at_once_is_no_draft():
    draw, paths = says()
    plan, _ = choices("stop")
    assert guided(draw, matched([1, 2, 1]), plan, 4) == NO_DRAFT
    assert paths == []


@given(TEXTS, st.integers(1, 12), st.integers(0, 12), st.data())
def test_a_draft_is_never_longer_than_allowed_and_copies_what_the_suffix_would(text, most, after, data):
    tokens = data.draw(st.lists(st.integers(0, 2), min_size=after, max_size=after))
    draw, _ = says(*tokens)
    plan, _ = choices(*["draft"] * after, "copy")
    draft = guided(draw, matched(text), plan, most)
    assert len(draft) <= most
    drawn = tuple(tokens[:most])
    assert draft.tokens[: len(drawn)] == drawn
    whole, fresh = [*text, *drawn], SuffixProposer()
    for i, (length, _, times) in enumerate(draft.evidence[len(drawn) :]):
        ending = [*whole, *draft.tokens[len(drawn) :][:i]][-int(length) :]
        joined = ",".join(map(str, [*text, *draft.tokens]))
        assert ",".join(map(str, ending)) in joined
        assert times >= 1
    fresh.begin(text)
    if not drawn:
        assert draft.tokens == fresh.propose(text, Plan(("suffix",), most)).tokens


def test_looking_ahead_leaves_the_text_that_copying_knows_as_it_was():
    p, text = SuffixProposer(), [1, 2, 3, 4, 1, 2]
    p.begin(text)
    before = p.propose(text, Plan(("suffix",), 5))
    draw, _ = says(7, 8, 3)
    plan, _ = choices("draft", "draft", "draft", "stop")
    guided(draw, p.match(text), plan, 6)
    assert p.propose(text, Plan(("suffix",), 5)) == before


def test_a_model_with_a_guide_copies_and_is_asked_for_less():
    text = [1, 2, 3, 4, 5, 6, 7, 1, 2]
    backend = ScriptedBackend(from_script([3, 4, 5, 6, 7], len(text), N_VOCAB), N_VOCAB)
    guide = SuffixProposer()
    guide.begin(text)
    p = ModelProposer(backend, N_VOCAB, lambda _: None, guide)
    plan, _ = choices("draft", "copy")
    draft = p.propose(text, plan)
    assert draft.tokens[:5] == (3, 4, 5, 6, 7)
    assert draft.evidence[0][1] == 1.0
    assert backend.calls == 1


def test_a_sampled_draft_is_never_copied_nor_judged_by_copying():
    guide = SuffixProposer()
    guide.begin(PROMPT)
    p = ModelProposer(ScriptedBackend(looping(), N_VOCAB), N_VOCAB, lambda _: None, guide)
    p.configure(SamplingSettings(temperature=1.0, seed=2), "rejection")
    plan, asked = choices("draft", "draft", "stop")
    draft = p.propose(PROMPT, plan)
    assert draft.sources == ("draft", "draft")
    assert all(copied == [] for _, copied in asked)
    assert [agrees for _, agrees in draft.evidence] == [0.0, 0.0]
    assert len(draft.q) == 2


def test_other_tokens_are_leaves_beside_what_the_draft_goes_on_from():
    asked = []

    def beside(path):
        asked.append(list(path))
        return [(40 + len(path), 0.5), (50 + len(path), 0.25)]

    tops = [0.7, 0.99, 0.6]
    plan, _ = choices("draft", "draft", "draft", "copy")
    draft = guided(
        lambda path: ((3, 4, 5)[len(path)], tops[len(path)]),
        matched([1, 2, 3, 4, 5, 42, 1, 2]),
        plan,
        5,
        beside=beside,
    )
    assert draft.tokens == (3, 40, 50, 4, 5, 42, 52, 42, 1)
    assert draft.parents == (-1, -1, -1, 0, 3, 3, 3, 4, 7)
    assert draft.evidence[1:3] == ((0.5, -1.0), (0.25, -1.0))
    assert draft.sources == ("draft",) * 7 + ("suffix",) * 2
    assert asked == [[], [3, 4]], "not where the model is sure"
