"""Which session of Holdfast's a key of Claude's names, and how its transcript is kept there.

A session has Claude's own session id as its name. If another project has one of that name, the
project stands behind it: two projects never mix. A subagent's is beside it: ``id|subagents/…``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.adapters.claude_agent_sdk import transcript
from holdfast.adapters.claude_agent_sdk.transcript import State
from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.core.conversation.frameworks.claude_entries import made_uuid
from holdfast.errors import InvalidArgumentError
from holdfast.model import CheckpointInfo, checked_name
from holdfast.runtime.steps import Plan
from holdfast.stores.base import SessionInfo

Key = Mapping[str, Any]
Change = Callable[[State | None], State | None]
"""Makes the next state of one; None: it stays as it is."""
PROJECT, SUBPATH = "project_key", "subpath"


class _Unchanged(Exception):
    """There is nothing to write."""


class _OtherProject(Exception):
    """The session is of another project."""


def checked_key(key: Any) -> Key:
    """Return a key; an error if it names no transcript."""
    wanted = {PROJECT: str, "session_id": str}
    if not isinstance(key, Mapping) or any(
        not isinstance(key.get(name), kind) or not key[name] for name, kind in wanted.items()
    ):
        raise InvalidArgumentError(
            f"a key is a dict with project_key and session_id, and subpath for a subagent: {key!r}"
        )
    subpath = key.get(SUBPATH)
    if subpath is not None and (not isinstance(subpath, str) or not subpath):
        raise InvalidArgumentError(f"subpath is a text, or left out for the session itself: {key}")
    return key


class Transcripts:
    """The transcripts of a store, as plans."""

    def __init__(self, kept: KeptSessions) -> None:
        self.kept = kept
        self._names: dict[tuple[str, str], str] = {}
        self._called: dict[str, str] = {}
        """What users call sessions, by the UUIDs that Claude's program has for them."""

    def claude_id(self, session_id: str) -> str:
        """Return the UUID of a session, and know it by that from now on."""
        checked_name("session_id", session_id)
        try:
            uuid.UUID(session_id)
        except ValueError:
            made = made_uuid("session", session_id)
            self._called[made] = session_id
            return made
        return session_id

    def another_id(self, own_id: str) -> str:
        """Return another UUID for a session, where the program has used up its own."""
        made = made_uuid("session", own_id)
        self._called[made] = self._called.get(own_id, own_id)
        return made

    def called_by(self, own_id: str) -> str:
        """Return what a session is called that Claude's program knows by an id."""
        return self._called.get(own_id, own_id)

    def own_id_of(self, name: str) -> str:
        """Return Claude's id of the session of a name."""
        called = name.partition(" in ")[0]
        return next((own for own, each in self._called.items() if each == called), called)

    def find(self, key: Key) -> Plan[tuple[str, Kept | None]]:
        """Return the name of the session that a key names, and its head if it is there."""
        name = yield from self.name(key)
        return name, (yield from self._own(name, key))

    def name(self, key: Key) -> Plan[str]:
        """Return the name of the session that a key names, whether it is there or not."""
        project = key[PROJECT]
        session_id = self.called_by(key["session_id"])
        known = self._names.get((project, session_id))
        if known is None:
            beside = _beside(session_id, project)
            own = yield from self.kept.head(beside)
            first = None if own is not None else (yield from self.kept.head(session_id))
            is_free = own is None and (first is None or _project(first) in (None, project))
            known = session_id if is_free else beside
            if own is not None or (first is not None and is_free):
                self._names[project, session_id] = known
        return f"{known}|{key[SUBPATH]}" if key.get(SUBPATH) else known

    def _own(self, name: str, key: Key) -> Plan[Kept | None]:
        head = yield from self.kept.head(name)
        if head is None:
            return None
        transcript.checked(head.state, name)
        return head if _project(head) in (None, key[PROJECT]) else None

    def change(
        self,
        key: Key,
        change: Change,
        title: str,
        *,
        captures: bool = False,
        lost: Sequence[str] = (),
    ) -> Plan[Kept | None]:
        """Keep what a function makes of a transcript; None if that is what it was."""
        project = key[PROJECT]

        def changed(state: Any) -> Any:
            if state is not None and transcript.checked(state, name)[PROJECT] not in (
                None,
                project,
            ):
                raise _OtherProject
            found = change(state)
            if found is None:
                raise _Unchanged
            return found

        tags: dict[str, Any] = {PROJECT: project}
        tags |= {SUBPATH: key[SUBPATH]} if key.get(SUBPATH) else {}
        tags |= {"lost": list(lost)} if lost else {}
        while True:
            name = yield from self.name(key)
            try:
                kept = yield from self.kept.update(
                    name, changed, name=title, tags=tags, captures=captures
                )
            except _Unchanged:
                return None
            except _OtherProject:  # it came to be just now
                called = self.called_by(key["session_id"])
                self._names[project, called] = _beside(called, project)
            else:
                return kept

    def moved(self, key: Key) -> Plan[Kept | None]:
        """Bring a session of another directory, or machine, to that of a key; None if it has none.

        Where two directories have one of that name, it is not clear which: each keeps its own.
        """
        called = self.called_by(key["session_id"])
        head = yield from self.kept.head(called)
        if head is None:
            return None
        state = {**transcript.checked(head.state, called), PROJECT: key[PROJECT]}
        tags = {PROJECT: key[PROJECT]}
        title = "moved to another directory"
        kept = yield from self.kept.write(
            called, state, name=title, after=head, tags=tags, captures=False
        )
        self._names = {each: name for each, name in self._names.items() if name != called}
        return kept

    def of_project(self, project_key: str) -> Plan[list[SessionInfo]]:
        """Return the sessions of a project, without those of subagents."""
        found = []
        for session in (yield from self.kept.listed()):
            if "|" in session.session_id or SUBPATH in session.head.metadata:
                continue
            if (yield from self._project_of(session.head)) == project_key:
                found.append(session)
        return found

    def _project_of(self, head: CheckpointInfo) -> Plan[Any]:
        if PROJECT in head.metadata:
            return head.metadata[PROJECT]
        kept = yield from self.kept.head(head.session_id)  # a fork has no tags
        return None if kept is None else _project(kept)

    def subpaths(self, key: Key) -> Plan[list[str]]:
        """Return the subagents of a session."""
        name = yield from self.name({PROJECT: key[PROJECT], "session_id": key["session_id"]})
        listed = yield from self.kept.listed()
        begins = f"{name}|"
        return [
            s.session_id.removeprefix(begins) for s in listed if s.session_id.startswith(begins)
        ]

    def remove(self, key: Key) -> Plan[None]:
        """Remove a transcript; that of a session with those of its subagents."""
        name, head = yield from self.find(key)
        if not key.get(SUBPATH):
            for subpath in (yield from self.subpaths(key)):
                yield from self.kept.remove(f"{name}|{subpath}")
            called = self.called_by(key["session_id"])
            self._names.pop((key[PROJECT], called), None)
        if head is not None:
            yield from self.kept.remove(name)


def _beside(session_id: str, project: str) -> str:
    return f"{session_id} in {project}"


def _project(head: Kept) -> Any:
    state = head.state
    return state.get(PROJECT) if isinstance(state, Mapping) else None
