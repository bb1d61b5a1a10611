"""From what is meant to a file in the store: found there, or fetched once."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from edgespec.errors import DownloadError, ModelFileError, UnsupportedModelError, UsageError
from edgespec.hub import gguf
from edgespec.hub.catalogue import Card, RepositorySource
from edgespec.hub.meter import Meter
from edgespec.hub.quantization import USUAL, FileGroup, choose
from edgespec.hub.reference import RemoteModel, visible
from edgespec.hub.store import Asset, Notify, Progress, Store, amount, root


def obtain(meant: Card | RemoteModel, progress: Progress, notify: Notify) -> Path:
    """The model's first file in the store, fetched if it is not there. No lock is taken when it is.

    Raises DownloadError, and UsageError when the repository has no such model.
    """
    store = Store(root())
    if isinstance(meant, Card) and (asset := _pinned(meant)):
        return store.find(asset) or _fetch(store, (asset,), meant.name, progress, notify)
    remote, name = (remote_of(meant), meant.name) if isinstance(meant, Card) else (meant, str(meant))
    if path := held(store, remote, notify):
        if _sound(path) or _offline():
            return path
        notify(f"{name} on this machine is damaged; fetching it again")
    _refuse_offline(name)
    from edgespec.hub.pull import look_up

    progress(0, 1, f"asking the hub for {remote.repo}")
    try:
        listing = look_up(remote.repo, remote.revision)
    except DownloadError as error:
        raise DownloadError(f"{name} could not be downloaded ({error})") from None
    group = choose(remote, listing.files)
    assets = [listing.asset(remote.repo, folder(remote), path) for path in group.files]
    _tell_choice(remote, group, notify)
    if all(store.find(asset) for asset in assets):
        return store.path(assets[0])
    return _fetch(store, assets, _short(name, group), progress, notify)


def remote_of(card: Card) -> RemoteModel:
    """Where a card without a checksum of its own has its files."""
    source = next(source for source in card.sources if isinstance(source, RepositorySource))
    return RemoteModel(source.repo, card.quantization, source.file, source.revision)


def folder(remote: RemoteModel) -> str:
    """Where a repository's files lie in the store."""
    at = "@" + re.sub(r"[^\w.-]", "-", remote.revision) if remote.revision else ""
    return remote.repo + at


def held(store: Store, remote: RemoteModel, notify: Notify) -> Path | None:
    """What the store has of a repository, and fits. Where nothing is asked for, the nearest to Q4_K_M."""
    here = store.root / folder(remote)
    names = [path.relative_to(here).as_posix() for path in sorted(here.rglob("*.[gG][gG][uU][fF]"))]
    try:
        group = choose(remote, names)
    except UsageError:
        return None
    if not group.whole:
        return None
    if not remote.quant and not remote.file and group.quantization != USUAL:
        notify(f"{remote}: using {group.quantization or group.first}, which is on this machine")
    return here / group.first


def _pinned(card: Card) -> Asset | None:
    """The one file of a card that knows its checksum."""
    if not (card.file and card.size and card.sha256):
        return None
    sources = tuple(source for source in card.sources if not isinstance(source, RepositorySource))
    return Asset(card.file, card.size, card.sha256, sources)


def _tell_choice(remote: RemoteModel, group: FileGroup, notify: Notify) -> None:
    if remote.quant or remote.file:
        return
    found = group.quantization or visible(group.first)
    notify(f"{remote}: taking {found}" + ("" if found == USUAL else f", the nearest to {USUAL} that it has"))


def _short(name: str, group: FileGroup) -> str:
    """For the line of progress."""
    if "/" not in name:
        return name
    repository = re.sub(r"-gguf$", "", name.partition(":")[0].rsplit("/", 1)[-1], flags=re.I)
    return f"{repository}:{group.quantization}" if group.quantization else repository


def _fetch(store: Store, assets: Sequence[Asset], name: str, progress: Progress, notify: Notify) -> Path:
    _refuse_offline(name)
    from edgespec.hub.pull import pull

    total = sum(asset.size for asset in assets)
    told: list[str] = []

    def waiting() -> None:
        if not told:
            told.append(name)
            notify(f"another process is downloading {name}; waiting for it")
        progress(store.arrived(assets), total, f"waiting for {name}")

    with store.lock(assets[0], waiting):
        missing = [asset for asset in assets if not store.find(asset)]
        if missing:
            arrived = store.arrived(assets)
            store.require(total - arrived, name)
            files = f" in {len(assets)} files" if len(assets) > 1 else ""
            notify(
                f"going on with {name} at {amount(arrived)} of {amount(total)}"
                if arrived
                else f"downloading {name} ({amount(total)}{files}) into {store.root}"
            )
            pull(store, assets, Meter(progress, name, total), notify)
        return store.commit(assets)


def _sound(path: Path) -> bool:
    try:
        gguf.check(path)
    except ModelFileError:
        return False
    except UnsupportedModelError:
        pass
    return True


def _offline() -> str | None:
    """The variable that forbids the network."""
    variables = ("EDGESPEC_OFFLINE", "HF_HUB_OFFLINE")
    forbids = ("1", "true", "yes", "on")
    return next((name for name in variables if os.environ.get(name, "").strip().lower() in forbids), None)


def _refuse_offline(name: str) -> None:
    if variable := _offline():
        raise DownloadError(
            f"{name} is not on this machine and {variable} forbids downloading it: "
            f"unset {variable}, or give the path of a model"
        )
