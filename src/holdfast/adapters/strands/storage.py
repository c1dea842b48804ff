"""A storage of Strands in a store of Holdfast."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from strands.storage import Storage

from holdfast.adapters.journal import Effects
from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.adapters.open_runs import OpenRuns
from holdfast.adapters.opening import AdapterStore
from holdfast.adapters.strands import contents
from holdfast.adapters.strands.errors import HoldfastStorageError
from holdfast.adapters.strands.keys import Place, carried, checked_prefix, session_of
from holdfast.adapters.strands.steps import messages_of, step_name
from holdfast.client import Client, SyncClient
from holdfast.errors import AdapterError, HoldfastError
from holdfast.model import Framework
from holdfast.system.recent import Recent

if TYPE_CHECKING:
    from holdfast.adapters.strands.plugin import HoldfastPlugin

T = TypeVar("T")
_REMEMBERED = 256


class HoldfastStorage(Storage):
    """A storage whose every write is a checkpoint: to resume, roll back, fork and compare.

    ``SnapshotSessionManager("chat", storage=HoldfastStorage(url="sqlite:///agent.db"),
    save_latest_on="message")``. With ``workspace`` every write keeps the files of that directory.
    """

    def __init__(
        self,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        workspace: Any = None,
        agent_id: str = Framework.STRANDS.value,
    ) -> None:
        self._store = AdapterStore.given(client, url)
        self._sessions = KeptSessions(self._store, Framework.STRANDS, agent_id, workspace)
        self.runs = OpenRuns(self._store, self._sessions)
        """The sessions in which an agent is at work whose tools are journaled."""
        self._said: Recent[Place, int] = Recent(_REMEMBERED)
        """How many messages a snapshot had, to tell what the next write is."""
        self._seen: Recent[Place, str | None] = Recent(_REMEMBERED)
        """Which bytes were read or written last, to tell whether others have written since."""

    @property
    def client(self) -> SyncClient:
        """The store's client: timeline, diff, fork, rollback of the sessions that are kept here."""
        return self._store.client

    def plugin(self, effects: Effects | None = None, *, approval: Any = None) -> HoldfastPlugin:
        """Return a plugin for the agent, ``Agent(plugins=[storage.plugin()])``, that journals its
        tools one by one: of several at once only the unfinished run again.

        ``effects`` says what tools do to the world, ``{"send_mail": "irreversible"}``; ``approval``
        who is asked before that, as in ``client.session``.
        """
        from holdfast.adapters.strands.plugin import HoldfastPlugin

        return HoldfastPlugin(self, effects, approval=approval)

    async def write(self, key: str, data: bytes) -> None:
        """Keep bytes under a key, as the next checkpoint of its session."""
        place = Place.of(key)
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise HoldfastStorageError(
                f"bytes are written under {key!r}, not {type(data).__name__}"
            )
        content = contents.content_of(bytes(data))
        said = messages_of(content)
        name = step_name(place.name, said, self._said.get(place))
        change = _Change(place, content)
        tags = {"native_session_id": place.session_id}
        await _told(
            f"write {key!r}", self.runs.update(place.session_id, change, name=name, tags=tags)
        )
        self._said.put(place, len(said))
        self._seen.put(place, contents.fingerprint(bytes(data)))

    async def read(self, key: str) -> bytes | None:
        """Return the very bytes that were written under a key; None if there are none."""
        place = Place.of(key)
        kept = await self._head(place.session_id, f"read {key!r}")
        content = None if kept is None else entry_in(entries_of(kept), place)
        data = None if content is None else contents.bytes_of(content, key)
        self._seen.put(place, None if data is None else contents.fingerprint(data))
        return data

    def seen(self, place: Place) -> str | None:
        """Return the fingerprint of what was read or written last in a place; None: of nothing."""
        return self._seen.get(place)

    async def delete(self, key: str) -> None:
        """Forget a key; with the last of a session all its checkpoints are removed."""
        place = Place.of(key)
        kept = await self._head(place.session_id, f"delete {key!r}")
        if kept is None or place.name not in entries_of(kept):
            return
        tags = {"native_session_id": place.session_id}
        name = f"delete {place.name.rpartition('/')[2]}"
        state = await _told(
            f"delete {key!r}",
            self.runs.update(place.session_id, _Change(place, None), name=name, tags=tags),
        )
        if not state["entries"]:
            await _told(
                f"delete {key!r}", self._store.aio.run(self._sessions.remove(place.session_id))
            )

    async def list(self, query: str = "") -> builtins.list[str]:
        """Return the keys that begin with a prefix, in order."""
        prefix = checked_prefix(query)
        what = f"list keys with prefix {query!r}"
        one = session_of(prefix)
        names = [one] if one else await _told(what, self._every_session())
        found = []
        for session_id in names:
            kept = await self._head(session_id, what)
            if kept is not None:
                places = (Place(session_id, name) for name in entries_of(kept) if "*" not in name)
                found += [place.key for place in places if place.key.startswith(prefix)]
        return sorted(found)

    async def close(self) -> None:
        """Close the store, if it was opened by its URL."""
        self._sessions.close()
        await self._store.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _every_session(self) -> builtins.list[str]:
        listed = await self._store.aio.run(self._sessions.listed())
        return [session.session_id for session in listed]

    async def _head(self, session_id: str, what: str) -> Kept | None:
        return await _told(what, self._store.aio.run(self._sessions.head(session_id)))


class _Change:
    """Makes the next state of a session of the one before: with an entry, or without it."""

    def __init__(self, place: Place, content: contents.Content | None) -> None:
        self.place = place
        self.content = content

    def __call__(self, state: Any) -> dict[str, Any]:
        entries = dict((state or {}).get("entries", {}))
        others = carried(self.place.name)
        if others is not None:
            entries.pop(others, None)
        if self.content is None:
            entries.pop(self.place.name, None)
        else:
            entries[self.place.name] = self.content
        return {**(state or {}), "entries": entries, "last": self.place.name}


def entries_of(kept: Kept) -> Mapping[str, Any]:
    """Return what a session holds, by names."""
    entries = kept.state.get("entries") if isinstance(kept.state, Mapping) else None
    if not isinstance(entries, Mapping):
        raise HoldfastStorageError(
            f"session {kept.info.session_id!r} holds no entries of strands at "
            f"{kept.checkpoint_id}: roll it back to a checkpoint that does, or delete it"
        )
    return entries


def entry_in(entries: Mapping[str, Any], place: Place) -> Any:
    """Return what is kept in a place: by its agent, or by none that is named; None if nothing."""
    others = carried(place.name)
    return entries.get(place.name, None if others is None else entries.get(others))


async def _told(what: str, asked: Awaitable[T]) -> T:
    """Return what comes of something; what goes wrong is told in its own words first."""
    try:
        return await asked
    except AdapterError:
        raise
    except HoldfastError as error:
        raise HoldfastStorageError(f"{error} (Failed to {what})") from error
