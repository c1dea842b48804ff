"""Where checkpoints live: the stores, and what it takes to write one.

A client opens its own (``SyncClient.sqlite()``, ``SyncClient.open(url)``); one of yours is given
to it: ``SyncClient(MyStore())``. ``Store`` is what every store does, the capabilities (``Waits``,
``OnDisk``…) what some also do, ``WrappedStore`` the base of one around another, and
``holdfast.testing`` the suite that proves them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazy

if TYPE_CHECKING:
    from holdfast.errors import FencedError as FencedError
    from holdfast.errors import MissingBaseError as MissingBaseError
    from holdfast.errors import MissingParentError as MissingParentError
    from holdfast.errors import NoteExistsError as NoteExistsError
    from holdfast.errors import NotTheHeadError as NotTheHeadError
    from holdfast.errors import RefusedError as RefusedError
    from holdfast.stores.async_base import AsyncStore as AsyncStore
    from holdfast.stores.async_base import at_once as at_once
    from holdfast.stores.async_base import in_threads as in_threads
    from holdfast.stores.base import Collected as Collected
    from holdfast.stores.base import Commit as Commit
    from holdfast.stores.base import Fence as Fence
    from holdfast.stores.base import Note as Note
    from holdfast.stores.base import NotesOnly as NotesOnly
    from holdfast.stores.base import Query as Query
    from holdfast.stores.base import Record as Record
    from holdfast.stores.base import SessionInfo as SessionInfo
    from holdfast.stores.base import Stats as Stats
    from holdfast.stores.base import Store as Store
    from holdfast.stores.capabilities import FilesRecords as FilesRecords
    from holdfast.stores.capabilities import FindsLastNotes as FindsLastNotes
    from holdfast.stores.capabilities import FindsNewest as FindsNewest
    from holdfast.stores.capabilities import FindsSessions as FindsSessions
    from holdfast.stores.capabilities import Glances as Glances
    from holdfast.stores.capabilities import HasConcerns as HasConcerns
    from holdfast.stores.capabilities import ListsLost as ListsLost
    from holdfast.stores.capabilities import ListsRoots as ListsRoots
    from holdfast.stores.capabilities import ListsTargets as ListsTargets
    from holdfast.stores.capabilities import OnDisk as OnDisk
    from holdfast.stores.capabilities import TellsChanges as TellsChanges
    from holdfast.stores.capabilities import Volatile as Volatile
    from holdfast.stores.capabilities import Waits as Waits
    from holdfast.stores.file import FileStore as FileStore
    from holdfast.stores.key_value import KeyValueStore as KeyValueStore
    from holdfast.stores.memory import MemoryStore as MemoryStore
    from holdfast.stores.objects import LargeBlobs as LargeBlobs
    from holdfast.stores.postgres import PostgresStore as PostgresStore
    from holdfast.stores.redis import RedisStore as RedisStore
    from holdfast.stores.sqlite import SqliteStore as SqliteStore
    from holdfast.stores.urls import open_store as open_store
    from holdfast.stores.wrapper import WrappedStore as WrappedStore
    from holdfast.system.threads import Threads as Threads

_homes = {
    "errors": (
        "FencedError",
        "MissingBaseError",
        "MissingParentError",
        "NotTheHeadError",
        "NoteExistsError",
        "RefusedError",
    ),
    "stores.async_base": ("AsyncStore", "at_once", "in_threads"),
    "stores.base": (
        "Collected",
        "Commit",
        "Fence",
        "Note",
        "NotesOnly",
        "Query",
        "Record",
        "SessionInfo",
        "Stats",
        "Store",
    ),
    "stores.capabilities": (
        "FilesRecords",
        "FindsLastNotes",
        "FindsNewest",
        "FindsSessions",
        "Glances",
        "HasConcerns",
        "ListsLost",
        "ListsRoots",
        "ListsTargets",
        "OnDisk",
        "TellsChanges",
        "Volatile",
        "Waits",
    ),
    "stores.file": ("FileStore",),
    "stores.key_value": ("KeyValueStore",),
    "stores.memory": ("MemoryStore",),
    "stores.objects": ("LargeBlobs",),
    "stores.postgres": ("PostgresStore",),
    "stores.redis": ("RedisStore",),
    "stores.sqlite": ("SqliteStore",),
    "stores.urls": ("open_store",),
    "stores.wrapper": ("WrappedStore",),
    "system.threads": ("Threads",),
}
"""Where each public name is defined; nothing is imported before it is asked for."""

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = lazy(__name__, _homes)
