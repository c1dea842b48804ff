"""ADK's sessions in a store of Holdfast."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.platform import time as adk_time
from google.adk.platform import uuid as adk_uuid
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from google.genai import types

from holdfast.adapters.google_adk import records, unfinished
from holdfast.adapters.google_adk.appending import Added, AlreadyKeptError, mark
from holdfast.adapters.google_adk.shared_state import SharedState
from holdfast.adapters.journal import Effects
from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.adapters.open_runs import OpenRuns
from holdfast.adapters.opening import AdapterStore
from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError, NotTheHeadError
from holdfast.model import Framework
from holdfast.runtime.steps import Plan
from holdfast.system.recent import Recent

if TYPE_CHECKING:
    from holdfast.adapters.google_adk.plugin import HoldfastPlugin

_REMEMBERED = 256
_Found = tuple[str, Kept]
"""The name of a session in the store, and what its head holds."""


class HoldfastSessionService(BaseSessionService):
    """A session service whose every event is a checkpoint: to resume, roll back, fork and compare.

    ``Runner(app=app, session_service=HoldfastSessionService(url="sqlite:///agent.db"))``. With
    ``workspace`` every event keeps the files of that directory too.
    """

    def __init__(
        self,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        workspace: Any = None,
        agent_id: str = Framework.GOOGLE_ADK.value,
    ) -> None:
        self._store = AdapterStore.given(client, url)
        self._sessions = KeptSessions(self._store, Framework.GOOGLE_ADK, agent_id, workspace)
        self._shared = SharedState(self._store, agent_id)
        self.runs = OpenRuns(self._store, self._sessions)
        """The sessions in which an agent is at work whose tools are journaled."""
        self.resumed = unfinished.Resumed()
        self._names: Recent[tuple[str, str, str], str] = Recent(_REMEMBERED)
        """Under which name sessions were found."""
        self._locks: WeakKeyDictionary[
            asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]
        ] = WeakKeyDictionary()

    @property
    def client(self) -> SyncClient:
        """The store's client: timeline, diff, fork, rollback of the sessions that are kept here."""
        return self._store.client

    def plugin(self, effects: Effects | None = None, *, approval: Any = None) -> HoldfastPlugin:
        """Return a plugin for the app: tools are journaled one by one, and a run that was cut off
        goes on where it stopped when the same message comes again.

        ``effects`` says what tools do to the world, ``{"send_mail": "irreversible"}``; ``approval``
        who is asked before that, as in ``client.session``.
        """
        from holdfast.adapters.google_adk.plugin import HoldfastPlugin

        return HoldfastPlugin(self, effects, approval=approval)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Begin a session; AlreadyExistsError if there is one of that id."""
        own_id = _checked(app_name, user_id, session_id) or adk_uuid.new_uuid()
        given = records.divided(state)
        if await self._find(app_name, user_id, own_id) is not None:
            raise AlreadyExistsError(f"Session with id {own_id} already exists.")
        shared = await self._shared.add(app_name, user_id, given)
        session = Session(
            app_name=app_name,
            user_id=user_id,
            id=own_id,
            state=records.merged(given["session"], *shared),
            last_update_time=adk_time.get_time(),
        )
        first = {
            "app_name": app_name,
            "user_id": user_id,
            "id": own_id,
            "state": given["session"],
            "events": [],
            "last_update_time": session.last_update_time,
        }
        record = records.session_record(app_name, user_id, own_id)
        tags = records.tags_of(session)
        try:
            await self._run(
                self._sessions.write(record, first, name="created", after=None, tags=tags)
            )
        except NotTheHeadError:  # another was faster
            raise AlreadyExistsError(f"Session with id {own_id} already exists.") from None
        mark(session, first)
        return session

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session as its head holds it now; None if there is none of that id."""
        own_id = _checked(app_name, user_id, session_id)
        found = await self._find(app_name, user_id, own_id)
        if found is None:
            return None
        shared = await self._shared.of(app_name, user_id)
        return session_of(found[1], app_name, user_id, own_id, shared, config)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return the sessions of an app, or of one of its users, the newest at the end."""
        heads = [
            info.head
            for info in await self._run(self._sessions.listed())
            if info.head.metadata.get("app_name") == app_name
            and user_id in (None, info.head.metadata.get("user_id"))
        ]
        sessions = []
        none = GetSessionConfig(num_recent_events=0)
        for head in heads:
            tags = head.metadata
            owner, own_id = str(tags["user_id"]), str(tags.get("native_session_id"))
            kept = await self._run(self._sessions.head(head.session_id))
            if kept is not None:  # deleted meanwhile
                if head.session_id != records.session_record(app_name, owner, own_id):
                    own_id = head.session_id  # a fork, which is found by the name it was given
                shared = await self._shared.of(app_name, owner)
                sessions.append(session_of(kept, app_name, owner, own_id, shared, none))
        sessions.sort(key=lambda each: (each.last_update_time, each.user_id, each.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Remove a session with all its checkpoints; nothing happens if there is none."""
        found = await self._find(app_name, user_id, _checked(app_name, user_id, session_id))
        if found is not None:
            self._names.take((app_name, user_id, found[1].state.get("id")))
            await self._run(self._sessions.remove(found[0]))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return what the sessions of a user share, without the ``user:`` before its keys."""
        _, user = await self._shared.of(app_name, user_id)
        return user

    async def append_event(self, session: Session, event: Event) -> Event:
        """Keep an event behind the others, as a checkpoint; one that is there already is not
        kept twice. StaleSessionError if the session was changed since it was read."""
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        async with self._lock(session):
            record = await self.record_of(session)
            if self.resumed.is_prompt(record, event):
                return event
            delta = records.divided(event.actions.state_delta)
            added = Added(session, event, delta["session"])
            if delta["app"] or delta["user"]:
                kept = await self._run(self._sessions.head(record))
                if not added.is_in(None if kept is None else kept.state):
                    await self._shared.add(session.app_name, session.user_id, delta)
            tags = {**records.tags_of(session), "invocation_id": event.invocation_id}
            name = records.step_name(event)
            try:
                state = await self._added(record, added, name, tags)
            except AlreadyKeptError as there:
                mark(session, there.state)
                if any(each.id == event.id for each in session.events):
                    return event
                return self._commit_event_to_session(session, event)
            session.last_update_time = event.timestamp
            mark(session, state)
        return self._commit_event_to_session(session, event)

    async def _added(self, record: str, added: Added, name: str, tags: dict[str, Any]) -> Any:
        """Keep an event; whether its session is an older one is said by the head alone."""
        try:
            return await self.runs.update(record, added, name=name, tags=tags)
        except StaleSessionError:
            await self._run(self._sessions.head(record))  # what was remembered may be older
            return await self.runs.update(record, added, name=name, tags=tags)

    async def unfinished(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        new_message: types.Content | None = None,
    ) -> str | None:
        """Return the id of the invocation that was cut off, for ``run_async(invocation_id=…)``.

        With a message only if that one began it: ADK does not add it a second time then. None if
        the last invocation came to its end, or the message is another.
        """
        session = await self.get_session(app_name=app_name, user_id=user_id, session_id=session_id)
        return None if session is None else unfinished.invocation(session.events, new_message)

    async def close(self) -> None:
        """Close the store, if it was opened by its URL."""
        self._sessions.close()
        await self._store.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def record_of(self, session: Session) -> str:
        """Return the session_id under which Holdfast keeps a session of ADK."""
        names = (session.app_name, session.user_id, session.id)
        known = self._names.get(names)
        if known is None:
            found = await self._find(*names)
            if found is None:
                raise SessionNotFoundError(f"Session {session.id} not found.")
            known = found[0]
        return known

    async def _find(self, app_name: str, user_id: str, own_id: str) -> _Found | None:
        """Return what is kept of a session; one that was forked has the name it was given then."""
        for name in (records.session_record(app_name, user_id, own_id), own_id):
            kept = await self._run(self._sessions.head(name)) if name else None
            if kept is not None and records.is_of(kept, app_name, user_id):
                self._names.put((app_name, user_id, own_id), name)
                return name, kept
        return None

    async def _run(self, plan: Plan[Any]) -> Any:
        return await self._store.aio.run(plan)

    def _lock(self, session: Session) -> asyncio.Lock:
        """Return what keeps events of one session in order, on this event loop."""
        locks = self._locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        name = records.session_record(session.app_name, session.user_id, session.id)
        lock = locks.get(name)
        if lock is None:
            lock = locks[name] = asyncio.Lock()
        return lock


def _checked(app_name: str, user_id: str, session_id: str | None) -> str:
    """Return the id of a session as ADK means it; what is no id is InvalidArgumentError."""
    for name, value in (("app_name", app_name), ("user_id", user_id)):
        if not isinstance(value, str) or not value:
            raise InvalidArgumentError(f"{name} is a text, not {value!r}")
    if session_id is not None and not isinstance(session_id, str):
        raise InvalidArgumentError(f"session_id is a text, not {type(session_id).__name__}")
    return session_id.strip() if session_id else ""


def session_of(
    kept: Kept,
    app_name: str,
    user_id: str,
    own_id: str,
    shared: tuple[dict[str, Any], dict[str, Any]],
    config: GetSessionConfig | None,
) -> Session:
    """Return a session as ADK has it, of what is kept."""
    wanted = [] if config is not None and config.num_recent_events == 0 else kept.state["events"]
    events = [records.loaded(kept, i, event) for i, event in enumerate(wanted)]
    session = Session(
        app_name=app_name,
        user_id=user_id,
        id=own_id,
        state=records.merged(records.field(kept, "state", {}), *shared),
        events=records.chosen(events, config),
        last_update_time=records.field(kept, "last_update_time", 0.0),
    )
    mark(session, kept.state)
    return session
