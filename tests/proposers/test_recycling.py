import numpy as np

from edgespec.proposers.recycling import RecyclingProposer
from edgespec.types import NO_DRAFT, Plan

CHAIN, TREE = Plan(("recycling",), 3), Plan(("recycling",), 6, tree=True)


def taught(*lessons):
    made = RecyclingProposer()
    for token, *best in lessons:
        made.learn(token, np.array(best, np.int64))
    return made


def test_the_best_successors_follow_one_another():
    made = taught((1, 2, 9), (2, 3, 9), (3, 1, 9))
    draft = made.propose([7, 1], CHAIN)
    assert draft.tokens == (2, 3, 1)
    assert draft.is_chain
    assert made.propose([1, 7], CHAIN) == NO_DRAFT, "nothing was ever computed after 7"


def test_the_last_row_of_a_token_counts():
    made = taught((1, 2, 3), (1, 4, 5))
    assert made.propose([1], CHAIN).tokens == (4,)


def test_a_tree_has_the_likeliest_successors_of_every_token_parents_first():
    draft = taught((1, 2, 3, 4, 5, 6, 7, 8, 9), (2, 20, 21, 22, 23, 24, 25, 26, 27)).propose([1], TREE)
    assert len(draft) == 6
    assert all(parent < node for node, parent in enumerate(draft.parents))
    assert draft.tokens[:2] == (2, 3)
    assert 20 in draft.tokens
    assert draft.parents[draft.tokens.index(20)] == 0


def test_a_successor_that_stays_the_best_is_the_surest():
    made, places = RecyclingProposer(), []
    for best in (2, 2, 2, 2, 3):
        made.learn(1, np.array([best, 8, 9]))
        places.append(made.propose([1], CHAIN).evidence[0])
    assert places == [(2.0,), (1.0,), (0.0,), (0.0,), (2.0,)]
    others = made.propose([1], TREE).evidence[1:3]
    assert others == ((3.0,), (4.0,))


def test_any_id_may_come_in_any_order_and_memory_is_what_was_seen():
    made = taught((150_000, 3, 4), (7, 150_000, 1))
    assert made.propose([7], CHAIN).tokens == (150_000, 3)
    assert taught((7, 1)).propose([7], TREE).tokens[0] == 1, "a vocabulary may be smaller than k"
