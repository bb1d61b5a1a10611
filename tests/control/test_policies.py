import pytest
from engine_kit import N_VOCAB, PROPOSERS, Guesses, answer, looping, plain, proposer, session

from edgespec.backends.scripted import ScriptedBackend, SimulatedClock
from edgespec.control import AdaptivePolicy, FixedPolicy
from edgespec.engine import Session
from edgespec.types import NO_DRAFT, Outcome, Plan, chain


def round_of(drafted, accepted, seconds=1.0):
    """An outcome of a round that drafted and accepted this many."""
    draft = chain([0] * drafted, "suffix", [1.0] * drafted) if drafted else NO_DRAFT
    return Outcome(draft, accepted, accepted + 1, 0, 0.0, seconds, 0.0)


def ready(**how):
    """A policy that knows plain decoding: one second a token."""
    policy = AdaptivePolicy(("suffix",), **how)
    policy.begin()
    while not policy.plan(100).proposers:
        policy.observe(round_of(0, 0))
    return policy


def test_plain_is_measured_before_anything_is_drafted():
    policy = AdaptivePolicy(("suffix",))
    policy.begin()
    assert policy.plan(100) == Plan()
    assert ready().plan(100).max_draft > 0


def test_depth_grows_while_everything_is_accepted_up_to_its_limit():
    policy, depths = ready(draft_max=20), []
    for _ in range(6):
        depths.append(policy.plan(100).max_draft)
        policy.observe(round_of(depths[-1], depths[-1]))
    assert depths == sorted(depths)
    assert depths[1] > depths[0]
    assert depths[-1] == 20


def test_depth_falls_to_what_was_accepted():
    policy = ready()
    for _ in range(3):
        n = policy.plan(100).max_draft
        policy.observe(round_of(n, n))
    deep = policy.plan(100).max_draft
    policy.observe(round_of(deep, 3))
    assert policy.plan(100).max_draft == 4
    policy.observe(round_of(4, 0))
    assert 1 <= policy.plan(100).max_draft <= 2


def test_the_rounds_limit_is_kept():
    policy = ready()
    for limit in (0, 1, 2, 3):
        assert policy.plan(limit).max_draft <= limit
    assert policy.plan(0) == Plan()


def rest(policy, seconds):
    """Useless drafts until the policy gives up; how many rounds that took."""
    for i in range(100):
        if not policy.plan(100).proposers:
            return i
        policy.observe(round_of(2, 0, seconds))
    raise AssertionError("it never gave up")


def test_slow_speculation_rests_says_so_and_is_tried_again_ever_later():
    policy, pauses = ready(), []
    for _ in range(5):
        assert rest(policy, seconds=2.0) <= 8
        assert not policy.status.on
        assert "slower than plain" in policy.status.reason
        pause = 0
        while not policy.plan(100).proposers:
            policy.observe(round_of(0, 0))
            pause += 1
        pauses.append(pause)
        assert policy.status.on
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 8 * pauses[0]


def test_a_new_turn_tries_again_at_once():
    policy = ready()
    rest(policy, seconds=2.0)
    policy.begin()
    assert policy.plan(100).proposers


def test_speculation_that_pays_goes_on():
    policy = ready()
    for _ in range(100):
        n = policy.plan(100).max_draft
        assert n > 0
        policy.observe(round_of(n, n, 1.5))
    assert policy.status.on


@pytest.mark.parametrize("rows", [(1,), (1, 2), (1, 2, 3, 6), (1, 4), (1, 16)])
def test_plans_and_trims_only_reach_allowed_row_counts(rows):
    for policy in (ready_with(rows), FixedPolicy(("suffix",), 9, row_counts=rows)):
        for limit in range(12):
            plan = policy.plan(limit)
            assert plan.max_draft + 1 in rows
            assert bool(plan.proposers) == bool(plan.max_draft)
            for n in range(plan.max_draft + 1):
                assert len(policy.trim(chain([0] * n, "suffix", [1.0] * n))) + 1 in rows


def ready_with(rows):
    policy = AdaptivePolicy(("suffix",), row_counts=rows)
    for _ in range(2):
        policy.observe(round_of(0, 0))
    return policy


def test_unlikely_tails_are_trimmed():
    policy = ready()
    policy.plan(100)
    assert len(policy.trim(chain([0] * 4, "suffix", [0.9, 0.8, 0.2, 0.1]))) == 2


@pytest.mark.parametrize("kind", PROPOSERS)
@pytest.mark.parametrize("rows", [(1, 2), (1, 2, 3), (1, 4, 7)])
def test_every_pass_of_an_answer_has_an_allowed_row_count(kind, rows):
    logits, seen = looping(), []

    class Watching(ScriptedBackend):
        def forward(self, tokens, parents=None, *, rows="all"):
            if rows == "all":
                seen.append(len(tokens))
            return super().forward(tokens, parents, rows=rows)

    for sort in (AdaptivePolicy, FixedPolicy):
        made = proposer(kind, logits)
        args = () if sort is AdaptivePolicy else (8,)
        policy = sort((made.name,), *args, row_counts=rows)
        s = session(Watching(logits, N_VOCAB), made, policy=policy)
        assert answer(s, n=80).ids == plain(logits, n=80).ids
    assert set(seen) <= set(rows)


def test_a_bad_draft_is_off_soon_and_costs_little():
    """On simulated time: a row more costs half a step, and every guess is wrong."""
    logits = looping()
    clock = SimulatedClock()
    target = ScriptedBackend(logits, N_VOCAB, clock=clock, seconds=lambda n: 1.0 + 0.5 * (n - 1))
    wrong = Guesses(lambda h: [(int(logits(tuple(h)).argmax()) + 1) % N_VOCAB] * 8)
    policy = AdaptivePolicy(("draft",))
    s = Session(target, lambda _: False, policy, {"draft": wrong}, clock=clock)
    got = answer(s, n=400)
    drafted = [i for i, o in enumerate(got.outcomes) if len(o.draft)]
    assert drafted[0] < 64
    assert not policy.status.on
    assert got.ids == plain(logits, n=400).ids
    assert sum(len(got.outcomes[i].draft) for i in drafted if i > 64) < 64


@pytest.mark.parametrize(
    ("policy", "word"),
    [(AdaptivePolicy(()), "no proposer"), (AdaptivePolicy(("suffix",), row_counts=(1,)), "row count")],
)
def test_status_says_why_nothing_is_drafted(policy, word):
    assert not policy.status.on
    assert word in policy.status.reason


def test_fixed_depth_is_always_the_same():
    policy = FixedPolicy(("suffix", "ngram"), 5)
    for accepted in (0, 5, 2):
        assert policy.plan(100).max_draft == 5
        policy.observe(round_of(5, accepted))
    assert policy.status.on
    assert policy.status.depth == 5
