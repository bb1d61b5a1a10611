"""Models in several files are one model."""

from __future__ import annotations

import struct

import pytest
from hub_files import STRING, gguf, pair, tensor, text, word
from stores import hugging_face

from edgespec import hub
from edgespec.errors import ModelFileError
from edgespec.hub import local
from edgespec.hub.gguf import check


def short(key: str, value: int) -> bytes:
    return pair(key, 2, struct.pack("<H", value))


def parts(n: int = 3) -> dict[str, bytes]:
    """As gguf-split makes them: only the first says what the model is."""
    made = {}
    for i in range(n):
        pairs = [short("split.no", i), short("split.count", n)]
        if i == 0:
            pairs += [pair("general.architecture", STRING, text("llama")), word("general.file_type", 2)]
        content = gguf(pairs=pairs, tensors=[tensor(f"blk.{i}.w", (64, 4), 2, 0)], data=2 * 18 * 4)
        made[f"x-{i + 1:05}-of-{n:05}.gguf"] = content
    return made


@pytest.fixture
def sharded(tmp_path):
    for name, content in parts().items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("part", [1, 2, 3])
def test_any_part_opens_the_model(sharded, part):
    assert hub.resolve(str(sharded / f"x-0000{part}-of-00003.gguf")) == sharded / "x-00001-of-00003.gguf"
    header = check(sharded / f"x-0000{part}-of-00003.gguf")
    assert (header.n_tensors, header.n_params, header.architecture) == (3, 3 * 256, "llama")
    assert header.size == sum(path.stat().st_size for path in sharded.glob("x-*.gguf"))


def test_a_first_part_without_weights_is_no_vocabulary(sharded):
    pairs = [
        short("split.no", 0),
        short("split.count", 3),
        pair("general.architecture", STRING, text("llama")),
    ]
    (sharded / "x-00001-of-00003.gguf").write_bytes(gguf(pairs=pairs, tensors=[], data=0))
    assert check(sharded / "x-00002-of-00003.gguf").n_tensors == 2


@pytest.mark.parametrize("part", [1, 2])
def test_a_missing_part_is_named(sharded, part):
    (sharded / "x-00003-of-00003.gguf").unlink()
    with pytest.raises(ModelFileError, match=r"one of 3 parts: x-00003-of-00003\.gguf is missing"):
        hub.resolve(str(sharded / f"x-0000{part}-of-00003.gguf"))


def test_a_part_that_is_cut_is_named(sharded):
    path = sharded / "x-00002-of-00003.gguf"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ModelFileError, match=r"x-00002-of-00003\.gguf needs [\d,]+ bytes, has"):
        hub.resolve(str(sharded / "x-00001-of-00003.gguf"))


def test_a_part_under_another_name(sharded):
    (sharded / "x-00002-of-00003.gguf").rename(sharded / "y.gguf")
    with pytest.raises(
        ModelFileError, match=r"is part 2 of 3 of a model: its name must end in -00002-of-00003"
    ):
        check(sharded / "y.gguf")
    (sharded / "x-00002-of-00003.gguf").write_bytes((sharded / "x-00003-of-00003.gguf").read_bytes())
    with pytest.raises(ModelFileError, match="is part 3 of 3, not what its name says"):
        check(sharded / "x-00001-of-00003.gguf")


def test_parts_in_a_cache_of_links_are_found_beside_the_link(tmp_path, no_hub):
    snapshot = hugging_face(
        tmp_path / "hf/hub", "org/big", {f"Q4_0/{name}": c for name, c in parts().items()}
    )
    assert [(model.name, len(model.files)) for model in local.found()] == [("org/big:Q4_0", 3)]
    first = snapshot / "Q4_0/x-00001-of-00003.gguf"
    assert hub.resolve("org/big:Q4_0") == first
    assert hub.resolve(str(snapshot / "Q4_0/x-00002-of-00003.gguf")) == first
    assert hub.resolve("hf:org/big/Q4_0/x-00003-of-00003.gguf") == first


def test_a_model_with_a_missing_part_is_listed_as_broken(store):
    folder = store / "org/big"
    folder.mkdir(parents=True)
    for name in list(parts())[:2]:
        (folder / name).write_bytes(parts()[name])
    (listed,) = local.listed(local.found())
    assert listed.facts.condition == "broken"
    assert "x-00003-of-00003.gguf is missing" in listed.facts.problem
