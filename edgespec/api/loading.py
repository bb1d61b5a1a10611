"""From a model reference to a Model that is ready to answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from edgespec import hub
from edgespec.api import pairing
from edgespec.api.backends import AUTO, Place, check_name, pick
from edgespec.api.calibrating import Calibrator
from edgespec.api.choosing import chosen
from edgespec.api.drafting import Drafting, Way
from edgespec.api.fitting import fitted
from edgespec.api.model import Model, Speculation, When
from edgespec.api.pairing import InIds, Pair
from edgespec.api.payoff import objection
from edgespec.api.remembering import Remembering
from edgespec.backends.base import DRAFT_ROWS, LoadedModel, LoadOptions
from edgespec.backends.registry import adapter
from edgespec.calibration import SECONDS, Measurements, RowCounts, fingerprint
from edgespec.control import Calibration, Controller, CostModel, FixedPolicy, Policy, Stages
from edgespec.engine import VerifyMode
from edgespec.errors import (
    BackendError,
    DraftError,
    UsageError,
)
from edgespec.hub import used
from edgespec.memory import Store
from edgespec.proposers import Proposer, SuffixProposer, registry
from edgespec.types import Source

Progress = Callable[[str, float], None]
"""(what is being done, its share from 0 to 1). Whatever it raises cancels the loading."""

_MOST_DRAFTED = 64
_MEASURING = "measuring this model on this device, once"


def _ignore(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Settings:
    """`spec`: "auto", "off", or proposers joined by commas. `draft_max`: most drafted tokens a round;
    with proposers named in `spec` that many are drafted in every round, whether it pays or not, in branches
    where the target takes them and none of these is a model.

    `backend`: one of `backends.registry.ADAPTERS`, or "auto": the one that `choosing.compare` found best,
    else the first that can. `draft_backend` likewise; "auto" is the target's where that loads the draft.
    `memory`: "kept" remembers answers on this machine and copies from them, "read" only copies, "run" is
    for the answers of this run, "off" for none of it.
    `draft`: a model, "auto" for the best on this machine if one pays, None or "none" for none. `cascade`: a
    smaller one that drafts for the draft model, or for the target where that is faster. `notify` takes
    one-line notices for the user.
    """

    backend: str = AUTO
    draft: str | Path | None = pairing.AUTO
    draft_backend: str = AUTO
    cascade: str | Path | None = None
    spec: str = "auto"
    draft_max: int | None = None
    verify: VerifyMode = "coupled"
    numerics: Literal["auto", "exact", "near"] = "auto"
    calibrate: When = "between"
    memory: Literal["off", "run", "read", "kept"] = "off"
    options: LoadOptions = field(default_factory=LoadOptions)
    notify: Callable[[str], None] = _ignore
    progress: Progress = _ignore

    def having(self, **changes: object) -> Settings:
        """With other fields, of these or of `options` (`n_ctx`, `n_threads`, ...). Raises UsageError."""
        ours = {k: v for k, v in changes.items() if k in Settings.__dataclass_fields__}
        native = {k: v for k, v in changes.items() if k in LoadOptions.__dataclass_fields__ and k not in ours}
        unknown = changes.keys() - ours.keys() - native.keys()
        if unknown:
            raise UsageError(f"unknown setting {', '.join(sorted(unknown))}")
        settings = replace(self, **ours)  # type: ignore[arg-type]
        return replace(settings, options=replace(settings.options, **native))  # type: ignore[arg-type]


def load(model: str | Path | None = None, settings: Settings | None = None, **changes: object) -> Model:
    """Load a model by path or catalogue name; None is the default model, fetched if it is missing.

    Keyword arguments are fields of `Settings` or of its `options` (`n_ctx`, `n_threads`, ...). Raises
    UsageError, ModelFileError, UnsupportedModelError, DownloadError, DraftError or BackendError.
    """
    s = (settings or Settings()).having(**changes)
    sources = _sources(s.spec, s.draft, s.memory)
    if pairing.wanted(s.cascade) and not pairing.wanted(s.draft) and s.spec != "off":
        raise UsageError("--cascade needs a draft model: give one with --draft MODEL (-md)")
    check_name(s.backend)
    check_name(s.draft_backend)
    target = _resolve(model, s)
    options = replace(s.options, exact=s.numerics != "near")
    pair = pairing.choose(target, s.draft, s.spec, lambda: _resolve(s.draft, s), drafts="draft" in sources)
    small = pairing.smaller(s.cascade, pair, lambda: _resolve(s.cascade, s), drafts="draft" in sources)
    if small.asked:
        pair = replace(pair, asked=True)
    preferred = chosen(target.path, s.options) if s.backend == AUTO else None
    place = _place(target.path, s.backend, preferred, s)
    options, pair = fitted(target, pair, small, place.backend, options, s.notify)
    used.mark(target.path)
    loaded = _load(place, options, s, "loading")
    try:
        return assemble(loaded, place.path, pair, s, small, target.path)
    except BaseException:
        loaded.backend.close()
        raise


def _sources(spec: str, draft: str | Path | None, memory: str) -> tuple[Source, ...]:
    """The proposers that may run, in order."""
    names = registry.named_proposers(spec)
    asked = names or ()
    if "draft" in asked and not pairing.wanted(draft):
        raise UsageError("--spec draft needs a draft model: give one with --draft MODEL (-md)")
    if "memory" in asked and memory == "off":
        raise UsageError("--spec memory needs the memory, which is off")
    missing = {"draft": not pairing.wanted(draft), "memory": memory == "off"}
    wanted = registry.AUTO if names is None else names
    return tuple(name for name in wanted if not missing.get(name, False))


def _resolve(reference: str | Path | None, s: Settings) -> hub.Opened:
    def progress(done: int, total: int, label: str) -> None:
        s.progress(label, done / total if total else 0.0)

    return hub.opened(None if reference is None else str(reference), progress=progress, notify=s.notify)


def _place(path: Path, asked: str, preferred: str | None, s: Settings) -> Place:
    def progress(share: float) -> None:
        s.progress(f"converting {path.name}", share)

    return pick(path, asked, preferred, notify=s.notify, progress=progress)


def _load(place: Place, options: LoadOptions, s: Settings, label: str) -> LoadedModel:
    def progress(share: float) -> bool:
        s.progress(label, share)
        return True

    return adapter(place.backend).load(place.path, replace(options, notify=s.notify, progress=progress))


def assemble(
    target: LoadedModel,
    path: Path,
    pair: Pair | None,
    s: Settings,
    small: Pair | None = None,
    own: Path | None = None,
) -> Model:
    """A model that is ready to answer, from loaded weights. Raises DraftError, or what `progress` raises.

    `own`: the model's own file where `path` was converted from it; all its forms share one memory.
    """
    suffix = SuffixProposer()
    proposers: dict[Source, Proposer] = {name: make() for name, make in registry.FREE.items()}
    proposers["suffix"] = suffix
    remembering = _remembering(own or path, s)
    if remembering is not None:
        proposers["memory"] = remembering.proposer
    drafts, pair = _drafting(target, path, pair or Pair(), small or Pair(), s)
    try:
        drafting = Drafting(drafts, suffix, s.notify) if drafts else None
        draft_path = pair.path
        speculates = bool(_sources(s.spec, draft_path, s.memory))
        calibrator = Calibrator(target, path, drafts, s.numerics, s.notify) if speculates else None
        if calibrator is not None and _is_due(s) and not calibrator.complete:
            s.notify(_MEASURING)
            calibrator.advance(progress=lambda share: s.progress(_MEASURING, share))

        def speculate(spec: str) -> Speculation:
            if draft_path is None and "draft" in spec.split(",") and pairing.wanted(s.draft):
                raise UsageError(f"no draft model is loaded: {pair.reason}")
            chosen = _sources(spec, draft_path, s.memory)
            mine = {name: proposers[name] for name in chosen if name in proposers}
            if calibrator is None or not chosen:
                return Speculation(Controller((), CostModel({1: 1.0})), {})
            if drafting is not None and "draft" in chosen:
                mine |= drafting.proposers
                drafting.follow(calibrator)
            if s.draft_max is not None and spec != "auto":
                allowed, trees = calibrator.rows.allowed, calibrator.rows.trees and "draft" not in chosen
                fixed = FixedPolicy(chosen, s.draft_max, row_counts=allowed, trees=trees)
                return Speculation(fixed, mine, stages=_stages(drafting, fixed))
            return _measured(chosen, mine, calibrator, drafting, s)

        rows = calibrator.rows if calibrator else RowCounts("exact", "plain decoding", (1,))
        return Model(
            target,
            [draft.model for draft in drafts],
            speculate,
            s.spec,
            rows,
            s.verify,
            s.notify,
            calibrator,
            s.calibrate,
            pair.reason,
            remembering,
        )
    except BaseException:
        for draft in drafts:
            draft.model.backend.close()
        raise


def _measured(
    chosen: tuple[Source, ...],
    proposers: dict[Source, Proposer],
    calibrator: Calibrator,
    drafting: Drafting | None,
    s: Settings,
) -> Speculation:
    """By what was measured of the target, a controller for each draft model that may draft for it."""
    rows, stored, found = calibrator.rows, calibrator.stored, calibrator.found
    ways = drafting.ways(calibrator) if drafting and "draft" in chosen else [Way(pair=calibrator.pair)]
    controllers: dict[Source, Controller] = {}
    kept: dict[str, Calibration] = {}
    for way in ways:
        counts = Calibration.from_json(stored.get(f"survival:{way.pair}"))
        for other in kept.values():
            counts.sharing(other)
        kept[f"survival:{way.pair}"] = counts
        controllers[way.source] = Controller(
            chosen,
            CostModel(
                found.seconds or {1: 1.0},
                {"draft": way.seconds} if way.seconds else None,
                way.row if s.verify == "coupled" else None,
                way.late,
            ),
            counts,
            draft_max=_MOST_DRAFTED if s.draft_max is None else s.draft_max,
            row_counts=rows.allowed,
            trees=rows.trees,
        )
    first = controllers["draft"]
    policy = Stages(controllers) if len(controllers) > 1 else first

    def save() -> None:
        if found.seconds:
            stored.put(SECONDS, first.cost.as_json())
        for name, counts in kept.items():
            stored.put(name, counts.as_json())
        if drafting is not None:
            drafting.save(calibrator)

    return Speculation(policy, proposers, save, _stages(drafting, policy))


def _stages(drafting: Drafting | None, policy: Policy) -> Callable[[], str]:
    return lambda: drafting.told(policy) if drafting is not None else ""


def _remembering(path: Path, s: Settings) -> Remembering | None:
    if s.memory == "off" or s.spec == "off":
        return None
    store = None if s.memory == "run" else Store(fingerprint(path), path.name)
    return Remembering(store, keep=s.memory == "kept", notify=s.notify)


def _is_due(s: Settings) -> bool:
    """Proposers that were named are used from the first answer on: what they may do has to be known."""
    return s.calibrate == "first" or s.spec != "auto"


def _drafting(
    target: LoadedModel, path: Path, pair: Pair, small: Pair, s: Settings
) -> tuple[list[InIds], Pair]:
    """The draft model, loaded; none where nobody asked for it and it cannot be used or cannot pay.

    Behind it the smaller one that drafts for it, if there is one.
    """
    if pair.path is None:
        return [], pair
    if not pair.asked:
        stored = Measurements(fingerprint(path), target.info.settings)
        if why := objection(stored, fingerprint(pair.path), exact=s.numerics == "exact"):
            return [], pair.without(f"{pair.path.name} is not loaded: {why}; --draft {pair.path} loads it")
    try:
        draft = _load_draft(target, path, pair, s, pairing.DRAFT)
    except DraftError as error:
        if pair.asked:
            raise
        s.notify(f"no draft model: {error}")
        return [], pair.without(str(error))
    if draft.how:
        pair = replace(pair, reason=f"{pair.reason}; {draft.how}")
    if draft.how or not pair.asked:
        s.notify(f"draft model {pair.reason}")
    if pair.path is None or small.path is None:
        return [draft], pair
    try:
        smaller = _load_draft(target, path, small, s, pairing.CASCADE)
    except BaseException:
        draft.model.backend.close()
        raise
    if smaller.how:
        s.notify(f"{pairing.CASCADE}: {smaller.how}")
    if draft.text is not None:
        s.notify(
            f"{pairing.CASCADE} cannot draft for {pair.path.name}, which drafts text: one of them drafts"
        )
    if smaller.model.info.size_bytes >= draft.model.info.size_bytes:
        s.notify(f"{small.path.name} is not smaller than the draft model {pair.path.name}: it can hardly pay")
    return [draft, smaller], pair


def _load_draft(target: LoadedModel, path: Path, pair: Pair, s: Settings, what: str) -> InIds:
    """A draft model in the target's ids, see `pairing.in_ids_of`. Raises DraftError."""
    assert pair.path is not None
    try:
        options = replace(s.options, n_ctx=target.backend.n_ctx, max_rows=DRAFT_ROWS, exact=False)
        place = _place(pair.path, s.draft_backend, target.info.backend, s)
        draft = _load(place, options, s, f"loading {what}")
    except pairing.UNUSABLE as error:
        raise DraftError(f"{what} cannot be used: {error}") from error
    try:
        found = pairing.in_ids_of(target, draft, path.name, pair.path, asked=pair.asked)
    except BaseException:
        with contextlib.suppress(BackendError):
            draft.backend.close()
        raise
    used.mark(pair.path)
    return found
