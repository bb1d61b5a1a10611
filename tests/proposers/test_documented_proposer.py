"""The proposer that docs/proposers.md shows is whole, short, and works as it says."""

import re
from pathlib import Path

import numpy as np
import pytest
from bench_kit import BYTES
from engine_kit import CURVES, GREEDY, N_VOCAB, PROMPT, answer, controller, looping, plain, session, timed

from edgespec.api.loading import Settings, assemble
from edgespec.backends.base import LoadedModel, ModelInfo
from edgespec.backends.scripted import ScriptedBackend
from edgespec.control import FixedPolicy
from edgespec.proposers import registry
from edgespec.types import SamplingSettings

PAGE = Path(__file__).parents[2] / "docs" / "proposers.md"
HOT = SamplingSettings(temperature=0.8, seed=3)


@pytest.fixture(scope="module")
def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.fixture
def proposer(blocks):
    names = {"__name__": "pairs"}
    exec(compile(blocks[0], "pairs.py", "exec"), names)
    return names["PairsProposer"]


def test_it_is_one_file_of_less_than_60_lines(blocks):
    assert len(blocks[0].splitlines()) < 60
    assert len(blocks[1].splitlines()) == 1


@pytest.mark.parametrize("sampling", [GREEDY, HOT], ids=["greedy", "sampled"])
def test_it_guesses_and_the_text_stays_the_targets(proposer, sampling):
    logits = looping()
    expected = plain(logits, n=200, sampling=sampling).ids
    for policy in (FixedPolicy(("pairs",), 3), controller(("pairs",), CURVES["flat"])):
        target, clock = timed(logits, CURVES["flat"])
        got = answer(session(target, proposer(), policy=policy, clock=clock), PROMPT, 200, sampling)
        assert got.ids == expected
        assert got.accepted > 5


def few_words(context):
    """Says few different tokens, of 256."""
    row = looping()([token % N_VOCAB for token in context])
    return np.pad(row, (0, 256 - N_VOCAB), constant_values=-50.0)


def test_the_line_in_the_registry_adds_it_to_the_specs(proposer, blocks, monkeypatch, tmp_path):
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path))
    monkeypatch.setattr(registry, "FREE", dict(registry.FREE))
    exec(blocks[1], {"FREE": registry.FREE, "PairsProposer": proposer})
    path = tmp_path / "table.gguf"
    path.write_bytes(b"table")
    info = ModelInfo(str(path), "table", "table", "F32", 0, 0, 4096, "scripted", "none", None, {})
    loaded = LoadedModel(ScriptedBackend(few_words, 256), BYTES, info)
    with assemble(loaded, path, None, Settings(spec="suffix,pairs", draft_max=3)) as model:
        assert set(model.speculation("pairs").proposers) == {"pairs"}
        with model.using(model.speculation("pairs")):
            events = list(model.complete(PROMPT, GREEDY, max_tokens=200))
    assert any(piece.source == "pairs" for event in events for piece in event.pieces)
