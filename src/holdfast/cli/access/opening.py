"""Opens the store that a command works on."""

from __future__ import annotations

from argparse import Namespace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from holdfast.cli.exits import NotFound, UsageError
from holdfast.cli.output.escaping import hide
from holdfast.stores import discovery
from holdfast.stores.discovery import FOLDER, StoreLocation, in_folder
from holdfast.stores.shared.secrets import secrets_in

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.core.codec import OnUnknown
    from holdfast.model import Checkpoint, CheckpointInfo
    from holdfast.runtime.runtime import SyncRuntime
    from holdfast.session.approval import Question
    from holdfast.stores.base import Store
    from holdfast.verbs.interrupts import OpenInterrupt


def location_of(options: Namespace, create: bool = False) -> StoreLocation:
    """Return where the store is that is meant: by --store, HOLDFAST_URL or the nearest upwards."""
    if options.store:
        location: StoreLocation | None = StoreLocation(discovery.as_url(options.store), "--store")
    else:
        location = discovery.find() or (in_folder(Path.cwd()) if create else None)
    if location is None:
        raise NotFound(
            f"there is no store here: no {FOLDER}/ in {Path.cwd()} or above it, and neither "
            "--store nor HOLDFAST_URL is given. Make one with `holdfast init`"
        )
    hide(secrets_in(location.url))
    try:
        urlsplit(location.url)
    except ValueError:  # whose words may show a password
        raise UsageError(
            f"the URL of the store ({location.source}) is none: {location.shown}"
        ) from None
    return location


def open_client(options: Namespace, create: bool = False) -> SyncClient:
    """Open the store that is meant; one that is not there is made only if that is said."""
    return open_location(location_of(options, create), create)


class LazyClient:
    """A store that is looked at; its client, which imports much more, is made if it is needed."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
    def _client(self) -> SyncClient:
        from holdfast.client import SyncClient

        return SyncClient(self.store)

    @property
    def runtime(self) -> SyncRuntime:
        """What carries out plans on the store."""
        return self._client.runtime

    def ancestors(self, checkpoint_id: str, limit: int | None = None) -> list[CheckpointInfo]:
        """Return the parent of a checkpoint, its parent, and so on."""
        return self._client.ancestors(checkpoint_id, limit)

    def interrupts(self) -> list[OpenInterrupt]:
        """Return what LangGraph threads wait for an answer to."""
        return self._client.interrupts()

    def restore(
        self, checkpoint_id: str, verify: bool = True, on_unknown: OnUnknown = "raise"
    ) -> Checkpoint:
        """Return the checkpoint of that id."""
        return self._client.restore(checkpoint_id, verify, on_unknown)

    def pending(self, agent_id: str | None = None) -> list[Question]:
        """Return calls that wait for approval."""
        return self._client.pending(agent_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.store.close()


def open_lazily(options: Namespace) -> LazyClient:
    """Open the store that is meant, for commands that have to be quick."""
    from holdfast.stores.urls import open_store

    location = location_of(options)
    _check_is_there(location)
    return LazyClient(open_store(location.url))


def open_location(location: StoreLocation, create: bool = False) -> SyncClient:
    """Open a store, which is made with its directory if it may be."""
    from holdfast.client import SyncClient

    if not create:
        _check_is_there(location)
    else:
        location.make_folder()
    return SyncClient.open(location.url)


def _check_is_there(location: StoreLocation) -> None:
    """Refuse to make a store that was named, where nobody said so."""
    path = location.path
    if path is not None and location.folder is None and not path.exists():
        raise NotFound(
            f"there is no store at {path} ({location.source}). "
            f"Make one with `holdfast init --store {location.shown}`"
        )
