"""Which models on disk may draft for a target, told from their headers with the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hub_files import CHATML, STRING, card, gguf, model, pair, text

from edgespec.hub import local
from edgespec.hub.catalogue import HuggingFaceSource
from edgespec.hub.gguf import check
from edgespec.hub.pairing import Candidate, candidates, share_of_tokens


@pytest.fixture
def judged(store):
    """Write the models into the store; who may draft for the target, with cards if any."""
    store.mkdir()

    def judge(target: bytes, cards=(), **drafts: bytes) -> dict[str, Candidate]:
        for name, content in {"target": target, **drafts}.items():
            (store / f"{name}.gguf").write_bytes(content)
        path = store / "target.gguf"
        found = local.listed(local.titled(local.found(), cards))
        return {c.model.name: c for c in candidates(path, check(path), found, cards)}

    return judge


BIG = model(3_000_000)


def test_a_small_model_of_the_family_is_taken(judged):
    (only,) = judged(BIG, small=model(300_000)).values()
    assert only.taken
    assert only.reason == "same vocabulary, same template, 11% of the target's size"


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (model(1_100_000), "are more than a third of the target's"),
        (model(100_000, vocabulary=1200), "its vocabulary has 1,200 tokens, the target's 1,000"),
        (model(100_000, other={7: "seven"}), "token 7 has another text than in the target"),
        (model(100_000, other={999: "last"}), "token 999 has another text"),
        (model(100_000, kind="llama"), "tokenizer llama is not the target's gpt2"),
        (model(100_000, bos=5), "BOS is 5, the target's 1"),
        (model(100_000, eos=5), "EOS is 5, the target's 2"),
        (model(100_000, add_bos=True), "adding BOS is True, the target's False"),
        (model(100_000, template=None), "it has no chat template, the target has"),
        (model(100_000, template="[INST] {{ m }} [/INST]"), "marks turns with [/INST], [INST], the target's"),
        (model(100_000, arch="mamba2"), "a mamba2 model cannot take tokens back cheaply"),
        (model(100_000)[:-500], "broken: needs "),
        (gguf(pairs=[pair("general.architecture", STRING, text("llama"))]), "its file has no vocabulary"),
    ],
)
def test_others_are_refused_with_the_reason(judged, draft, reason):
    (only,) = judged(BIG, small=draft).values()
    assert not only.taken
    assert reason in only.reason
    assert only.reason.isprintable()
    assert only.other_vocabulary == any(
        word in reason for word in ("vocabulary has", "token 7", "token 999", "tokenizer", "BOS", "EOS")
    )


@pytest.mark.parametrize("vocabulary", [900, 1100])
def test_vocabularies_that_differ_by_padding(judged, vocabulary):
    (only,) = judged(BIG, small=model(100_000, vocabulary=vocabulary)).values()
    assert only.taken


def test_the_share_of_tokens_that_the_target_has_too(judged, store):
    drafts = {"more": model(100_000, vocabulary=1600), "odd": model(100_000, other={7: "seven"})}
    drafts["kind"] = model(100_000, kind="llama")
    found = judged(BIG, **drafts, cut=model(100_000)[:200])
    target = store / "target.gguf"
    shares = {
        name: share_of_tokens(target, check(target), one.model.found.path) for name, one in found.items()
    }
    assert shares == {"more": 1000 / 1600, "odd": 0.999, "kind": None, "cut": None}


def test_the_first_five_texts_do_not_count(judged):
    (only,) = judged(BIG, small=model(100_000, other=dict.fromkeys(range(5), "x"))).values()
    assert only.taken


def test_the_best_is_in_front_and_the_target_is_no_candidate(judged):
    other = CHATML.replace("<|im_start|>", "<|im_start|><|extra|>")
    found = judged(
        BIG,
        tenth=model(280_000),
        tiny=model(9_000),
        third=model(950_000),
        nearly=model(290_000, template=other),
        large=model(2_000_000),
    )
    assert list(found) == ["tenth", "third", "tiny", "nearly", "large"]
    assert found["nearly"].reason.startswith("same vocabulary, a similar template")


def test_the_catalogue_s_advice_is_followed(judged, store):
    target = replace(card(BIG, HuggingFaceSource("o/t", "target.gguf")), name="big:3b", file="target.gguf")
    small = replace(card(BIG), name="small:1b", aliases=(), file="small.gguf")
    drafts = {"small": model(9_000), "tenth": model(290_000)}
    cards = (replace(target, draft="small:1b"), small)
    found = judged(BIG, cards, **drafts)
    assert next(iter(found)) == "small:1b"
    assert found["small:1b"].reason.startswith("the catalogue's advice, same vocabulary")
    found = judged(BIG, (replace(target, draft="none"), small), **drafts)
    assert {c.reason for c in found.values()} == {"the catalogue says that no draft model pays for big:3b"}


def test_a_link_to_the_target_is_the_target(judged, store):
    (store / "again.gguf").symlink_to("target.gguf")
    assert judged(BIG) == {}


@pytest.mark.model
def test_a_real_model_has_a_vocabulary_to_compare(smollm2_path, tmp_path):
    """Itself under another name is its equal in all but size."""
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(smollm2_path.read_bytes())
    found = local.listed([local.Found("copy", (copy,), local.Place("edgespec", Path()))])
    (only,) = candidates(smollm2_path, check(smollm2_path), found)
    assert "more than a third" in only.reason
