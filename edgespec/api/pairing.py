"""The draft model of a target: the one that was asked for, or the best on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec import hub
from edgespec.backends.base import Backend, LoadedModel
from edgespec.errors import (
    BackendError,
    ConversionError,
    DownloadError,
    DraftError,
    ModelFileError,
    UnsupportedModelError,
    UsageError,
)
from edgespec.hub import local, pairing
from edgespec.hub.gguf import Header
from edgespec.proposers import ModelProposer, Proposer

if TYPE_CHECKING:
    from edgespec.proposers.base import Quick
    from edgespec.proposers.cutting import Retokenisation
    from edgespec.proposers.guided import Guide

AUTO, NONE = "auto", "none"
DRAFT, CASCADE = "the draft model", "the cascade model"
LEAST_ALIKE = 0.95
"""Of the tokens of a sample text: below it a draft is right more often by its text than token by token."""


UNUSABLE = (
    UsageError,
    ModelFileError,
    UnsupportedModelError,
    ConversionError,
    DownloadError,
    BackendError,
)
"""What keeps a draft model from being used, short of its vocabulary."""


@dataclass(frozen=True, slots=True)
class Pair:
    """`path` None is no draft model. `asked`: a person named it. `reason`: why this one, or why none."""

    path: Path | None = None
    header: Header | None = None
    asked: bool = False
    reason: str = ""

    def without(self, reason: str) -> Pair:
        return replace(self, path=None, header=None, reason=reason)


def wanted(draft: str | Path | None) -> bool:
    """Is there to be a draft model, if one suits?"""
    return draft is not None and str(draft).lower() != NONE


def choose(
    target: hub.Opened,
    draft: str | Path | None,
    spec: str,
    resolve: Callable[[], hub.Opened],
    *,
    drafts: bool,
) -> Pair:
    """The draft model, before the target loads, which may take long; `drafts`: may one be used at all?

    `resolve` opens the one that was asked for. Raises DraftError when that, or a draft that `spec` insists
    on, cannot be had.
    """
    if not drafts:
        off = spec != "off" and not wanted(draft)
        return Pair(reason="--draft none" if off else f"none is used with --spec {spec}")
    if str(draft).lower() != AUTO:
        return _named(resolve, DRAFT)
    pair = best(target.path, target.header)
    if pair.path is None and "draft" in spec.split(","):
        raise DraftError(f"--spec draft needs a draft model, give one with --draft MODEL: {pair.reason}")
    return pair


def smaller(
    cascade: str | Path | None, pair: Pair, resolve: Callable[[], hub.Opened], *, drafts: bool
) -> Pair:
    """The model that drafts for the draft model, if one was named. Raises DraftError, UsageError."""
    if not wanted(cascade) or not drafts:
        return Pair()
    if pair.path is None:
        raise DraftError(f"--cascade needs a draft model, give one with --draft MODEL: {pair.reason}")
    return _named(resolve, CASCADE)


def _named(resolve: Callable[[], hub.Opened], what: str) -> Pair:
    try:
        opened = resolve()
    except UNUSABLE as error:
        raise DraftError(f"{what} cannot be used: {error}") from error
    return Pair(opened.path, opened.header, True, f"{opened.path.name}: it was asked for")


@dataclass(frozen=True, slots=True)
class InIds:
    """A draft model whose backend takes the target's ids, of which it knows those under `n_shared`.

    `how`: what was done for that, if anything. `text`: it drafts text with its `own` backend instead.
    """

    model: LoadedModel
    path: Path
    n_shared: int
    how: str = ""
    text: Retokenisation | None = None
    own: Backend | None = None

    def proposer(self, notify: Callable[[str], None], guide: Guide, quick: Quick | None = None) -> Proposer:
        """`quick`: its own speculation, where it does not draft text."""
        if self.text is None or self.own is None:
            return ModelProposer(self.model.backend, self.n_shared, notify, guide, quick)
        from edgespec.proposers.retokenised import RetokenisedProposer

        return RetokenisedProposer(self.own, self.text, notify, guide)


def in_ids_of(target: LoadedModel, draft: LoadedModel, target_name: str, path: Path, *, asked: bool) -> InIds:
    """The draft in the target's ids.

    One with another vocabulary drafts where a person `asked` for it: translated token by token where nearly
    all are alike, by its text otherwise. Raises DraftError where neither can pay.
    """
    from edgespec.text.vocabulary import compare

    try:
        return InIds(draft, path, compare(target.vocabulary, draft.vocabulary, target_name, path.name))
    except DraftError as error:
        if not asked:
            raise
        differing = error
    from edgespec.proposers.cutting import Retokenisation
    from edgespec.proposers.translated import TranslatedBackend, Translation

    translation = Translation(target.vocabulary, draft.vocabulary)
    overlap = translation.overlap()
    if overlap.alike >= LEAST_ALIKE:
        backend = TranslatedBackend(draft.backend, translation)
        return InIds(
            replace(draft, backend=backend), path, backend.n_vocab, f"its vocabulary is translated: {overlap}"
        )
    text = Retokenisation(target.vocabulary, draft.vocabulary, translation)
    spelling = text.spelling()
    if not spelling.pays:
        raise DraftError(f"{differing}; neither its tokens nor its text would pay: {overlap}; {spelling}")
    read = TranslatedBackend(draft.backend, translation, trees=False)
    how = f"its text is cut into the target's tokens: {overlap}; {spelling}"
    return InIds(replace(draft, backend=read), path, read.n_vocab, how, text, draft.backend)


def best(path: Path, header: Header | None) -> Pair:
    """The best of the models on this machine, from headers only."""
    if header is None:
        return Pair(reason="only GGUF files are paired automatically")
    found = pairing.candidates(
        path, header, local.listed(local.titled(local.found(), hub.cards())), hub.cards()
    )
    taken = next((candidate for candidate in found if candidate.taken), None)
    if taken is None:
        return Pair(reason=_none(found))
    draft = taken.model.found.path
    return Pair(draft, hub.gguf.check(draft), False, f"{taken.model.name}: {taken.reason}")


def _none(found: tuple[pairing.Candidate, ...]) -> str:
    if not found:
        return "no other model is on this machine"
    nearest = max(found, key=lambda candidate: "third" in candidate.reason or "template" in candidate.reason)
    return f"none of {len(found)} other models suits; {nearest.model.name}: {nearest.reason}"
