"""What some stores do beyond what every store does.

Each is a small protocol, and a store that has its methods has the capability:
``store.capability(Waits)`` is the store, or what speaks for it, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import Note, Record, SessionInfo, Store


@runtime_checkable
class Waits(Protocol):
    """Is told of others' writes; a store without this is asked again and again."""

    def wait(self, scope: str, after: int, timeout: float) -> None:
        """Return when the scope may have a note past that place, or the time is over."""


@runtime_checkable
class FindsNewest(Protocol):
    """Finds the newest record of a session together with all it needs, in one go."""

    def newest(self, agent_id: str, session_id: str) -> Record | None:
        """Return what ``query`` and then ``load`` give for the newest record of a session."""


@runtime_checkable
class FindsLastNotes(Protocol):
    """Finds the last notes of a scope, however many it has."""

    def last_notes(self, scopes: Collection[str], count: int) -> list[Note]:
        """Return what ``notes`` gives of these scopes, of each the last so many."""


@runtime_checkable
class FindsSessions(Protocol):
    """Finds sessions by how their names begin, without looking at all others."""

    def beginning(self, prefix: str, limit: int) -> list[SessionInfo]:
        """Return some sessions whose name begins so, or that of their agent, a slash and theirs."""


@runtime_checkable
class ListsTargets(Protocol):
    """Lists to whom checkpoints were ever handed off, however many these are."""

    def targets(self) -> list[str]:
        """Return the handoff targets of all records, each once."""


@runtime_checkable
class ListsLost(Protocol):
    """Has listings that may name what is not there any more."""

    def lost(self) -> list[tuple[str, str]]:
        """Return checkpoints and scopes that are listed and gone, each with what is missing."""


@runtime_checkable
class FilesRecords(Protocol):
    """Finds records by what it filed beside them, which may be damaged while they are whole."""

    def misfiled(self, infos: Collection[CheckpointInfo]) -> list[tuple[str, str]]:
        """Return those of some records that it would not find where it looks, and why not."""


@runtime_checkable
class ListsRoots(Protocol):
    """Lists what its records need without reading them, however many they are."""

    def roots(self, include_expired: bool, take: Callable[[list[bytes]], object]) -> None:
        """Hand over the root chunks of all records there are at one moment, some at a time.

        Those of records that come or go meanwhile may be among them. Some may come twice.
        """


@runtime_checkable
class TellsChanges(Protocol):
    """Tells cheaply, without waiting, that something has changed."""

    def tick(self) -> Any:
        """Return something that differs once anybody has written since."""

    def removals(self) -> Any:
        """Return something that differs once anything was removed since."""


@runtime_checkable
class Glances(Protocol):
    """Sees at a glance that nothing has changed, where looking closely costs much."""

    def glance(self) -> Any:
        """Return something that differs once anybody has written; None if that may just be."""


@runtime_checkable
class OnDisk(Protocol):
    """Lives in files of this machine, which are no part of any workspace."""

    @property
    def files(self) -> tuple[str, ...]:
        """Where it lives, the place it was opened by first."""

    @property
    def files_apart(self) -> tuple[str, ...]:
        """Other places that are its own alone, such as a directory of large chunks."""


@runtime_checkable
class HasConcerns(Protocol):
    """Was opened on a server of which a user should know something."""

    @property
    def concerns(self) -> tuple[str, ...]:
        """What that is, as ``holdfast doctor`` says it."""


@runtime_checkable
class Volatile(Protocol):
    """Is gone with the process."""

    @property
    def is_volatile(self) -> bool:
        """Whether it is; always true."""


def files_of(store: Store) -> tuple[str, ...]:
    """Return where on this disk a store lives; nothing for one that lives elsewhere."""
    place = store.capability(OnDisk)
    return () if place is None else place.files


def tick_of(store: Store) -> Any:
    """Return what differs once anybody has written since; None if the store cannot tell."""
    changes = store.capability(TellsChanges)
    return None if changes is None else changes.tick()


def removals_of(store: Store) -> Any:
    """Return what differs once anything was removed since; None if the store cannot tell."""
    changes = store.capability(TellsChanges)
    return None if changes is None else changes.removals()


def glance_of(store: Store) -> Any:
    """Return what differs once anybody has written since; None if only a closer look tells."""
    found = store.capability(Glances)
    return None if found is None else found.glance()


def concerns_of(store: Store) -> tuple[str, ...]:
    """Return what a user should know of the server of a store."""
    server = store.capability(HasConcerns)
    return () if server is None else server.concerns
