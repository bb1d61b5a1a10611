"""A model that is new to this device: it answers at once, and is measured when there is time."""

import threading

import pytest
from bench_kit import BYTES
from engine_kit import GREEDY, PROMPT, looping

import edgespec
from edgespec.api.loading import Settings, assemble
from edgespec.backends.base import LoadedModel, ModelInfo
from edgespec.backends.llama.backend import LlamaBackend
from edgespec.backends.scripted import ScriptedBackend
from edgespec.calibration.survey import COUNTS
from edgespec.errors import Cancelled, UsageError


class Counting(ScriptedBackend):
    """Notes the row counts of its passes."""

    def __init__(self, exact=99):
        super().__init__(looping(256), 256)
        self.passes, self.exact = [], exact

    def forward(self, tokens, parents=None, *, rows="all"):
        out = super().forward(tokens, parents, rows=rows)
        self.passes.append(len(tokens))
        return out + 1e-3 if rows == "all" and len(tokens) > self.exact else out


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def start(tmp_path):
    """A model in a table, as it is after loading."""
    path = tmp_path / "table.gguf"
    path.write_bytes(b"table")

    def started(backend=None, **settings):
        info = ModelInfo(str(path), "table", "table", "F32", 0, 0, 4096, "scripted", "none", None, {})
        loaded = LoadedModel(backend or Counting(), BYTES, info)
        return assemble(loaded, path, None, Settings(**settings))

    return started


def answer(model, n=60):
    events = list(model.complete(PROMPT, GREEDY, max_tokens=n))
    return [piece.token for event in events for piece in event.pieces]


def test_the_first_answer_is_plain_and_begins_at_once(start):
    backend = Counting()
    model = start(backend, calibrate="idle")
    assert backend.passes == []
    assert not model.calibrated
    answer(model)
    assert backend.passes == [len(PROMPT)] + [1] * 59
    assert model.stats.draft_n == 0
    assert not model.status.on
    assert "not fully measured" in model.status.reason
    assert "not measured" in model.rows.reason


def test_once_measured_the_next_answer_speculates_and_says_the_same(start):
    backend = Counting()
    model = start(backend, calibrate="idle")
    first = answer(model)
    shares = []
    assert model.calibrate(progress=shares.append)
    assert shares[-1] == 1.0
    assert backend.length == len(model._session.tokens)
    assert model.rows.mode == "exact"
    assert max(model.rows.exact) == 32
    assert answer(model) == first
    assert "measured" not in model.status.reason


def test_after_an_answer_there_is_time_to_measure_by_default(start):
    model = start()
    answer(model)
    assert model.calibrated
    again = start()
    assert again.calibrated, "what was measured is kept for the next start"
    assert again.rows == model.rows


def test_a_model_may_be_measured_when_it_is_loaded(start):
    notices, steps = [], []
    model = start(calibrate="first", notify=notices.append, progress=lambda *step: steps.append(step))
    assert model.calibrated
    assert sum("measuring" in notice for notice in notices) == 1
    assert steps[-1][1] == 1.0
    start(calibrate="first", notify=notices.append)
    assert sum("measuring" in notice for notice in notices) == 1


@pytest.mark.parametrize("numerics", ["exact", "auto", "near"])
def test_proposers_that_were_named_are_measured_before_the_first_answer(start, numerics):
    model = start(Counting(exact=3), spec="suffix", draft_max=8, numerics=numerics, calibrate="idle")
    assert model.calibrated
    first = answer(model)
    assert model.stats.draft_n > 0
    if model.rows.mode == "exact":
        assert model.rows.allowed == (1, 2, 3)
    with start(spec="off") as plain:
        assert plain.calibrated
        assert first == answer(plain)


def test_proposers_that_were_named_draft_branches_where_the_target_takes_them(start):
    model = start(spec="lookahead", draft_max=12, calibrate="idle")
    assert model.rows.trees
    events = list(model.complete(PROMPT, GREEDY, max_tokens=30))
    drafts = [event.outcome.draft for event in events if event.outcome is not None]
    assert any(not draft.is_chain for draft in drafts)


def test_measuring_can_be_ended_from_another_thread_and_goes_on_later(start):
    model = start(calibrate="idle")
    seen = []

    def progress(share):
        seen.append(share)
        if len(seen) == 2:
            canceller = threading.Thread(target=model.cancel)
            canceller.start()
            canceller.join()

    assert not model.calibrate(progress=progress)
    assert len(seen) == 2
    assert model.rows.exact == (1, 2, 3)
    assert model.rows.allowed == (1, 2, 3), "what is known already is used"
    assert answer(model) == answer(start(spec="off"))
    assert model.calibrate()


def test_while_an_answer_runs_nothing_is_measured(start):
    model = start(calibrate="idle")
    events = model.complete(PROMPT, GREEDY, max_tokens=9)
    next(events)
    with pytest.raises(UsageError):
        model.calibrate()
    assert len(list(events)) == 8


def test_another_way_to_speculate_stays_in_use_while_measuring(start):
    model = start(calibrate="idle")
    with model.using(model.speculation("off")):
        assert model.calibrate()
        assert model.status.reason == "switched off"
    assert model.status.reason != "switched off"


def test_a_cache_that_cannot_be_written_is_told_once(start, tmp_path, monkeypatch):
    (tmp_path / "blocked").write_text("not a folder")
    monkeypatch.setenv("EDGESPEC_CACHE", str(tmp_path / "blocked"))
    notices = []
    model = start(notify=notices.append)
    answer(model)
    assert model.calibrated
    model.calibrate()
    assert sum("cannot be kept" in notice for notice in notices) == 1


def test_numerics_are_decided_once(start):
    """Seconds that vary from run to run must not change the text."""
    model = start(Counting(exact=1))
    answer(model)
    stored = model._calibrator.stored
    decided = model.rows
    stored.put("verify_seconds", {str(n): 1.0 + 0.001 * n for n in range(1, 33)})
    assert start(Counting(exact=1)).rows == decided


@pytest.mark.parametrize("trusted", [True, False])
def test_measured_anew_it_replaces_what_was_known_if_it_can_be_trusted(start, trusted):
    model = start(Counting(exact=8), calibrate="first")
    before = model._calibrator.found
    model._target.backend.exact = 3
    shares = []
    costs = model.measure(0.0, shares.append, lambda: trusted)
    assert costs.exact == (1, 2, 3)
    assert set(costs.seconds) == {1, *COUNTS}
    assert shares[-1] == 1.0
    assert model.calibrated
    assert model.rows.exact == (costs.exact if trusted else before.exact)
    assert trusted or model._calibrator.found == before


def test_measuring_anew_that_is_cancelled_leaves_what_was_known(start):
    model = start(calibrate="first")
    before = model.rows
    with pytest.raises(Cancelled):
        model.measure(progress=lambda share: model.cancel())
    assert model.calibrated
    assert start(calibrate="idle").rows == before


@pytest.mark.model
def test_before_the_first_token_a_new_model_does_no_more_than_a_known_one(smollm2_path, monkeypatch):
    passes, plain = [], LlamaBackend.forward
    monkeypatch.setattr(
        LlamaBackend, "forward", lambda self, *a, **kw: passes.append(a) or plain(self, *a, **kw)
    )
    counts = []
    for _ in range(2):
        with edgespec.load(smollm2_path, backend="llamacpp", n_ctx=256, calibrate="idle") as model:
            events = model.chat(sampling=GREEDY).send("Hi")
            next(events)
            counts.append(len(passes))
            events.close()
            model.calibrate(1.0)
        passes.clear()
    assert counts == [1, 1]
