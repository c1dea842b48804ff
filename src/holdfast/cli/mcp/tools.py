"""What the tools do: with the store and the files of one workspace, and never outside of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names, name_of
from holdfast.cli.access.session_run import SessionFiles, opened
from holdfast.cli.access.trees import compare_trees
from holdfast.cli.commands.diff import files_json
from holdfast.cli.exits import NotFound, Refused, UsageError
from holdfast.cli.mcp.caller import Caller
from holdfast.cli.mcp.current_session import current_session, may_be_of_subagent
from holdfast.cli.mcp.place import EVENT, place_of
from holdfast.cli.mcp.tool_table import LONGEST_NAME, LONGEST_TEXT, MOST_PATHS
from holdfast.cli.output.checkpoints import checkpoint_json
from holdfast.client.with_files import save_with_files, snapshot_of
from holdfast.coding_agents.masking import masked, masked_text

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Snapshot, TreeDiff, Workspace

_SIGNS = {"added": "A", "removed": "D", "modified": "M", "mode": "m"}


@dataclass(frozen=True)
class Answer:
    """What a tool gives: data as its schema says, and the same in words."""

    data: dict[str, Any]
    text: str


class Tools:
    """The tools, for one call."""

    def __init__(
        self,
        client: SyncClient,
        workspace: Workspace,
        caller: Caller,
        agent: str,
        session: str | None,
    ) -> None:
        self._client = client
        self._workspace = workspace
        self._caller = caller
        self._agent = agent
        self.session = session
        """The one that is pinned; None for whichever is the current one."""

    def checkpoint(self, name: str, note: str | None = None) -> Answer:
        """Keep all files as they are now."""
        self._check_is_no_id(name)
        session = self._current()
        agent_id, session_id = self._agent, self.session or self._workspace.name
        state: dict[str, Any] = {}
        tags: dict[str, Any] = {"event": EVENT}
        if session is not None:
            agent_id, session_id = session.agent_id, session.session_id
            head = self._client.restore(session.head.checkpoint_id, on_unknown="raw")
            given = {"name": name} if note is None else {"name": name, "note": note}
            caller = Caller() if may_be_of_subagent(self._client, session) else self._caller
            state = place_of(head.execution_state, session_id, caller, given)
        if "program" in state:
            tags["program"] = state["program"]
        if note is not None:
            state["note"] = masked(note)
        checkpoint_id, kept = save_with_files(
            self._client,
            self._workspace,
            agent_id=agent_id,
            session_id=session_id,
            name=masked_text(name),
            state=state,
            tags=tags,
        )
        data = {
            "checkpoint_id": checkpoint_id,
            "session_id": session_id,
            "files": kept.files,
            "new_bytes": kept.new_bytes,
        }
        return Answer(data, f"kept {kept.files} files as {masked_text(name)!r} ({checkpoint_id})")

    def log(self, limit: int) -> Answer:
        """List the checkpoints of the current session."""
        session = self._current()
        session_id = self.session or self._workspace.name if session is None else session.session_id
        infos: Sequence[CheckpointInfo] = ()
        if session is not None:
            infos = self._client.find(agent_id=session.agent_id, session_id=session_id, limit=limit)
        names = ("checkpoint_id", "step_name", "created_at", "parent_id")
        shown = [{name: each[name] for name in names} for each in map(checkpoint_json, infos)]
        lines = [
            f"{each['checkpoint_id']}  {each['created_at']}  {each['step_name']}" for each in shown
        ]
        text = "\n".join([f"session {session_id}", *lines]) if lines else "no checkpoints yet"
        return Answer({"session_id": session_id, "checkpoints": shown}, text)

    def diff(self, old: str, new: str | None = None, text: bool = False) -> Answer:
        """Tell what changed in files."""
        before, _ = self._own(old)
        files: TreeDiff | None
        if new is None:
            after = None
            files = self._workspace.diff(before.checkpoint_id, text=text)
        else:
            after, _ = self._own(new)
            files = compare_trees(self._client, before, after, text)
        changes = None if files is None else _bounded(files)
        data = {
            "from": before.checkpoint_id,
            "to": None if after is None else after.checkpoint_id,
            "files": changes,
        }
        return Answer(data, "no changes" if changes is None else _told(changes))

    def rollback(self, checkpoint: str) -> Answer:
        """Put the files back; the conversation goes on, and so does what is kept of it."""
        target, tree = self._own(checkpoint)
        session = self._session_of(target)
        planned = self._workspace.restore(tree, dry_run=True)
        files = SessionFiles(self._workspace, tree.as_value())
        with opened(self._client, session, files) as run:
            done = run.rollback(target.checkpoint_id, scope=("files",))
        written, removed = list(planned.written), list(planned.removed)
        note = "no file was other than there"
        if written or removed:
            note = (
                "these files are not as your conversation remembers them: read them again before "
                'you go on. Rolling back to "before rollback" undoes this'
            )
        more = _beyond(written, removed)
        data = {
            "checkpoint_id": done.checkpoint_id,
            "target": target.checkpoint_id,
            "written": written[:MOST_PATHS],
            "removed": removed[:MOST_PATHS],
            "more": more,
            "note": note,
        }
        lines = [f"the files are those of {target.step_name or target.checkpoint_id!r}; {note}"]
        lines += [f"write {each}" for each in written[:MOST_PATHS]]
        lines += [f"remove {each}" for each in removed[:MOST_PATHS]]
        return Answer(data, "\n".join([*lines, *_more(more)]))

    def fork(self, checkpoint: str, name: str) -> Answer:
        """Go on from a checkpoint in a session of its own."""
        source, tree = self._own(checkpoint)
        left = self.checkpoint(f"before fork {name}"[:LONGEST_NAME]).data["session_id"]
        made = self._client.fork(source.checkpoint_id, session_id=name)
        self._workspace.works_for(source.agent_id, name)
        self._workspace.restore(tree)
        if self.session is not None or self._recorded() is None:
            self.session = f"{source.agent_id}/{name}"
            current, note = name, f"what you call next is about session {name}"
        else:
            # Its hooks know nothing of the fork, and @ has to mean the files as they are now.
            self.checkpoint(f"forked as {name}"[:LONGEST_NAME])
            current = left
            note = (
                f"your steps are recorded in session {left} as before, and what you call next is "
                f"about that one: its newest point has these files. Session {name} stays as it is"
            )
        data = {
            "checkpoint_id": made,
            "session_id": name,
            "left": left,
            "current": current,
            "note": note,
        }
        return Answer(
            data,
            f"the files are those of {checkpoint}, where session {name} begins; {left} has the "
            f"files as they were, as 'before fork {name}'; {note}",
        )

    def rewind(self, checkpoint: str) -> Answer:
        """Put the files back, and have the conversation up to there ready to go on with."""
        from holdfast.coding_agents import rewinding

        target, _ = self._own(checkpoint)
        session = self._session_of(target)
        going = rewinding.look(self._client, session, target, self._workspace)
        project = rewinding.project_of(self._client, session, Path(self._workspace.path))
        done = rewinding.carry_out(self._client, going, self._workspace, project)
        if done.resume is None or done.files is None:
            raise Refused(f"checkpoint {target.checkpoint_id} has no conversation to go back to")
        written, removed = list(done.files.written), list(done.files.removed)
        command = shlex.join(done.resume)
        data = {
            "command": command,
            "session_id": done.session_id,
            "checkpoint_id": done.checkpoint_id,
            "target": target.checkpoint_id,
            "prompt": going.prompt,
            "written": written[:MOST_PATHS],
            "removed": removed[:MOST_PATHS],
            "more": _beyond(written, removed),
        }
        return Answer(
            data,
            f"the files are those of {target.step_name or target.checkpoint_id!r}. Tell the user "
            f"to leave this conversation and go on with: {command}",
        )

    def _current(self) -> SessionInfo | None:
        """Return the session that is worked on; None if it has no checkpoint yet."""
        if self.session is None:
            return self._recorded() or self._named(f"{self._agent}/{self._workspace.name}")
        return self._named(self.session)

    def _recorded(self) -> SessionInfo | None:
        """Return the session that the hooks of who calls record."""
        return current_session(self._client, self._workspace, self._caller)

    def _named(self, given: str) -> SessionInfo | None:
        sessions = Names(self._client).sessions
        whole = [each for each in sessions if name_of(each) == given]
        return next(iter(whole or [each for each in sessions if each.session_id == given]), None)

    def _own(self, given: str) -> tuple[CheckpointInfo, Snapshot]:
        """Return a checkpoint of this workspace, and its files; any other is refused."""
        session = self._current()
        whole = None if session is None else name_of(session)
        info = Names(self._client).checkpoint(given, whole)
        tree = snapshot_of(self._client, info)
        if tree is None or tree.workspace != self._workspace.name:
            raise Refused(
                f"checkpoint {info.checkpoint_id!r} does not hold files of this workspace"
            )
        return info, tree

    def _check_is_no_id(self, name: str) -> None:
        """Refuse a name that, given to a tool, would mean another checkpoint: ids come first."""
        if Names(self._client).begins_id(name):
            raise UsageError(
                f"{name!r} is the beginning of the id of a checkpoint: choose another name"
            )

    def _session_of(self, target: CheckpointInfo) -> SessionInfo:
        """Return the session that goes back: the current one, if the target is on its way."""
        session = self._current()
        if session is None:
            raise NotFound("there is no checkpoint in this session yet: make one first")
        if (target.agent_id, target.session_id) != (session.agent_id, session.session_id):
            older = self._client.ancestors(session.head.checkpoint_id)
            if target.checkpoint_id not in {info.checkpoint_id for info in older}:
                raise UsageError(
                    f"checkpoint {target.checkpoint_id} is of session {target.session_id!r}, and "
                    f"session {session.session_id!r} cannot go back to it: fork goes on from there"
                )
        return session


def _bounded(files: TreeDiff) -> dict[str, Any]:
    """Return what changed, as much of it as a model is to read."""
    whole = files_json(files)
    text = whole.pop("text")
    lists = {name: paths[:MOST_PATHS] for name, paths in whole.items()}
    return {
        **lists,
        "text": text if text is None else text[:LONGEST_TEXT],
        "more": _beyond(*whole.values()),
    }


def _beyond(*lists: list[Any]) -> int:
    return sum(max(len(each) - MOST_PATHS, 0) for each in lists)


def _more(count: int) -> list[str]:
    return [f"… and {count} more"] if count else []


def _told(changes: dict[str, Any]) -> str:
    lines = [f"{sign} {path}" for name, sign in _SIGNS.items() for path in changes[name]]
    lines += [f"R {old} -> {new}" for old, new in changes["renamed"]]
    lines += _more(changes["more"])
    if changes["text"]:
        lines.append(changes["text"])
    return "\n".join(lines) or "no changes"
