"""Real recorded answers under given costs: what the controller reaches of what is possible."""

import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from oracle import efficiency, least_ms

from edgespec.bench.replay import SPEC, replay
from edgespec.bench.traces import read_curves, read_records

FLOOR = 0.97
COPYING = ("suffix", "recycling")


def shared():
    """With what the rows of both models said, where that was recorded."""
    places = [os.environ.get("EDGESPEC_TRACES"), Path(__file__).parents[3] / "shared" / "traces"]
    for place in map(Path, filter(None, places)):
        for name in ("dev.rows.jsonl", "dev.jsonl"):
            if (place / name).exists():
                return read_records(place / name), read_curves(place / "curves.json")
    pytest.skip("no recorded traces: EDGESPEC_TRACES is not set, and no shared/traces beside the project")


def bare(records):
    return [replace(record, top=()) for record in records]


@pytest.mark.traces
@pytest.mark.parametrize(
    ("spec", "trees", "leaves", "average", "each"),
    [
        (("suffix",), False, False, 0.85, 0.77),
        (("suffix",), True, False, 0.85, 0.77),
        (COPYING, True, False, 0.85, 0.77),
        (SPEC, True, False, 0.73, 0.66),
        (SPEC, True, True, 0.73, 0.66),
    ],
    ids=["copying chains", "+ trees", "+ recycling", "+ draft chains", "+ their leaves"],
)
def test_efficiency_on_recorded_answers_is_kept(spec, trees, leaves, average, each):
    """Least time / time of the controller, geometric mean over records, cold."""
    records, costs = shared()
    rows = list(replay(records if leaves else bare(records), costs, spec=spec, trees=trees))
    draft = "draft" in spec
    least = {(r.id, name): least_ms(r, curve, draft=draft) for r in records for name, curve in costs.items()}
    reached = efficiency(rows, least)
    worst = min(rows, key=lambda r: r.plain_ms / r.policy_ms)
    mean = sum(reached.values()) / len(reached)
    print(f"\n{ {k: round(v, 3) for k, v in reached.items()} }, mean {mean:.4f}, worst {worst}")
    assert worst.plain_ms / worst.policy_ms >= FLOOR
    assert mean >= average
    assert min(reached.values()) >= each


def speed(records, costs, **how):
    """Over plain on the GPU-like curve, none under the floor."""
    rows = list(replay(records, {"gpu-ish": costs["gpu-ish"]}, **how))
    assert min(r.plain_ms / r.policy_ms for r in rows) >= FLOOR
    return math.prod(r.plain_ms / r.policy_ms for r in rows) ** (1 / len(rows))


@pytest.mark.traces
def test_copying_in_several_ways_pays_where_rows_cost_little():
    records, costs = shared()
    chains = speed(records, costs, spec=("suffix",), trees=False)
    assert speed(records, costs, spec=("suffix",)) > 1.01 * chains


@pytest.mark.traces
def test_what_rows_said_pays_where_rows_cost_little():
    """What followed a token before, and what else the draft model says."""
    records, costs = shared()
    if not any(record.best for record in records):
        pytest.skip("these traces do not have the rows: edgespec bench --record NEW --extend OLD adds them")
    assert speed(records, costs, spec=COPYING) > 1.01 * speed(records, costs, spec=("suffix",))
    assert speed(records, costs) > 1.04 * speed(bare(records), costs)
