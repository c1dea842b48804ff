"""What is written of a running session: by the mirror when it comes, by hooks before all else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.adapters.claude_agent_sdk import transcript
from holdfast.adapters.claude_agent_sdk.lasting import LastingCalls
from holdfast.adapters.claude_agent_sdk.sessions import PROJECT, SUBPATH, Change, Key, Transcripts
from holdfast.adapters.kept import Kept
from holdfast.adapters.opening import AdapterStore
from holdfast.core.conversation.frameworks.claude_entries import Entry, calls_in, content_of, is_of
from holdfast.errors import AdapterError

_PATIENCE = 10.0
"""Seconds in which Claude's program writes down what the model said; it takes a tenth of one."""
_PAUSE = 0.01


class Recorder:
    """Writes transcripts, and knows what of them is written."""

    def __init__(self, store: AdapterStore, transcripts: Transcripts) -> None:
        self._store = store
        self.transcripts = transcripts
        self.lasting = LastingCalls(store, transcripts.kept)
        self._calls: set[str] = set()
        """Calls that the model asked for and that are written down."""
        self._last_said: dict[Any, str] = {}
        """By transcript, the text that the model said last, of all that is written down."""
        self._read: dict[str, int] = {}
        """How far transcripts on disk were read."""
        self._unwritten: list[tuple[Key, Sequence[Entry], Exception]] = []
        """What the store refused; the SDK drops it after a few tries."""

    async def find(self, key: Key) -> tuple[str, Kept | None]:
        """Return the name of a session, and its head."""
        return await self._store.aio.run(self.transcripts.find(key))

    async def brought_here(self, key: Key) -> Kept | None:
        """Return the head of a session; one of another directory is brought to this one."""
        plans = self.transcripts
        _, head = await self.find(key)
        return head if head is not None else await self._store.aio.run(plans.moved(key))

    async def change(
        self, key: Key, change: Change, title: str, *, captures: bool = False
    ) -> Kept | None:
        """Write what a function makes of a transcript, unless that is what it was."""
        name = await self._store.aio.run(self.transcripts.name(key))
        async with self.lasting.writing(name):
            if self.lasting.is_open(name):
                await self.lasting.change(name, change, title)
                return None
            return await self._store.aio.run(
                self.transcripts.change(key, change, title, captures=captures)
            )

    async def append(self, key: Key, entries: Sequence[Entry]) -> None:
        """Write what the mirror brings; what cannot be written is remembered until it is."""
        try:
            await self._keep(key, entries)
        except Exception as error:
            if not any(batch is entries for _, batch, _ in self._unwritten):
                self._unwritten.append((key, entries, error))
            raise
        self._unwritten = [each for each in self._unwritten if each[1] is not entries]

    async def _keep(self, key: Key, entries: Sequence[Entry]) -> None:
        def changed(state: Any) -> Any:
            return transcript.added(state, key[PROJECT], entries)

        await self.change(key, changed, transcript.title(entries))
        for entry in entries:
            self._calls.update(calls_in(entry))
            if entry.get("type") == "assistant":
                self._last_said[_id_of(key)] = _text(entry) or self._last_said.get(_id_of(key), "")
        await self.lasting.answered(entries)

    async def make_up(self) -> None:
        """Write what could not be written before; an error if it still cannot."""
        while self._unwritten:
            key, entries, error = self._unwritten[0]
            try:
                await self._keep(key, entries)
            except Exception as again:
                raise AdapterError(
                    f"what was said in session {key['session_id']!r} could not be kept: {again}. "
                    "The agent is stopped, so that nothing is done that nobody remembers"
                ) from error
            self._unwritten = [each for each in self._unwritten if each[1] is not entries]

    async def until_called(self, key: Key, path: str | None, call_id: str) -> None:
        """Come back when the model's answer that asks for a call is written down."""
        if not await self._until(key, path, lambda: call_id in self._calls):
            raise AdapterError(
                f"session {key['session_id']!r}: the answer of the model that asks for "
                f"{call_id} did not come within {_PATIENCE:.0f} seconds: give the store to "
                "ClaudeAgentOptions(session_store=...) beside its hooks"
            )

    async def until_said(self, key: Key, path: str | None, text: str) -> None:
        """Come back when the model's last words are written down, or the mirror brings them."""
        said, own = self._last_said, _id_of(key)
        await self._until(key, path, lambda: said.get(own, "").strip() == text.strip(), 1.0)

    async def _until(
        self,
        key: Key,
        path: str | None,
        is_there: Callable[[], bool],
        patience: float = _PATIENCE,
    ) -> bool:
        loop = asyncio.get_running_loop()
        ends = loop.time() + patience
        while not is_there():
            await self._catch_up(key, path)
            if is_there():
                break
            if loop.time() > ends:
                return False
            await asyncio.sleep(_PAUSE)
        return True

    async def _catch_up(self, key: Key, path: str | None) -> None:
        """Write what is in the transcript on disk, which may be ahead of the mirror."""
        if path is None:
            return
        entries, read = await asyncio.to_thread(_read_on, Path(path), self._read.get(path, 0))
        if entries:
            await self._keep(key, entries)
        self._read[path] = read


def _id_of(key: Key) -> tuple[str, str, str | None]:
    return key[PROJECT], key["session_id"], key.get(SUBPATH)


def _text(entry: Entry) -> str:
    return "".join(str(b.get("text")) for b in content_of(entry) if is_of(b, "text"))


def _read_on(path: Path, start: int) -> tuple[list[Any], int]:
    """Return the entries with a uuid that whole lines hold since, and where to read on.

    Those without are brought by the mirror: only by their uuid is it known that they are the same.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read()
    except FileNotFoundError:  # written a moment later
        return [], start
    whole = data[: data.rfind(b"\n") + 1]
    entries = [json.loads(line) for line in whole.splitlines() if line.strip()]
    return [entry for entry in entries if "uuid" in entry], start + len(whole)
