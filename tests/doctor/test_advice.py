"""What is set badly is said, with what puts it right; what is set well is not."""

from dataclasses import replace

import pytest

from edgespec.api import Costs
from edgespec.backends.base import ModelInfo
from edgespec.backends.device import usable_cores
from edgespec.calibration import RowCounts
from edgespec.doctor import Picture
from edgespec.doctor.advice import advice

COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)
CHEAP = {n: 0.01 * (1 + 0.1 * (n - 1)) for n in COUNTS}
DEAR = {n: 0.01 * (1 + 0.95 * (n - 1)) for n in COUNTS}
SETTINGS = {
    "n_threads": usable_cores(),
    "n_gpu_layers": 0,
    "load_mode": "auto",
    "type_k": "f16",
    "type_v": "bf16",
    "flash_attn": True,
}


def picture(exact=COUNTS, seconds=CHEAP, quantization="Q4_K_M", settings=(), **changes):
    told = SETTINGS | dict(settings)
    info = ModelInfo("/m.gguf", "m", "llama", quantization, 1, 1, 4096, "llamacpp", "CPU", None, told)
    rows = RowCounts("exact", "a test", exact)
    healthy = Picture(info, None, Costs(exact, seconds, None), rows, 1.0, None, "", 0, 0.0)
    return replace(healthy, **changes)


def told(found):
    return [finding.text for finding in found]


def test_nothing_is_said_of_what_is_set_well():
    assert advice(picture()) == ()


@pytest.mark.parametrize(
    ("made", "words", "fix"),
    [
        (picture(others=0.6), "60% of the cores", "edgespec doctor"),
        (picture(faults=500), "500", "--load-mode none"),
        (picture(threads=usable_cores() + 7), "threads are too many", "-t "),
        (picture(exact=(1,), settings={"flash_attn": False}.items()), "Flash attention is off", "-fa on"),
        (picture(exact=(1,), settings={"type_v": "f16", "n_threads": 2}.items()), "both f16", "-ctv bf16"),
        (picture(exact=(1, 2, 3)), "up to 3 rows are exact with Q4_K_M", "Q8_0 or Q4_0"),
        (picture(seconds=DEAR), "4 rows cost 3.9 single ones", "Q8_0 or Q4_0"),
    ],
)
def test_each_fault_is_found_with_what_puts_it_right(made, words, fix):
    found = [finding for finding in advice(made) if words in finding.text]
    assert len(found) == 1
    assert fix in found[0].fix


def test_cores_that_lie_idle_are_found(monkeypatch):
    monkeypatch.setattr("edgespec.doctor.advice.usable_cores", lambda: 8)
    found = advice(picture(settings={"n_threads": 3}.items()))
    assert told(found) == ["Only 3 of 8 cores are used."]
    assert "-t 8" in found[0].fix


def test_on_a_gpu_threads_and_equal_cache_types_are_no_faults():
    settings = {"n_gpu_layers": 99, "type_v": "f16", "n_threads": 1}
    assert advice(picture(settings=settings.items())) == ()


@pytest.mark.parametrize("mode", ["none", "mlock"])
def test_pages_are_missed_by_mapped_files_only(mode):
    assert advice(picture(faults=500, settings={"load_mode": mode}.items())) == ()


def test_where_exact_costs_nothing_it_needs_no_advice():
    """Nobody would verify more than three rows here anyway."""
    cliff = {1: 1.0, 2: 1.1, 3: 1.2} | {n: 20.0 + n for n in COUNTS if n > 3}
    assert advice(picture(exact=(1, 2, 3), seconds=cliff)) == ()


def test_a_setting_that_breaks_exactness_is_told_before_the_quantisation_is_blamed():
    found = told(advice(picture(exact=(1,), settings={"flash_attn": False}.items())))
    assert not any("Only passes" in text for text in found)


def test_a_system_that_does_not_tell_gives_no_findings():
    assert advice(picture(faults=None, others=None)) == ()
