"""Drafts as trees: cutting and merging."""

from hypothesis import given
from hypothesis import strategies as st

from edgespec.types import Draft, chain, merge

PATHS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), max_size=4)


def paths(draft):
    """Every way from the root to a node, as tokens."""
    ways = []
    for token, parent in zip(draft.tokens, draft.parents, strict=True):
        ways.append((*(ways[parent] if parent >= 0 else ()), token))
    return ways


def drafts(ways):
    return [chain(way, "suffix", [(1.0, 1.0, 1.0)] * len(way)) for way in ways]


@given(PATHS)
def test_a_merged_draft_has_every_path_once(ways):
    merged = merge(drafts(ways))
    wanted = {tuple(way[:n]) for way in ways for n in range(1, len(way) + 1)}
    assert set(paths(merged)) == wanted
    assert len(merged) == len(wanted)
    assert all(parent < i for i, parent in enumerate(merged.parents))


@given(PATHS, st.randoms())
def test_a_kept_part_has_the_paths_of_its_nodes(ways, random):
    merged = merge(drafts(ways))
    keep = {n for n in range(len(merged)) if random.random() < 0.6}
    while missing := {merged.parents[n] for n in keep if merged.parents[n] >= 0} - keep:
        keep |= missing
    nodes = sorted(keep)
    assert paths(merged.keep(nodes)) == [paths(merged)[n] for n in nodes]


def test_of_equal_nodes_the_first_draft_s_stays():
    first, second = chain([5], "suffix", [(9.0, 1.0, 1.0)]), chain([5, 6], "ngram", [(2.0, 1.0, 1.0)] * 2)
    merged = merge([first, second])
    assert merged.sources == ("suffix", "ngram")
    assert merged.evidence == ((9.0, 1.0, 1.0), (2.0, 1.0, 1.0))
    assert merge([]) == Draft()


def test_of_equal_nodes_the_longer_match_stays():
    short = chain((1, 2), "suffix", [(2.0, 1.0, 1.0), (3.0, 1.0, 1.0)])
    long = chain((1, 5), "memory", [(9.0, 1.0, 1.0), (10.0, 1.0, 1.0)])
    place = chain((1,), "recycling", [(0.0,)])
    for drafts in ([short, long, place], [long, short, place]):
        merged = merge(drafts)
        assert merged.sources[0] == "memory"
        assert merged.evidence[0] == (9.0, 1.0, 1.0)
