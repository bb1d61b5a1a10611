"""Which files of a repository are the model that is meant."""

from __future__ import annotations

import pytest

from edgespec.errors import UsageError
from edgespec.hub.quantization import choose, groups, quantization_of
from edgespec.hub.reference import RemoteModel


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Qwen2.5-0.5B-Instruct-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf", "Q4_K_M"),
        ("UD-Q2_K_XL/Model-UD-Q2_K_XL-00001-of-00003.gguf", "Q2_K_XL"),
        ("BF16/model-00001-of-00002.gguf", "BF16"),
        ("SmolLM2.Q4_1.gguf", "Q4_1"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("ggml-model-fp16.gguf", "F16"),
        ("Q4_K_M-of-what-Q8_0.gguf", "Q8_0"),
        ("model.gguf", None),
    ],
)
def test_the_quantisation_of_a_name(name, said):
    assert quantization_of(name) == said


def test_shards_are_one_model_and_projectors_none():
    names = ["b-Q4_0-00002-of-00002.gguf", "b-Q4_0-00001-of-00002.gguf", "a-Q8_0.gguf", "README.md"]
    names += ["mmproj-a-f16.gguf", "a.imatrix.gguf", "b-Q4_0-00001-of-00003.gguf"]
    assert [group.files for group in groups(names)] == [
        ("a-Q8_0.gguf",),
        ("b-Q4_0-00001-of-00002.gguf", "b-Q4_0-00002-of-00002.gguf"),
        ("b-Q4_0-00001-of-00003.gguf",),
    ]


@pytest.mark.parametrize(
    ("there", "quant", "taken"),
    [
        (("Q8_0", "Q4_K_M", "Q4_K_S"), None, "Q4_K_M"),
        (("Q8_0", "Q5_K_M", "Q4_K_S"), None, "Q4_K_S"),
        (("Q8_0", "F16"), None, "Q8_0"),
        (("Q2_K", "MXFP4"), None, "MXFP4"),
        (("Q8_0", "Q4_K_M"), "q8_0", "Q8_0"),
        (("UD-Q4_K_XL", "Q4_K_M"), "UD-Q4_K_XL", "Q4_K_XL"),
        (("fp16", "Q4_K_M"), "F16", "F16"),
    ],
)
def test_the_choice(there, quant, taken):
    chosen = choose(RemoteModel("o/r", quant), [f"m-{name}.gguf" for name in there])
    assert chosen.quantization == taken


@pytest.mark.parametrize(
    ("meant", "there", "said"),
    [
        (RemoteModel("o/r", "Q4_K"), ["m-Q8_0.gguf", "m-Q4_K_M.gguf"], "has no Q4_K: it has Q4_K_M"),
        (RemoteModel("o/r"), ["a-Q4_K_M.gguf", "b-q4_k_m.gguf"], "hf:o/r/a-Q4_K_M.gguf, hf:o/r/b-q4_k_m"),
        (RemoteModel("o/r", file="x-Q8.gguf"), ["x-Q8_0.gguf"], "has no x-Q8.gguf: it has x-Q8_0.gguf"),
        (RemoteModel("o/r"), ["README.md", "mmproj-x.gguf"], "holds no GGUF model"),
        (RemoteModel("o/r", file="x.gguf"), [], "holds no GGUF model"),
    ],
)
def test_what_cannot_be_chosen_lists_what_can(meant, there, said):
    with pytest.raises(UsageError) as caught:
        choose(meant, there)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_any_shard_names_its_model():
    there = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    assert choose(RemoteModel("o/r", file="M-00002-of-00002.gguf"), there).files == tuple(there)
