"""Which store a command works on."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote, urlsplit

from holdfast.cli.exits import NotFound, UsageError
from holdfast.cli.output.escaping import hide
from holdfast.stores.shared.secrets import masked, secrets_in
from holdfast.system import private_files

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.core.codec import OnUnknown
    from holdfast.model import Checkpoint, CheckpointInfo
    from holdfast.session.approval import Question
    from holdfast.stores.base import Store
    from holdfast.verbs.interrupts import OpenInterrupt

FOLDER = ".holdfast"
FILE = "holdfast.db"


@dataclass(frozen=True)
class Place:
    """A store, and how it was found."""

    url: str
    source: str
    """``--store``, ``HOLDFAST_URL``, or the directory it was found in."""
    folder: Path | None = None
    """The directory that holds ``.holdfast/``, if it was found so."""

    def __post_init__(self) -> None:
        hide(secrets_in(self.url))
        try:
            urlsplit(self.url)
        except ValueError:  # whose words may show a password
            raise UsageError(
                f"the URL of the store ({self.source}) is none: {self.shown}"
            ) from None

    @property
    def path(self) -> Path | None:
        """Where it is on this disk; None for a server."""
        parts = urlsplit(self.url)
        if parts.scheme == "sqlite":
            return Path(unquote(parts.path[1:]))
        return Path(unquote(parts.netloc + parts.path)) if parts.scheme == "file" else None

    @property
    def shown(self) -> str:
        """Its URL without what is secret in it."""
        return masked(self.url)


def place_of(options: Namespace, create: bool = False) -> Place:
    """The store that is meant: by option, by environment, or the nearest one upwards."""
    if options.store:
        return Place(_as_url(options.store), "--store")
    if os.environ.get("HOLDFAST_URL"):
        return Place(os.environ["HOLDFAST_URL"], "HOLDFAST_URL")
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FOLDER).is_dir():
            return in_folder(folder)
    if create:
        return in_folder(here)
    raise NotFound(
        f"there is no store here: no {FOLDER}/ in {here} or above it, and neither --store nor "
        "HOLDFAST_URL is given. Make one with `holdfast init`"
    )


def in_folder(folder: Path) -> Place:
    """The store in the ``.holdfast/`` of a directory."""
    return Place(url_of(folder / FOLDER / FILE), str(folder / FOLDER), folder)


def _make_folder(folder: Path) -> None:
    """Make the ``.holdfast/`` of a directory, which git is told to ignore."""
    inside = folder / FOLDER
    private_files.make_directories(str(inside))
    ignore = inside / ".gitignore"
    if not ignore.exists():
        with open(ignore, "w", opener=private_files.opener) as file:
            file.write("*\n")


def url_of(file: Path) -> str:
    """The URL of an SQLite file."""
    return f"sqlite:///{quote(os.path.abspath(file))}"


def _as_url(given: str) -> str:
    """A URL as it is; the path of a store that is there as its URL."""
    path = Path(given)
    if "://" in given or not path.exists():
        return given
    if (path / FOLDER).is_dir():
        return in_folder(path).url
    if path.name == FOLDER and path.is_dir():
        return url_of(path / FILE)
    return f"file://{quote(os.path.abspath(path))}" if path.is_dir() else url_of(path)


def open_client(options: Namespace, create: bool = False) -> SyncClient:
    """A client of the store that is meant; one that is not there is made only if that is said."""
    return open_place(place_of(options, create), create)


class Looking:
    """A store that is looked at; its client, which imports much more, is made if it is needed."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
    def _client(self) -> SyncClient:
        from holdfast.client import SyncClient

        return SyncClient(self.store)

    def ancestors(self, checkpoint_id: str) -> list[CheckpointInfo]:
        """The parent of a checkpoint, its parent, and so on."""
        return self._client.ancestors(checkpoint_id)

    def interrupts(self) -> list[OpenInterrupt]:
        """What LangGraph threads wait for an answer to."""
        return self._client.interrupts()

    def restore(
        self, checkpoint_id: str, verify: bool = True, on_unknown: OnUnknown = "raise"
    ) -> Checkpoint:
        """The checkpoint of that id."""
        return self._client.restore(checkpoint_id, verify, on_unknown)

    def pending(self, agent_id: str | None = None) -> list[Question]:
        """Calls that wait for approval."""
        return self._client.pending(agent_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.store.close()


def look_at(options: Namespace) -> Looking:
    """The store that is meant, for commands that have to be quick."""
    from holdfast.stores.urls import open_store

    place = place_of(options)
    _check_is_there(place)
    return Looking(open_store(place.url))


def open_place(place: Place, create: bool = False) -> SyncClient:
    """A client of a store, which is made with its directory if it may be."""
    from holdfast.client import SyncClient

    if not create:
        _check_is_there(place)
    elif place.folder is not None:
        _make_folder(place.folder)
    return SyncClient.open(place.url)


def _check_is_there(place: Place) -> None:
    path = place.path
    if path is not None and place.folder is None and not path.exists():
        raise NotFound(
            f"there is no store at {path} ({place.source}). "
            f"Make one with `holdfast init --store {place.shown}`"
        )
