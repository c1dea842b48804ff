"""Conversations of Pydantic AI in Holdfast: each is a session, each save a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.adapters.pydantic_ai.conversation_state import (
    DELETED,
    Entries,
    entries_in,
    given_entries,
    is_conversation,
    kept_entries,
    line_to,
    record_in,
    state_of,
)
from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError, NotTheHeadError
from holdfast.model import Framework
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query
from holdfast.system.recent import Recent
from holdfast.verbs import save

_HEAD = "head"
"""The tag of a checkpoint that names the newest entry of its conversation."""
_REMEMBERED = 1024


class HoldfastConversationStore(OnStore, ConversationStore):
    """A ConversationStore on Holdfast: each conversation is a session, each save a checkpoint.

    ``store = HoldfastConversationStore(url="sqlite:///agent.db")``. A fork is a session whose first
    checkpoint has the forked one as its parent. Deleting a conversation removes all of it; forks
    keep what they hold.
    """

    def __init__(
        self,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        agent_id: str = Framework.PYDANTIC_AI.value,
    ) -> None:
        self._store = AdapterStore.given(client, url)
        self._kept = KeptSessions(self._store, Framework.PYDANTIC_AI, agent_id)
        self._where: Recent[str, str] = Recent(_REMEMBERED)
        """The conversations in whose logs entries are."""

    # What the framework asks for

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation; None if there is none."""
        found = await self._store.aio.run(self._kept.head(conversation_id))
        return None if found is None else self._record(found)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records of a scope, or all, the one saved last first."""
        return await self._store.aio.run(self._records(scope, limit))

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Keep a record with its new entries, as the next checkpoint of its session."""
        plan = self._write(record, kept_entries(new_entries), expected_revision)
        await self._store.aio.run(plan)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Remove a conversation with all of its log."""
        await self._store.aio.run(self._delete(conversation_id, expected_revision))

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry; KeyError if no conversation has it."""
        entries = await self._store.aio.run(self._log_with(entry_id))
        return given_entries(line_to(entries, entry_id, limit=1))[0]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the entries up to one, the oldest first; with ``limit`` only the last of them."""
        if head_id is None or limit == 0:
            return []
        entries = await self._store.aio.run(self._log_with(head_id))
        return given_entries(line_to(entries, head_id, limit))

    # What that takes, as plans

    def _record(self, found: Kept) -> ConversationRecord | None:
        record = record_in(found.state, found.info.session_id)
        for entry_id in () if record is None else (record.head_id, *record.branches):
            if entry_id is not None:
                self._where.put(entry_id, found.info.session_id)
        return record

    def _records(self, scope: str | None, limit: int | None) -> Plan[list[ConversationRecord]]:
        found: list[ConversationRecord] = []
        for session in (yield from self._kept.listed()):
            if limit is not None and len(found) >= limit:
                break
            head = yield from self._kept.head(session.session_id)
            if head is None or not is_conversation(head.state):
                continue
            record = self._record(head)
            if record is not None and scope in (None, record.scope):
                found.append(record)
        return sorted(found, key=lambda record: record.updated_at, reverse=True)

    def _write(
        self, record: ConversationRecord, new: Entries, expected_revision: str | None
    ) -> Plan[None]:
        session_id = record.conversation_id
        after = yield from self._kept.head(session_id)
        before = None if after is None else self._record(after)
        if (None if before is None else before.revision) != expected_revision:
            raise ConversationConflict(session_id)
        old = [] if after is None else entries_in(after.state, session_id)
        known = {entry["id"] for entry in (*old, *new)}
        source: Kept | None = None
        if record.head_id is not None and record.head_id not in known:
            source, old = yield from self._forked(record)
        state = state_of(record, [*old, *new])
        tags = {} if record.head_id is None else {_HEAD: record.head_id}
        try:
            if source is not None and after is None:
                yield from self._fork(source, session_id, state)
            else:
                name = "turn" if new else ("branch" if before is not None else "new")
                yield from self._kept.write(session_id, state, name=name, after=after, tags=tags)
        except NotTheHeadError:
            raise ConversationConflict(session_id) from None
        if record.head_id is not None:
            self._where.put(record.head_id, session_id)

    def _forked(self, record: ConversationRecord) -> Plan[tuple[Kept, Entries]]:
        """Return the conversation that a fork is of, and the entries that it begins with."""
        assert record.head_id is not None
        try:
            entries = yield from self._log_with(record.head_id)
            line = line_to(entries, record.head_id)
        except LookupError:
            raise ConversationConflict(record.conversation_id) from None
        source = self._where.get(record.head_id)
        found = None if source is None else (yield from self._kept.head(source))
        if found is None:
            raise ConversationConflict(record.conversation_id)
        return found, line

    def _fork(self, source: Kept, session_id: str, state: dict[str, Any]) -> Plan[None]:
        """Begin a session at the checkpoint of another conversation."""
        try:
            engine = self._store.sync.engine
            yield from save.fork(engine, source.checkpoint_id, session_id, state, None)
        except InvalidArgumentError:  # another has begun it meanwhile
            raise ConversationConflict(session_id) from None

    def _delete(self, session_id: str, expected_revision: str) -> Plan[None]:
        found = yield from self._kept.head(session_id)
        record = None if found is None else self._record(found)
        if record is None or record.revision != expected_revision:
            raise ConversationConflict(session_id)
        try:
            yield from self._kept.write(session_id, DELETED, name="deleted", after=found)
        except NotTheHeadError:
            raise ConversationConflict(session_id) from None
        yield from self._kept.remove(session_id)

    def _log_with(self, entry_id: str) -> Plan[Entries]:
        """Return the log of a conversation that has an entry; KeyError if none has."""
        known = self._where.get(entry_id)
        candidates = [] if known is None else [known]
        tagged = Query(agent_id=self._kept.agent_id, tags={_HEAD: entry_id}, limit=1)
        candidates += [info.session_id for info in (yield from steps.query(tagged))]
        for session_id in dict.fromkeys(candidates):
            entries = yield from self._log_of(session_id)
            if any(entry["id"] == entry_id for entry in entries):
                self._where.put(entry_id, session_id)
                return entries
        for session in (yield from self._kept.listed()):
            entries = yield from self._log_of(session.session_id)
            if any(entry["id"] == entry_id for entry in entries):
                self._where.put(entry_id, session.session_id)
                return entries
        raise KeyError(entry_id)

    def _log_of(self, session_id: str) -> Plan[Entries]:
        found = yield from self._kept.head(session_id)
        if found is None or not is_conversation(found.state):
            return []
        return entries_in(found.state, session_id)

    # Its store
