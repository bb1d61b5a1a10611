"""What every backend must do, whatever computes underneath. docs/backends.md says how to add one."""

import threading
import time

import numpy as np
import pytest

from edgespec.backends.rows import exact_rows, tried_trees
from edgespec.control import SMALL, FixedPolicy
from edgespec.engine import Request, Session
from edgespec.engine.cascade import Cascade
from edgespec.errors import BackendError, Cancelled
from edgespec.proposers import ModelProposer, SuffixProposer, registry
from edgespec.proposers.memory import MemoryProposer
from edgespec.proposers.suffix import SuffixAhead
from edgespec.text.stream import TokenStream
from edgespec.text.vocabulary import compare
from edgespec.types import SamplingSettings
from tests.backends import subjects
from tests.backends.passes import again_and_again, extend, plain, resident, wrong
from tests.backends.reference import agreement, forced

pytestmark = pytest.mark.model

COUNTS = (2, 3, 4, 5, 6, 8, 12)
EXACT_TREES = ("scripted", "llamacpp", "mlx")
"""On a CPU. ONNX Runtime adds up scores by their place in the cache, where siblings lie in between."""
BRANCHING = ("suffix", "recycling", "lookahead", "draft")
SAMPLINGS = {"greedy": SamplingSettings(temperature=0.0), "sampled": SamplingSettings(seed=1234)}


@pytest.fixture(scope="module")
def model(subject):
    loaded = subject.open()
    yield loaded
    loaded.backend.close()


@pytest.fixture
def backend(model):
    model.backend.abort(False)
    model.backend.truncate(0)
    return model.backend


@pytest.fixture(scope="module")
def exact(subject, model):
    """Row counts that are exact, measured as the runtime measures them."""
    model.backend.truncate(0)
    found = sorted(exact_rows(model.backend, subject.ids[:80], COUNTS))
    print(f"\n{subject.name}: passes of {found} rows equal single rows bit for bit")
    return found


@pytest.fixture(scope="module")
def exact_trees(subject, model, exact):
    """Are trees exact, as the runtime measures them?"""
    model.backend.truncate(0)
    found = dict(tried_trees(model.backend, subject.ids[:80], exact))
    print(f"\n{subject.name}: trees of {found} rows equal single rows bit for bit")
    return bool(found) and all(found.values())


def test_logits_are_those_of_the_weights(subject, backend):
    """Against float32 on the same weights: activations may be rounded to 8 bits, no more."""
    found = agreement(subject.reference, forced(backend, subject.forced))
    print(f"\n{subject.name}: {found}")
    assert found.kl < 1e-2
    assert found.top1 > 0.9


def test_rows_are_float32_and_as_many_as_asked_for(subject, backend):
    ids = subject.ids[:6]
    rows = backend.forward(ids).copy()
    backend.commit(())
    last = backend.forward(ids, rows="last").copy()
    backend.commit(())
    assert rows.shape == (6, backend.n_vocab)
    assert last.shape == (1, backend.n_vocab)
    assert rows.dtype == last.dtype == np.float32
    assert agreement(rows[-1:], last).kl < 1e-2
    assert backend.forward(ids, rows="none").shape == (0, backend.n_vocab)
    backend.commit(range(6))
    assert backend.length == 6


def test_rows_of_one_pass_are_rows_of_single_passes(subject, backend, exact):
    """Bit for bit where `exact_rows` says so, and close at every count."""
    ids = subject.ids
    extend(backend, ids[:20])
    alone = plain(backend, ids[20:32])
    for n in COUNTS:
        backend.truncate(20)
        among = backend.forward(ids[20 : 20 + n]).copy()
        backend.commit(range(n))
        assert agreement(alone[:n], among).kl < 2e-2
        assert n not in exact or np.array_equal(among, alone[:n])


def test_measuring_exactness_leaves_the_cache_as_it_was(subject, backend):
    extend(backend, subject.ids[:12])
    assert 1 in exact_rows(backend, subject.ids[:30], (2, 4))
    assert backend.length == 12


def test_dropped_drafts_leave_no_trace(subject, backend):
    ids = subject.ids
    extend(backend, ids[:50])
    alone = plain(backend, ids[50:56])
    backend.truncate(50)
    for i, token in enumerate(ids[50:56]):
        backend.forward(wrong(backend, ids[i : i + 5]))
        backend.commit(())
        assert backend.length == 50 + i
        assert np.array_equal(backend.forward([token])[0], alone[i])
        backend.commit([0])


def test_partly_wrong_drafts_leave_no_trace(subject, backend, exact):
    ids, n = subject.ids, max(exact)
    extend(backend, ids[:50])
    alone = plain(backend, ids[50 : 50 + n])
    for right in sorted({1, n // 2, n - 1} - {0}):
        backend.truncate(50)
        draft = [*ids[50 : 50 + right], *wrong(backend, ids[50 + right : 50 + n])]
        assert np.array_equal(backend.forward(draft)[:right], alone[:right])
        backend.commit(range(right))
        assert backend.length == 50 + right
        assert np.array_equal(backend.forward([ids[50 + right]])[0], alone[right])
        backend.commit([0])


def test_truncate_brings_back_what_was(subject, backend):
    ids = subject.ids
    extend(backend, ids[:20])
    extend(backend, ids[20:50])
    alone = plain(backend, ids[50:53])
    backend.forward(ids[60:64])
    backend.truncate(20)
    assert backend.length == 20
    extend(backend, ids[20:50])
    assert np.array_equal(plain(backend, ids[50:53]), alone)
    backend.truncate(0)
    extend(backend, ids[:20])
    extend(backend, ids[20:50])
    assert np.array_equal(plain(backend, ids[50:53]), alone)


def test_a_tree_is_its_chains(subject, backend):
    if not backend.capabilities.tree:
        with pytest.raises(BackendError):
            backend.forward([1, 2, 3], [-1, 0, 0])
        assert backend.length == 0
        return
    extend(backend, subject.ids[:40])
    tokens, parents = subject.ids[100:106], [-1, 0, 0, 1, 2, 2]
    tree = backend.forward(tokens, parents).copy()
    backend.commit([0, 2, 5])
    assert backend.length == 43
    after = backend.forward([7])[0].copy()
    for path in ([0, 1, 3], [0, 2, 4], [0, 2, 5]):
        backend.truncate(40)
        rows = backend.forward([tokens[i] for i in path]).copy()
        backend.commit(range(3))
        assert agreement(rows, tree[path]).kl < 1e-2
    assert agreement(backend.forward([7]), after[None]).kl < 1e-2


@pytest.mark.parametrize(
    ("parents", "path"),
    [
        ((-1, 0, 0, 1, 2, 2), (0, 2, 5)),
        ((-1, 0, 0, 0, 0, 4, 5, 6), (0, 4, 5, 6, 7)),
        ((-1, 0, 1, 2, 0, 4, 1, 6), (0, 1, 6, 7)),
        ((-1, 0, 0, 0), (0,)),
    ],
)
def test_a_tree_leaves_what_a_chain_of_the_accepted_path_leaves(
    parents, path, subject, backend, exact, exact_trees
):
    """Bit for bit where `tried_trees` says so, in its rows and in every row that reads the cache later."""
    if not backend.capabilities.tree:
        return
    ids, n = subject.ids, len(parents)
    assert exact_trees == (subject.name in EXACT_TREES)
    extend(backend, ids[:40])
    rows = backend.forward(ids[100 : 100 + n], parents)[list(path)].copy()
    backend.commit(path)
    assert backend.length == 40 + len(path)
    later = plain(backend, ids[60:64])
    backend.truncate(40)
    expected = backend.forward([ids[100 + i] for i in path]).copy()
    backend.commit(range(len(path)))
    expected_later = plain(backend, ids[60:64])
    if exact_trees and n in exact and len(path) in exact:
        assert np.array_equal(rows, expected)
        assert np.array_equal(later, expected_later)
    assert agreement(expected, rows).kl < 1e-2
    assert agreement(expected_later, later).kl < 1e-2


def test_answers_of_many_trees_equal_single_rows(subject, backend, exact, exact_trees):
    """What earlier rounds dropped must not change the order in which later rows are added up."""
    if not exact_trees:
        return
    ids, rng, at = subject.ids, np.random.default_rng(1), 40
    extend(backend, ids[:at])
    alone = plain(backend, ids[at : at + 60])
    backend.truncate(at)
    while at < 90:
        tokens, parents, path = [ids[at]], [-1], [0]
        while len(tokens) + 3 in exact or len(tokens) == 1:
            right, above = int(rng.integers(3)), path[-1]
            path.append(len(tokens) + right)
            tokens += [ids[at + len(path) - 1] if i == right else int(rng.integers(90)) for i in range(3)]
            parents += [above] * 3
        rows = backend.forward(tokens, parents)[path]
        if len(tokens) in exact:
            assert np.array_equal(rows, alone[at - 40 : at - 40 + len(path)])
        kept = path[: int(rng.integers(1, len(path) + 1))]
        backend.commit(kept)
        at += len(kept)
        if at % 5 == 0:
            at -= 2
            backend.truncate(at)


def test_measuring_trees_leaves_the_cache_as_it_was(subject, backend):
    extend(backend, subject.ids[:12])
    before = plain(backend, subject.ids[12:14])
    backend.truncate(12)
    assert all(n > 2 for n, _ in tried_trees(backend, subject.ids[:30], (2, 3, 6)))
    assert backend.length == 12
    assert np.array_equal(plain(backend, subject.ids[12:14]), before)


def test_a_tree_that_is_dropped_leaves_no_trace(subject, backend):
    if not backend.capabilities.tree:
        return
    ids = subject.ids
    extend(backend, ids[:40])
    alone = plain(backend, ids[40:44])
    for drop in (lambda: backend.commit(()), lambda: backend.truncate(40)):
        backend.truncate(40)
        backend.forward([1, 2, 3, 4], [-1, -1, 0, 1])
        drop()
        assert backend.length == 40
        assert np.array_equal(plain(backend, ids[40:44]), alone)


def test_limits_raise_and_change_nothing(subject, backend):
    ids, most = subject.ids, backend.capabilities.max_rows
    extend(backend, ids[:30])
    refused = [
        lambda: backend.forward([]),
        lambda: backend.forward([-1]),
        lambda: backend.forward([backend.n_vocab]),
        lambda: backend.forward([1, 2**40]),
        lambda: backend.forward(ids[: most + 1]),
        lambda: backend.forward([1] * 995, rows="none"),
        lambda: backend.forward([1, 2], [-1]),
        lambda: backend.forward([1, 2, 3], [0, 2, -1]),
        lambda: backend.forward([1, 2, 3], [-1, -1, 0], rows="last"),
        lambda: backend.truncate(31),
        lambda: backend.truncate(-1),
    ]
    for call in refused:
        with pytest.raises(BackendError):
            call()
        assert backend.length == 30
    backend.forward([1, 2])
    for call in (
        lambda: backend.commit([1]),
        lambda: backend.commit([0, 1, 2]),
        lambda: backend.forward([1]),
    ):
        with pytest.raises(BackendError):
            call()
    backend.commit([0])
    assert backend.length == 31


def test_the_context_can_be_filled_to_its_last_token(subject):
    backend = subject.open(n_ctx=96).backend
    extend(backend, subject.ids[: backend.n_ctx - 3])
    backend.forward(subject.ids[:3])
    backend.commit(range(3))
    assert backend.length == backend.n_ctx
    with pytest.raises(BackendError):
        backend.forward([5])
    backend.truncate(backend.n_ctx - 1)
    assert backend.forward([5]).shape == (1, backend.n_vocab)
    backend.close()


def test_abort_stops_a_pass_and_appends_nothing(subject, backend):
    ids = subject.ids
    extend(backend, ids[:20])
    alone = plain(backend, ids[20:22])
    backend.truncate(20)
    at = []

    def stop():
        at.append(time.perf_counter())
        backend.abort(True)

    timer = threading.Timer(0.1, stop)
    timer.start()
    with pytest.raises(Cancelled):
        again_and_again(backend, (ids * 3)[: backend.n_ctx - 20])
    assert time.perf_counter() - at[0] < 5.0
    timer.join()
    assert backend.length == 20
    with pytest.raises(Cancelled):
        backend.forward([1])
    backend.abort(False)
    assert np.array_equal(plain(backend, ids[20:22]), alone)


def test_open_and_close_again_without_leaks(subject):
    sizes = []
    for _ in range(5):
        loaded = subject.open(n_ctx=256)
        assert loaded.backend.forward(subject.ids[:4]).shape == (4, loaded.backend.n_vocab)
        loaded.backend.close()
        loaded.backend.close()
        with pytest.raises(BackendError):
            loaded.backend.forward([1])
        del loaded
        sizes.append(resident())
    assert sizes[-1] - sizes[1] < max(subject.weights, 2**24), f"{sizes}: a model a round would be kept"


def test_vocabulary_is_the_one_of_the_file(subject, model):
    vocabulary = model.vocabulary
    ids = vocabulary.tokenize(subjects.TEXT, special=False)
    assert b"".join(map(vocabulary.piece, ids)).decode() == subjects.TEXT
    assert vocabulary.n_vocab <= model.backend.n_vocab
    if subject.name != "scripted":
        other = subject.vocabulary
        assert compare(other, vocabulary, "llama.cpp's", subject.name) == other.n_vocab
        text = "<|im_start|>user\nNaïve 模型 🙂  x=1<|im_end|>"
        for special in (True, False):
            assert vocabulary.tokenize(text, special=special) == other.tokenize(text, special=special)
        for token in (*range(300), *other.tokenize(text, special=True)):
            assert vocabulary.piece(token) == other.piece(token)
            assert vocabulary.is_eog(token) == other.is_eog(token)
            assert vocabulary.is_control(token) == other.is_control(token)


@pytest.mark.parametrize("how", SAMPLINGS)
def test_text_with_speculation_is_text_without(how, subject, model, backend, exact, exact_trees):
    """In exact mode, for every proposer, at every temperature: ids are equal."""
    draft = subject.open(max_rows=8)
    memory = MemoryProposer()
    proposers = {name: make() for name, make in registry.FREE.items()} | {
        "memory": memory,
        "draft": ModelProposer(draft.backend, draft.backend.n_vocab, lambda _: None),
    }
    assert set(proposers) == set(registry.proposer_names())
    middle, suffix = subject.open(max_rows=8), SuffixProposer()
    inner = {"suffix": SuffixAhead(suffix), "draft": proposers["draft"]}
    quick = Cascade(middle.backend, middle.backend.n_vocab, inner, lambda _: None)
    quick.use(FixedPolicy(tuple(inner), 3))
    proposers[SMALL] = ModelProposer(middle.backend, middle.backend.n_vocab, lambda _: None, suffix, quick)
    session = Session(backend, model.vocabulary.is_eog, FixedPolicy((), 0))
    ways = [(), *((name,) for name in proposers)]
    ways += [(name, "trees") for name in BRANCHING if exact_trees]
    drafted = dict.fromkeys(ways, 0)
    branched = helped = 0
    for prompt in (subject.ids[:48], subject.forced[1]):
        expected = None
        for way in ways:
            session.use(FixedPolicy(way[:1], 5, row_counts=exact, trees="trees" in way), proposers)
            request, stream = Request(SAMPLINGS[how], max_tokens=12), TokenStream(model.vocabulary)
            ids = []
            for event in session.generate(prompt, request, stream):
                ids += [piece.token for piece in event.pieces]
                if event.outcome is not None:
                    drafted[way] += len(event.outcome.draft)
                    branched += not event.outcome.draft.is_chain
            helped += len(quick.verified) if way == (SMALL,) else 0
            if expected is None:
                expected = ids
                memory.remember(len(prompt), np.array(expected, np.int32))
            assert ids == expected, f"{way} after {len(prompt)} tokens"
    draft.backend.close()
    middle.backend.close()
    print(f"\n{subject.name}, {how}, rows {exact}: drafted {drafted}, {branched} trees")
    if max(exact) > 1:
        assert drafted["draft",]
        assert helped
        assert branched > 0 or not exact_trees
        # Passes of a small model may be too quick for their rows to be looked at.
        idle = {(), ("recycling",), ("recycling", "trees")}
        assert how == "sampled" or all(n for way, n in drafted.items() if way not in idle)
