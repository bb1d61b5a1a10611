"""Recorded answers under given costs: the real controller and proposers, no model."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import copied_runs, drafted_runs, least_ms

from edgespec.bench.replay import SPEC, replay
from edgespec.bench.replay_report import as_json, as_table
from edgespec.bench.traces import Curve, Record, read_curves, read_records, read_traces
from edgespec.cli import main
from edgespec.errors import UsageError

DATA = Path(__file__).parents[1] / "data"
TRACES, CURVES = DATA / "replay.jsonl", DATA / "curves.json"
FLOOR = 0.97
COPYING = ("suffix", "recycling")
KEYS = ["id", "category", "curve", "plain_ms", "policy_ms", "rounds", "draft_n", "draft_n_accepted"]
RECORDS, COSTS = read_records(TRACES), read_curves(CURVES)
BOTH = pytest.mark.parametrize("draft", [False, True], ids=["copying", "with the draft"])


@pytest.fixture(scope="module", params=[False, True], ids=["copying", "with the draft"])
def results(request):
    return request.param, list(replay(RECORDS, COSTS, spec=SPEC if request.param else COPYING))


def test_there_is_a_row_for_every_record_and_curve(results):
    rows = [(r.curve, r.id) for r in results[1]]
    assert rows == [(curve, record.id) for curve in COSTS for record in RECORDS]


def test_no_record_is_slower_than_plain_by_more_than_three_percent(results):
    slow = [(r.id, r.curve, r.plain_ms / r.policy_ms) for r in results[1] if r.policy_ms]
    assert [row for row in slow if row[2] < FLOOR] == []


def test_nothing_is_faster_than_the_least_time_there_is(results):
    """Continuations by count, and mixed drafts, may know more than either source of the oracle alone."""
    draft, rows = results
    for r in rows:
        record = next(record for record in RECORDS if record.id == r.id)
        if record.category in ("copying", "writing", "chat"):
            assert r.policy_ms >= 0.8 * least_ms(record, COSTS[r.curve], draft=draft) - 1e-6


def test_every_token_is_emitted_once_and_counted_once(results):
    for r in results[1]:
        n = len(next(record for record in RECORDS if record.id == r.id).output)
        assert 0 <= r.draft_n_accepted <= r.draft_n
        assert r.rounds + r.draft_n_accepted - (n - 1) in (0, 1), "the last round may draft past the end"


def test_copying_pays_where_there_is_something_to_copy(results):
    speed = {(r.id, r.curve): r.plain_ms / r.policy_ms for r in results[1] if r.policy_ms}
    for curve in COSTS:
        assert speed["copy", curve] > (1.02 if curve == "steep" else 2.5)
        assert speed["loop", curve] > (1.02 if curve == "steep" else 2.0)
        assert speed["half", curve] > 0.99
    assert speed["copy", "flat"] > 20


def test_time_counts_from_the_first_token_on(results):
    for r in results[1]:
        record = next(record for record in RECORDS if record.id == r.id)
        assert r.plain_ms == pytest.approx((len(record.output) - 1) * 1e3 * COSTS[r.curve].verify(1))
        if r.draft_n == 0 and not results[0]:
            assert r.policy_ms == pytest.approx(r.plain_ms)
    assert {(r.plain_ms, r.policy_ms, r.rounds) for r in results[1] if r.id == "one"} == {(0.0, 0.0, 0)}


@BOTH
@pytest.mark.parametrize("warm", [False, True])
def test_replaying_again_gives_the_same_to_the_last_digit(draft, warm):
    first, second = (
        list(replay(RECORDS[2:], COSTS, spec=SPEC if draft else COPYING, warm=warm)) for _ in range(2)
    )
    assert first == second


def test_cold_records_know_nothing_of_each_other_and_warm_ones_do():
    cold = list(replay(RECORDS, COSTS))
    alone = list(replay(RECORDS[3:4], COSTS))
    assert [r for r in cold if r.id == RECORDS[3].id] == alone
    again = [replace(RECORDS[1], id=str(i)) for i in range(6)]
    warm, fresh = list(replay(again, COSTS, warm=True)), list(replay(again, COSTS))
    for curve in COSTS:
        assert len({r.policy_ms for r in fresh if r.curve == curve}) == 1
    assert [r for r in warm if r.id == "0"] == [r for r in fresh if r.id == "0"], "the first is cold"
    assert warm != fresh
    assert sum(r.policy_ms for r in warm) < 1.01 * sum(r.policy_ms for r in fresh)


@pytest.mark.parametrize("curve", COSTS)
def test_warm_records_stay_above_the_floor_too(curve):
    for r in replay(RECORDS * 2, {curve: COSTS[curve]}, warm=True):
        assert not r.policy_ms or r.plain_ms / r.policy_ms >= FLOOR


def test_without_the_draft_it_is_as_if_none_had_been_recorded():
    bare = [replace(record, match=(), p=()) for record in RECORDS]
    assert list(replay(RECORDS, COSTS, spec=COPYING)) == list(replay(bare, COSTS))


def test_a_draft_model_that_is_always_right_brings_what_it_could():
    n = 300
    record = Record("right", "", (1, 2, 3), tuple(range(10, 10 + n)), (True,) * n, (1.0,) * n)
    (r,) = replay([record], {"flat": COSTS["flat"]})
    assert r.draft_n == r.draft_n_accepted
    assert least_ms(record, COSTS["flat"]) / r.policy_ms > 0.9


# What the rows of both models said


FLAT = {"flat": COSTS["flat"]}
N = 200
SUCCESSORS = [(i * 7919 + 1) % 61 for i in range(N)]
"""No pair of tokens comes often enough to be copied."""


def wandering(rank=1, **parts):
    """An answer in which a token is followed by what was `rank`-th likeliest where it came last."""
    output, best, last = [100], [(100, *range(200, 207))], {}
    for i in range(1, N):
        before = output[-1]
        token = last[before] if before in last else SUCCESSORS[i]
        output.append(token)
        last[before] = SUCCESSORS[-i]
        others = [300 + i * 8 + j for j in range(7)]
        others[rank - 1] = last[before]
        best.append((token, *others))
    return Record("wandering", "", (1, 2, 3), tuple(output), best=tuple(best), **parts)


def timed(record, curves=FLAT, **how):
    (result,) = replay([record], curves, **how)
    return result


def test_recycling_learns_from_recorded_rows():
    record, alone = wandering(), replace(wandering(), best=())
    told, bare = timed(record, spec=COPYING), timed(record, spec=("suffix",))
    assert told.policy_ms < 0.8 * bare.policy_ms
    assert told.policy_ms < 0.8 * timed(alone, spec=COPYING).policy_ms
    assert timed(wandering(7), spec=COPYING).policy_ms > told.policy_ms, "a place that is seldom right"


def test_recycling_knows_only_the_rows_of_rounds_that_were():
    record = wandering()
    other = (*record.best[:-2], *((row[0], *range(900, 907)) for row in record.best[-2:]))
    assert timed(record, spec=COPYING) == timed(replace(record, best=other), spec=COPYING)


def test_warm_recycling_knows_the_answers_before():
    record = wandering()
    first, second = replay([record, record], FLAT, spec=("recycling",), warm=True)
    assert second.policy_ms < first.policy_ms


def drafted(right, p):
    """A draft model whose first, second, ... choice is right, in turn; None where it is wrong altogether."""
    output = tuple(range(1000, 1000 + N))
    top = []
    for i, token in enumerate(output):
        ids = [1, 2, 3]
        if right[i % len(right)] is not None:
            ids[right[i % len(right)]] = token
        top.append(tuple(zip(ids, p, strict=True)))
    match = tuple(found[0][0] == token for found, token in zip(top, output, strict=True))
    return Record("drafted", "", (1, 2, 3), output, match, (p[0],) * N, tuple(top))


@pytest.mark.parametrize("row", [0.0, 1.0], ids=["free rows", "dear rows"])
def test_other_choices_of_the_draft_model_hedge_where_it_is_in_doubt(row):
    curves = {"flat": replace(COSTS["flat"], draft=1e-3, draft_row=row)}
    record = drafted((0, 0, 1), (0.6, 0.35, 0.04))
    hedged, chains = timed(record, curves), timed(replace(record, top=()), curves)
    assert hedged.policy_ms < 0.85 * chains.policy_ms
    assert timed(record, curves, trees=False) == chains


def test_what_the_draft_model_says_behind_a_wrong_token_is_never_accepted():
    wrong = timed(drafted((None,), (0.6, 0.3, 0.1)))
    assert wrong.draft_n_accepted == 0
    assert wrong.plain_ms / wrong.policy_ms >= FLOOR


def test_rows_of_the_draft_model_cost_what_the_curve_says_or_what_rows_of_the_target_do(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(
        '{"a": {"n": [1, 8], "ms": [1, 1.7]}, "b": {"n": [1, 8], "ms": [1, 8], "draft_row": 0.25}}'
    )
    curves = read_curves(path)
    assert curves["a"].row == pytest.approx(0.1)
    assert curves["b"].row == 0.25


def test_traces_are_read_as_they_are(tmp_path):
    path = tmp_path / "t.jsonl"
    trace = {
        "id": "a", "category": "b", "prompt": [1], "output": [2, 3], "best": [[2, 4], [3, 5]], "more": 1,
        "draft": {"match": [True, False], "p": [0.5, 0.25], "top": [[[2, 0.5]], [[4, 0.25], [3, 0.2]]]},
    }  # fmt: skip
    path.write_text(json.dumps(trace) + "\n")
    assert read_traces(path) == [trace]
    (record,) = read_records(path)
    assert record.best == ((2, 4), (3, 5))
    assert record.top == (((2, 0.5),), ((4, 0.25), (3, 0.2)))


# The oracle


RUNS = st.lists(st.integers(0, 3), min_size=1, max_size=9)


def slowest_search(record, curve, draft, i=1):
    """All sequences of rounds, one after the other."""
    n = len(record.output)
    if i >= n:
        return 0.0
    copied = copied_runs(record.prompt, record.output)[i]
    drafted = drafted_runs(record.match)[i] if draft else 0
    times = []
    for each, run in ((0.0, copied), (curve.draft, drafted)):
        for k in range(run + 1):
            rest = slowest_search(record, curve, draft, i + k + 1)
            times.append(1e3 * (k * each + curve.verify(k + 1)) + rest)
    return min(times)


@given(RUNS, RUNS, st.data())
def test_the_oracle_finds_what_trying_everything_finds(prompt, output, data):
    match = data.draw(st.lists(st.booleans(), min_size=len(output), max_size=len(output)))
    curve = Curve((1, 2, 4, 64), (1.0, 1.5, 1.6, 20.0), 0.2)
    record = Record("x", "", tuple(prompt), tuple(output), tuple(match), (0.5,) * len(output))
    for draft in (False, True):
        assert least_ms(record, curve, draft=draft) == pytest.approx(slowest_search(record, curve, draft))


def test_the_oracle_copies_from_the_longest_match_and_the_latest_of_equals():
    assert copied_runs([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])[2] == 3
    assert copied_runs([1, 2, 3, 9, 1, 2, 7], [1, 2, 7])[2] == 1
    assert copied_runs([1, 2, 3], [2, 9])[1] == 0, "a match of one token is none"
    assert drafted_runs([True, True, False, True]) == [2, 1, 0, 1, 0]


# Files


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "3",
        "[1]",
        "null",
        "{}",
        '{"id": "a", "prompt": [1]}',
        '{"id": "a", "prompt": [1], "output": "text"}',
        '{"id": "a", "prompt": [1], "output": [Infinity]}',
        '{"id": "a", "prompt": [1], "output": [2], "draft": {"match": [true]}}',
        '{"id": "a", "prompt": [1], "output": [2], "draft": {"match": [true], "p": []}}',
        '{"id": "a", "prompt": [1], "output": [2], "draft": 7}',
        '{"id": "a", "prompt": [1], "output": [2], "best": [[2], [3]]}',
        '{"id": "a", "prompt": [1], "output": [-1]}',
        '{"id": "a", "prompt": [2147483648], "output": [2]}',
        '{"id": "a", "prompt": [1], "output": [2], "best": [[2, 1e12]]}',
        '{"id": "a", "prompt": [1], "output": [2], "draft": {"match": [true, true], "p": [1, 1]}}',
        '{"id": "a", "prompt": [1], "output": [2], "best": [[]]}',
        '{"id": "a", "prompt": [1], "output": [2], "draft": {"match": [true], "p": [1], "top": [[2]]}}',
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": "ok", "prompt": [1], "output": [2]}\n\n' + line + "\n")
    with pytest.raises(UsageError, match="line 3"):
        read_records(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "line 1 column 1"),
        ("[]", "expected {name"),
        ("{}", "expected {name"),
        ('{"a": 1}', "a: n and ms must be lists"),
        ('{"a": {"n": [], "ms": []}}', "n must rise from 1"),
        ('{"a": {"n": [1, 2.5], "ms": [1, 2]}}', "whole numbers"),
        ('{"a": {"n": [2, 4], "ms": [1, 2]}}', "n must rise from 1"),
        ('{"a": {"n": [1, 2], "ms": [1]}}', "one ms for each"),
        ('{"a": {"n": [1, 4, 2], "ms": [1, 2, 3]}}', "n must rise"),
        ('{"a": {"n": [1, 2], "ms": [1, 0]}}', "ms must be above 0"),
        ('{"a": {"n": [1, 2], "ms": [1, NaN]}}', "ms must be above 0"),
        ('{"a": {"n": [1, 2], "ms": [1, 2], "draft_ms": -1}}', "must be above 0"),
        ('{"a": {"n": [1, Infinity], "ms": [1, 2]}}', "whole numbers"),
        ('{"a": {"n": [1, 2], "ms": [1, 2], "draft_row": -1}}', "draft_row"),
    ],
)
def test_a_file_that_holds_no_curves_is_a_usage_error(tmp_path, content, told):
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=rf"c\.json .*{told}"):
        read_curves(path)


@pytest.mark.parametrize("read", [read_records, read_curves])
def test_files_that_cannot_be_read_are_usage_errors(tmp_path, read):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "absent", tmp_path, tmp_path / "binary"):
        with pytest.raises(UsageError, match="cannot read"):
            read(path)


def test_a_curve_is_linear_between_its_points_and_proportional_beyond():
    curve = read_curves(CURVES)["q8"]
    assert [curve.verify(n) for n in (1, 2, 3, 64, 128)] == pytest.approx([0.06, 0.096, 0.105, 0.9, 1.8])


# The command


def command(*arguments):
    return main(["replay", str(TRACES), "--curve", str(CURVES), *arguments])


def test_json_is_one_list_with_exactly_the_rows(capfd):
    assert command("-o", "json", "--no-draft") == 0
    out, err = capfd.readouterr()
    rows = json.loads(out)
    assert err == ""
    assert [list(row) for row in rows] == [KEYS] * (len(RECORDS) * len(COSTS))
    assert rows == [asdict(r) for r in replay(RECORDS, COSTS, spec=COPYING)]


@pytest.mark.parametrize(
    ("flags", "how"),
    [
        ((), {}),
        (("--warm",), {"warm": True}),
        (("--no-draft",), {"spec": COPYING}),
        (("--spec", "suffix,draft"), {"spec": ("suffix", "draft")}),
        (("--spec", "suffix", "--no-trees"), {"spec": ("suffix",), "trees": False}),
    ],
)
def test_options_reach_the_replay(flags, how, capfd):
    assert command("-o", "json", *flags) == 0
    assert capfd.readouterr().out == as_json(replay(RECORDS, COSTS, **how))


def test_the_table_has_means_by_curve_and_category_and_the_worst_record(capfd):
    assert command() == 0
    out = capfd.readouterr().out
    rows = list(replay(RECORDS, COSTS))
    assert out == as_table(rows)
    lines = [line.split(" | ") for line in out.splitlines() if line.startswith("| ")]
    assert len(lines) == 1 + len(COSTS) * (len({r.category for r in RECORDS}) + 1)
    mine = [r.plain_ms / r.policy_ms for r in rows if r.curve == "q8" and r.policy_ms]
    (whole,) = [cells for cells in lines if cells[0] == "| q8" and cells[1] == "all"]
    assert whole[2] == str(len(RECORDS))
    assert whole[3] == f"{math.prod(mine) ** (1 / len(mine)):.2f}x"
    assert whole[4].startswith(f"{min(mine):.2f}x ")


def test_a_table_of_nothing_is_a_table():
    assert as_table([]).startswith("| curve |")
    assert "| c | - | 1 | - | - | 0 / 0 | - |" in as_table(
        list(replay([RECORDS[4]], {"c": COSTS["flat"]}))
    ).replace("chat", "-")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "TRACES"),
        ([str(TRACES)], "--curve"),
        (["absent.jsonl", "--curve", str(CURVES)], "absent.jsonl"),
        ([str(TRACES), "--curve", "absent.json"], "absent.json"),
        ([str(CURVES), "--curve", str(CURVES)], "line 1"),
        ([str(TRACES), "--curve", str(TRACES)], "replay.jsonl"),
        ([str(TRACES), "--curve", str(CURVES), "-o", "xml"], "xml"),
        ([str(TRACES), "--curve", str(CURVES), "--spec", "suffix,magic"], "magic"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(arguments, part, capfd):
    assert main(["replay", *arguments]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert part in err
