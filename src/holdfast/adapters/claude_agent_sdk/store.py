"""The session store that Claude's SDK calls, with hooks that close the gaps it leaves."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Sequence
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    Message,
    SessionStore,
    project_key_for_directory,
)

from holdfast.adapters.claude_agent_sdk import going_on, transcript
from holdfast.adapters.claude_agent_sdk.merging import loudly, merged
from holdfast.adapters.claude_agent_sdk.recorder import Recorder
from holdfast.adapters.claude_agent_sdk.sessions import PROJECT, Transcripts, checked_key
from holdfast.adapters.claude_agent_sdk.tool_hooks import ToolHooks
from holdfast.adapters.claude_agent_sdk.transcript import Call
from holdfast.adapters.journal import Effects
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.client import Client, SyncClient
from holdfast.core.conversation import Conversation, Lost
from holdfast.core.conversation.frameworks.claude_agent_sdk import FORM
from holdfast.core.conversation.frameworks.claude_entries import placed, resumable
from holdfast.errors import HoldfastError
from holdfast.model import Framework


class KeptId(str):
    """The id of a checkpoint; in async programs it may be awaited too."""

    def __await__(self) -> Generator[None, None, str]:
        yield from ()
        return str(self)


class HoldfastSessionStore(OnStore, SessionStore):
    """Keeps the sessions of Claude's agents: every entry, every tool's result, and the files.

    ``store.query(prompt=…, session_id=…)`` begins a session, or goes on with it where it stopped.
    Or give it to ``ClaudeAgentOptions(session_store=store, hooks=store.hooks())`` yourself.

    >>> from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
    >>> with HoldfastSessionStore(url="memory://") as store:
    ...     store.client.sessions()
    []
    """

    def __init__(
        self,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        workspace: Any = None,
        agent_id: str = Framework.CLAUDE_AGENT_SDK.value,
    ) -> None:
        self._store = AdapterStore.given(client, url)
        try:
            self._kept = KeptSessions(self._store, Framework.CLAUDE_AGENT_SDK, agent_id, workspace)
        except BaseException:
            self._store.close()
            raise
        self._recorder = Recorder(self._store, Transcripts(self._kept))
        self._hooks = ToolHooks(self._recorder, self._store.aio)
        own = self._hooks.by_event()
        self._guarded = {event: loudly(event, own[event], self._remember) for event in own}
        self._problems: dict[str, HoldfastError] = {}
        """By Claude's id of a session, what ended a run in it."""
        self._left: dict[str, Call] = {}
        """By session, the call that Claude's program is to make when it is resumed next."""

    # What the SDK calls

    async def append(self, key: Any, entries: Sequence[Any]) -> None:
        """Keep entries of a transcript; one with a uuid that is there is not kept twice."""
        checked_key(key)
        if entries:
            await self._recorder.append(key, entries)

    async def load(self, key: Any) -> list[Any] | None:
        """Return the entries of a transcript, as it goes on from its newest checkpoint."""
        checked_key(key)
        await self._recorder.make_up()
        _, head = await self._recorder.find(key)
        if head is None or not head.state["entries"]:
            return None
        session_id = key["session_id"]
        entries = resumable(head.state["entries"], session_id)
        left = None if key.get("subpath") else self._left.get(session_id)
        return entries if left is None else [*entries, transcript.deferred(entries, left)]

    async def list_sessions(self, project_key: str) -> list[Any]:
        """Return the sessions of a project, and when each was written last."""
        found = await self._store.aio.run(self._recorder.transcripts.of_project(project_key))
        return [
            {
                "session_id": self._recorder.transcripts.own_id_of(session.session_id),
                "mtime": int(session.head.created_at.timestamp() * 1000),
            }
            for session in found
        ]

    async def delete(self, key: Any) -> None:
        """Remove a transcript; that of a session with those of its subagents."""
        await self._store.aio.run(self._recorder.transcripts.remove(checked_key(key)))

    async def list_subkeys(self, key: Any) -> list[str]:
        """Return the subagents of a session."""
        return await self._store.aio.run(self._recorder.transcripts.subpaths(checked_key(key)))

    # What users call

    def hooks(
        self, existing: Any = None, *, effects: Effects | None = None, approval: Any = None
    ) -> dict[Any, list[HookMatcher]]:
        """Return the hooks that keep a session exactly, behind your ``existing`` ones.

        ``effects`` says what tools do to the world: ``{"mcp__pay__charge": "irreversible"}``. Such
        a call is never made twice by mistake. ``approval`` is asked before, as for any run.
        """
        self._recorder.lasting.declare(effects, approval)
        return merged(existing, self._guarded)

    def query(
        self,
        *,
        prompt: str | AsyncIterable[dict[str, Any]],
        session_id: str,
        options: ClaudeAgentOptions | None = None,
        effects: Effects | None = None,
        approval: Any = None,
    ) -> AsyncGenerator[Message, None]:
        """Ask as ``claude_agent_sdk.query`` does, in a session that outlives the process.

        Killed and asked the same again, it goes on where it stopped: results that are known are
        kept, calls that were cut off are made, and the prompt is not said twice. A prompt other
        than the one that was cut short, or after a turn that ended, is said in the same session.
        """
        declared = {"effects": effects, "approval": approval}
        return going_on.asked(self, prompt, session_id, options, declared)

    async def options(
        self,
        session_id: str,
        options: ClaudeAgentOptions | None = None,
        *,
        effects: Effects | None = None,
        approval: Any = None,
    ) -> ClaudeAgentOptions:
        """Return options for ``query`` or ``ClaudeSDKClient`` that begin or resume a session."""
        given = going_on.checked_options(self, session_id, options)
        hooks = self.hooks(given.hooks, effects=effects, approval=approval)
        return await going_on.options_for(self, session_id, given, hooks)

    def put_conversation(
        self,
        conversation: Conversation | dict[str, Any],
        session_id: str,
        cwd: str | os.PathLike[str],
    ) -> KeptId:
        """Keep a conversation of any framework as a session that Claude resumes in a directory.

        Returns the id of its checkpoint. What Claude cannot take is in its metadata, ``lost``.
        """
        if not isinstance(conversation, Conversation):
            conversation = Conversation.from_dict(conversation)
        own_id = self.claude_id(session_id)
        lost = Lost()
        made = FORM.state(FORM.write(conversation, lost), conversation)
        entries = placed(made["entries"], own_id, time.time())
        entries = [{"cwd": os.fspath(cwd), **entry} for entry in entries]
        key = {PROJECT: project_key_for_directory(cwd), "session_id": own_id}
        state = {**made, PROJECT: key[PROJECT], "entries": entries}
        kept = self._store.sync.run(
            self._recorder.transcripts.change(
                key, lambda _: state, "conversation put here", lost=lost.found
            )
        )
        assert kept is not None
        return KeptId(kept.checkpoint_id)

    def claude_id(self, session_id: str) -> str:
        """Return the id by which Claude's program knows a session: its own if that is a UUID.

        Else it is made of it, the same every time; this store finds the session by either.
        """
        return self._recorder.transcripts.claude_id(session_id)

    def check(self, session_id: str) -> None:
        """Raise what went wrong in Holdfast itself and ended a run of a session; once."""
        called = self._recorder.transcripts.called_by
        name = called(self.claude_id(session_id))
        for own_id in [each for each in self._problems if called(each) == name]:
            raise self._problems.pop(own_id)

    def _remember(self, own_id: str, error: HoldfastError) -> None:
        self._problems.setdefault(own_id, error)

    # Its end

    def _let_go(self) -> None:
        self._kept.close()

    async def aclose(self) -> None:
        """Do what ``close`` does, on an event loop, after all that could not be written is."""
        try:
            await self._recorder.lasting.close()
            await self._recorder.make_up()
        finally:
            await super().aclose()
