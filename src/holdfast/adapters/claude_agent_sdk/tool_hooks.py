"""The hooks by which a session is kept exactly: Claude's program waits for each of them."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from claude_agent_sdk import project_key_for_directory

from holdfast.adapters.claude_agent_sdk import transcript
from holdfast.adapters.claude_agent_sdk.merging import Hook, denies, stops
from holdfast.adapters.claude_agent_sdk.recorder import Recorder
from holdfast.adapters.claude_agent_sdk.sessions import PROJECT, SUBPATH, Key
from holdfast.adapters.claude_agent_sdk.transcript import Call
from holdfast.adapters.kept import Kept
from holdfast.core.conversation.frameworks.claude_entries import result_content
from holdfast.runtime import AsyncRuntime
from holdfast.runtime.steps import do

LATER = "Holdfast: the rest of the turn goes on in a moment"


class ToolHooks:
    """What is done at each event of a session."""

    def __init__(self, recorder: Recorder, runtime: AsyncRuntime) -> None:
        self._recorder = recorder
        self._runtime = runtime
        self._begun: set[tuple[str, str]] = set()
        """Sessions whose files were seen to in this process."""
        self.held_back: set[str] = set()
        """Sessions (by Claude's id) that make calls that are left, and do not ask the model yet."""

    def by_event(self) -> dict[str, Hook]:
        """Return the hooks, by the events they are for."""
        return {
            "UserPromptSubmit": self.at_prompt,
            "PreToolUse": self.before_tool,
            "PostToolUse": self.after_tool,
            "PostToolUseFailure": self.after_failure,
            "Stop": self.at_stop,
        }

    async def at_prompt(self, given: Any, _id: Any, _context: Any) -> dict[str, Any]:
        """Keep what the user said before the model is asked."""
        if given["session_id"] in self.held_back:
            return stops("UserPromptSubmit", LATER)
        key, _ = _place_of(given)
        await self._begin(key)
        session_id, prompt_id = given["session_id"], given.get("prompt_id")
        if isinstance(prompt_id, str) and isinstance(given.get("prompt"), str):
            await self._recorder.change(
                key,
                lambda state: transcript.with_prompt(
                    state, key[PROJECT], session_id, given["prompt"], prompt_id, now()
                ),
                "user prompt",
                captures=True,
            )
        return {}

    async def before_tool(self, given: Any, tool_use_id: Any, _context: Any) -> dict[str, Any]:
        """Let a tool run when the answer that asks for it is kept, and may be acted on."""
        key, path = _place_of(given)
        await self._begin(key)
        call = Call(given["tool_use_id"], given["tool_name"], given["tool_input"])
        await self._recorder.until_called(key, path, call.id)
        if not self._recorder.lasting.is_lasting(call.tool):
            return {}
        name, _ = await self._recorder.find(key)
        begun = await self._recorder.lasting.begin(name, call)
        if begun.denied is not None:
            return denies(f"Holdfast: {call.tool} does not run: {begun.denied}")
        if begun.arguments is None:
            return {}
        changed = {"permissionDecision": "allow", "updatedInput": begun.arguments}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **changed}}

    async def after_tool(self, given: Any, _id: Any, _context: Any) -> dict[str, Any]:
        """Keep what a tool gave, with the files as it left them, before anything follows."""
        response = given.get("tool_response")
        await self._ended(given, response, result_content(response), None)
        return {}

    async def after_failure(self, given: Any, _id: Any, _context: Any) -> dict[str, Any]:
        """Keep how a tool failed."""
        error = str(given.get("error"))
        await self._ended(given, None, error, error)
        return {}

    async def _ended(self, given: Any, output: Any, content: Any, error: str | None) -> None:
        key, _ = _place_of(given)
        await self._recorder.make_up()
        call = Call(given["tool_use_id"], given["tool_name"], given["tool_input"])
        if self._recorder.lasting.is_lasting(call.tool):
            name, _ = await self._recorder.find(key)
            await self._recorder.lasting.end(name, call.id, output, error)
        await self._recorder.change(
            key,
            lambda state: transcript.with_result(
                state, key[PROJECT], call, content, error is not None, now()
            ),
            call.tool,
            captures=True,
        )

    async def at_stop(self, given: Any, _id: Any, _context: Any) -> dict[str, Any]:
        """Let a turn end when the model's last words are kept."""
        key, path = _place_of(given)
        await self._recorder.make_up()
        said = given.get("last_assistant_message")
        if isinstance(said, str) and said:
            await self._recorder.until_said(key, path, said)
        return {}

    async def _begin(self, key: Key) -> None:
        """Write what could not be written; and the first time, see to the files."""
        await self._recorder.make_up()
        own = (key[PROJECT], key["session_id"])
        if own in self._begun or key.get(SUBPATH):
            return
        self._begun.add(own)
        name, head = await self._recorder.find(key)
        if head is not None:
            await self.put_files_back(name, head)

    async def put_files_back(self, name: str, head: Kept) -> None:
        """Make the files those of the head, where a tool was cut off, or they are not here yet."""
        kept = self._recorder.transcripts.kept
        workspace = kept.workspace
        if workspace is None or head.checkpoint.workspace is None:
            return
        is_home = await self._runtime.run(do(lambda: workspace.works_for(kept.agent_id, name)))
        if is_home and not transcript.pending(transcript.checked(head.state, name)):
            return
        done = await self._runtime.run(do(lambda: workspace.restore(head.checkpoint_id)))
        if done.changed:
            logging.getLogger("holdfast").warning(
                "session %r: files put back %s (undo: holdfast restore %s)",
                name,
                "after a crash" if is_home else "as the session left them elsewhere",
                done.undo_tree,
            )


def _place_of(given: Any) -> tuple[Key, str | None]:
    """Return whose event it is, and where the transcript of that is on disk."""
    session_id, path = given["session_id"], given.get("transcript_path")
    if isinstance(path, str) and path:
        at = PurePath(path)
        project = at.parent.name
    else:
        at, project = None, project_key_for_directory(given.get("cwd"))
    key: dict[str, Any] = {PROJECT: project, "session_id": session_id}
    agent = given.get("agent_id")
    if not isinstance(agent, str) or not agent:
        return key, None if at is None else str(at)
    subpath = f"subagents/agent-{agent}"
    own = None if at is None else str(at.parent / session_id / f"{subpath}.jsonl")
    return {**key, SUBPATH: subpath}, own


def now() -> str:
    """Return the time as entries of a transcript have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
