"""Records what a coding agent does: each event with the files and the conversation as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.client.with_files import put_with_files, snapshot_of
from holdfast.coding_agents import programs
from holdfast.coding_agents.beginnings import beginning_in
from holdfast.coding_agents.json_lines import JsonLines, position
from holdfast.coding_agents.masking import masked
from holdfast.coding_agents.naming import step_name
from holdfast.coding_agents.told import Moment, Told

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.workspace import Snapshot, Workspace

_LOOKED_AT = 8
"""So many of the newest checkpoints may be the one of an event that is told once more."""
_TOLD = (
    *("tool", "input", "output", "error", "prompt", "last_message", "call_id", "turn_id"),
    *("prompt_id", "subagent_id", "subagent_type", "cwd"),
)
_TAGGED = ("tool", "call_id", "turn_id", "subagent_id", "subagent_type")
_SAID = ("input", "output", "error", "prompt", "last_message")
"""What may hold secrets."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What became of an event."""

    session_id: str
    name: str
    checkpoint_id: str | None = None
    """None if there was nothing to keep."""
    files: int | None = None
    tree_id: str | None = None


class Recorder:
    """Records the events of one project; what was read of a conversation is not read again."""

    def __init__(self, client: SyncClient, workspace: Workspace) -> None:
        self._client = client
        self._workspace = workspace
        self._files = JsonLines()
        self._tree_of_head: tuple[str, str] | None = None
        """The checkpoint made last, and its tree."""

    def record(
        self, told: Told, agent_id: str | None = None, event_id: str | None = None
    ) -> Recorded:
        """Keep an event as the next checkpoint of its session.

        Nothing is kept of a start, of calls that start a subagent, of calls of Holdfast's own
        tools, and of calls that only read while no file has changed. An event that is told again is
        kept once: known by its ``event_id``, or by its turn where the hook is installed twice.
        """
        program = programs.program(told.program)
        told = _masked(program.completed(told, self._files))
        name = step_name(told, program)
        agent = agent_id or program.name
        session = session_of(told)
        nothing = Recorded(session_id=session, name=name)
        is_own = (told.tool or "").startswith(program.own_tools)
        if told.moment is Moment.START or is_own or program.is_ignored(told):
            return nothing
        # One at a time: hooks of tools that run side by side make one line.
        with self._workspace._local.mutex, self._workspace._alone():
            newest = self._client.find(agent_id=agent, session_id=session, limit=_LOOKED_AT)
            known = next((each for each in newest if _is_of(each, event_id)), None)
            if known is not None:
                return replace(nothing, checkpoint_id=known.checkpoint_id)
            parent = newest[0] if newest else self._parent_session(told, agent)
            is_read = told.moment is Moment.CALL and told.tool in program.read_only
            if is_read and newest and self._is_unchanged(newest[0], self._snapshot()):
                return nothing
            # Before the files: what ends in between is never told as done without what it did.
            state = self._state(told)
            snapshot = self._snapshot()
            known = next((each for each in newest if _is_same(each, told, name)), None)
            if known is not None and self._is_unchanged(newest[0], snapshot):
                return replace(nothing, checkpoint_id=known.checkpoint_id)
            checkpoint_id = put_with_files(
                self._client,
                self._workspace,
                snapshot,
                agent_id=agent,
                session_id=session,
                name=name,
                state=state,
                tags=_tags(told, event_id),
                parent=parent,
            )
        self._tree_of_head = (checkpoint_id, snapshot.tree_id)
        return Recorded(
            session_id=session,
            name=name,
            checkpoint_id=checkpoint_id,
            files=snapshot.files,
            tree_id=snapshot.tree_id,
        )

    def warm_up(self) -> None:
        """Look at all files once, so that the next event need only look at what changed."""
        self._snapshot()

    def _snapshot(self) -> Snapshot:
        return self._workspace.snapshot_for_checkpoint()

    def _parent_session(self, told: Told, agent: str) -> CheckpointInfo | None:
        """Return what the first checkpoint of a session follows: that of a subagent its parent."""
        if told.subagent_id is None:
            return beginning_in(self._client, self._workspace.path, agent)
        heads = self._client.find(agent_id=agent, session_id=told.session, limit=1)
        return heads[0] if heads else None

    def _is_unchanged(self, head: CheckpointInfo, snapshot: Snapshot) -> bool:
        if self._tree_of_head is None or self._tree_of_head[0] != head.checkpoint_id:
            before = snapshot_of(self._client, head)
            self._tree_of_head = (head.checkpoint_id, "" if before is None else before.tree_id)
        return self._tree_of_head[1] == snapshot.tree_id

    def _state(self, told: Told) -> dict[str, Any]:
        state: dict[str, Any] = {"program": told.program, "event": told.event}
        state["moment"] = str(told.moment)
        for name in _TOLD:
            if getattr(told, name) is not None:
                state[name] = getattr(told, name)
        if told.transcript is not None:
            state["transcript"] = position(told.transcript)
        transcript = programs.transcript(told.program)
        entries = None if transcript is None else transcript.read(told, self._files)
        if transcript is not None and entries is not None:
            state["conversation"] = {"format": transcript.format, "entries": entries}
        return state


def session_of(told: Told) -> str:
    """Return the session of an event: a subagent has one beside its parent's."""
    return told.session if told.subagent_id is None else f"{told.session}.{told.subagent_id}"


def _masked(told: Told) -> Told:
    """Return an event without secrets, before half of one could be cut off for a name."""
    return replace(told, **{name: masked(getattr(told, name)) for name in _SAID})


def _tags(told: Told, event_id: str | None) -> dict[str, Any]:
    tags: dict[str, Any] = {"event": told.event, "program": told.program}
    for name in _TAGGED:
        if getattr(told, name) is not None:
            tags[name] = getattr(told, name)
    return tags if event_id is None else {**tags, "event_id": event_id}


def _is_of(info: CheckpointInfo, event_id: str | None) -> bool:
    return event_id is not None and info.metadata.get("event_id") == event_id


def _is_same(info: CheckpointInfo, told: Told, name: str) -> bool:
    """Return whether a checkpoint is that of an event, told by a hook that is installed twice."""
    tags = info.metadata
    known = (tags.get("turn_id"), tags.get("event"), tags.get("call_id"), info.step_name)
    return told.turn_id is not None and known == (told.turn_id, told.event, told.call_id, name)
