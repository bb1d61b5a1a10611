"""Whether a model fits is told from its header, with the numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from edgespec.api.fit import Room, fit, need
from edgespec.api.memory import free_memory
from edgespec.backends.base import LoadOptions
from edgespec.errors import BackendError, DraftError
from edgespec.hub.gguf import Header
from edgespec.hub.gguf_reader import Span

MB = 1 << 20
OPTIONS = LoadOptions()


def header(size: int, **facts) -> Header:
    metadata = {
        "block_count": 10,
        "embedding_length": 512,
        "feed_forward_length": 1024,
        "attention.head_count": 8,
        "attention.head_count_kv": 2,
    }
    metadata = {f"llama.{key}": value for key, value in (metadata | facts).items()}
    lists = {"tokenizer.ggml.tokens": Span(1000, 0, 0)}
    return Header(3, "llama", None, None, None, 8192, 1, size, 1, metadata, lists)


BIG, SMALL = header(800 * MB), header(100 * MB)


def notices(*arguments) -> tuple[LoadOptions, list[str]]:
    said: list[str] = []
    return fit(*arguments, said.append), said


def test_the_cache_grows_with_layers_heads_width_context_and_type():
    cache = need(BIG, OPTIONS, 1000).cache
    assert cache == 10 * 2 * (64 + 64) * 2 * 1000
    assert need(BIG, OPTIONS, 2000).cache == 2 * cache
    assert need(BIG, replace(OPTIONS, type_k="f32"), 1000).cache == 1.5 * cache
    assert need(BIG, replace(OPTIONS, type_k="q8_0", type_v="q8_0"), 1000).cache == cache * 34 // 64
    assert need(header(1, **{"attention.head_count_kv": (2, 0) * 5}), OPTIONS, 1000).cache == cache // 2
    wide = {"attention.key_length": 128, "attention.value_length": 64}
    assert need(header(1, **wide), OPTIONS, 1000).cache == 1.5 * cache


def test_enough_room_changes_nothing():
    assert notices(BIG, SMALL, OPTIONS, Room(4000 * MB)) == (OPTIONS, [])


def test_a_context_that_does_not_fit_is_made_smaller_and_that_is_told():
    whole = need(BIG, OPTIONS, 4096)
    options, said = notices(BIG, None, OPTIONS, Room(whole.total - whole.cache // 2))
    assert options.n_ctx is not None
    assert 1024 <= options.n_ctx <= 2048
    assert options.n_ctx % 256 == 0
    assert len(said) == 1
    assert f"the context is {options.n_ctx} tokens: 4096 would need" in said[0]
    assert need(BIG, OPTIONS, options.n_ctx).total <= whole.total - whole.cache // 2


def test_a_context_that_was_asked_for_is_an_error_with_the_numbers():
    whole = need(BIG, OPTIONS, 8192)
    with pytest.raises(BackendError) as caught:
        fit(BIG, None, replace(OPTIONS, n_ctx=8192), Room(whole.total - whole.cache // 2), print)
    said = str(caught.value)
    assert "are needed at a context of 8192 tokens (weights 0.84 GB, cache" in said
    assert "choose a smaller context (-c)" in said


def test_a_model_that_does_not_fit_at_all():
    with pytest.raises(
        BackendError, match=r"not enough memory: .* 0\.10 GB are free: choose a smaller model"
    ):
        fit(BIG, None, OPTIONS, Room(100_000_000), print)


def test_a_draft_that_does_not_fit_is_the_draft_s_fault():
    least = need(BIG, OPTIONS, 512).total
    with pytest.raises(DraftError, match=r"the draft model cannot be used: with it .* are needed"):
        fit(BIG, SMALL, OPTIONS, Room(least + 50 * MB), print)


def test_as_many_layers_as_fit_go_to_the_gpu():
    total = need(BIG, OPTIONS, 4096).total
    options, said = notices(BIG, None, OPTIONS, Room(4000 * MB, total // 2))
    assert options.n_gpu_layers == 5 or options.n_gpu_layers == 4
    assert "of 10 layers on the GPU" in said[0]
    assert notices(BIG, None, OPTIONS, Room(4000 * MB, total)) == (OPTIONS, [])
    asked = replace(OPTIONS, n_gpu_layers=7)
    assert notices(BIG, None, asked, Room(4000 * MB, total // 2)) == (asked, [])


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_control_groups_count(tmp_path, version):
    """Pages of files that can be dropped do not count as taken; the tightest of the groups does."""
    (tmp_path / "proc/self").mkdir(parents=True)
    line = "0::/a/b" if version == 2 else "9:memory:/a/b"
    (tmp_path / "proc/self/cgroup").write_text(f"7:cpu:/x\n{line}\n")
    top = tmp_path / ("sys/fs/cgroup" if version == 2 else "sys/fs/cgroup/memory")
    limit, usage, stat = (
        ("memory.max", "memory.current", "inactive_file {}\nactive_file 0\nanon 9\n")
        if version == 2
        else (
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file {}\ntotal_active_file 0\n",
        )
    )

    def group(folder: Path, most: str, used: int, files: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / limit).write_text(f"{most}\n")
        (folder / usage).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(stat.format(files))

    group(top / "a/b", "50000000", 20_000_000, 5_000_000)
    assert free_memory(tmp_path) == 35_000_000
    group(top / "a", "30000000", 29_000_000, 1_000_000)
    assert free_memory(tmp_path) == 2_000_000
    group(top / "a", "10000", 29_000_000, 0)
    assert free_memory(tmp_path) == 0
    for folder in (top / "a/b", top / "a"):
        group(folder, "max" if version == 2 else str(1 << 62), 0, 0)
    assert free_memory(tmp_path) > 50_000_000


def test_without_groups_the_system_s_word_counts(tmp_path):
    assert 0 < free_memory(tmp_path) < 1 << 50
