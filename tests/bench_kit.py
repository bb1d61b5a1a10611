"""A whole model in a table, for tests of the bench."""

from __future__ import annotations

from engine_kit import looping

from edgespec.api import Model, Speculation
from edgespec.backends.base import LoadedModel, ModelInfo
from edgespec.backends.scripted import ScriptedBackend
from edgespec.calibration import RowCounts
from edgespec.control import FixedPolicy
from edgespec.proposers import ModelProposer, NgramProposer, Proposer, SuffixProposer
from edgespec.text.table import TableVocabulary
from edgespec.types import Source

BYTES = TableVocabulary([bytes([i]) for i in range(256)])


def info(name: str) -> ModelInfo:
    return ModelInfo(f"/none/{name}.gguf", name, "table", "F32", 0, 0, 4096, "scripted", "none", None, {})


def loaded(name: str, salt: int) -> LoadedModel:
    return LoadedModel(ScriptedBackend(looping(256, salt), 256), BYTES, info(name))


def scripted_model(*, draft_salt: int | None = None, mode: str = "exact") -> Model:
    """Every token is a byte, and drafts have 4 tokens."""
    target = loaded("target", 1)
    draft = None if draft_salt is None else loaded("draft", draft_salt)
    proposers: dict[Source, Proposer] = {"suffix": SuffixProposer(), "ngram": NgramProposer()}
    if draft is not None:
        proposers["draft"] = ModelProposer(draft.backend, 256, lambda _: None)

    def speculate(spec: str) -> Speculation:
        chosen = () if spec == "off" else tuple(proposers) if spec == "auto" else tuple(spec.split(","))
        return Speculation(FixedPolicy(chosen, 4), {name: proposers[name] for name in chosen})

    rows = RowCounts(mode, "a table", tuple(range(1, 65)))
    return Model(target, [draft] if draft else [], speculate, "auto", rows, "coupled", lambda _: None)
