"""CrewAI's own checkpointing, with Holdfast as its place instead of files."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from crewai.state.checkpoint_config import CheckpointConfig
from crewai.state.provider.json_provider import JsonProvider
from pydantic import ConfigDict, Field, PrivateAttr

from holdfast.adapters.crewai.plain import without_secrets
from holdfast.adapters.crewai.restoring import config_of
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore
from holdfast.client import SyncClient
from holdfast.errors import AdapterError
from holdfast.model import Framework

_MAIN = "main"


class HoldfastCheckpointProvider(JsonProvider):
    """Keeps what CrewAI writes with ``checkpoint=CheckpointConfig(location, provider=...)``.

    The location is the session; a branch of CrewAI's is a session ``location.branch``. CrewAI
    writes from a pool of threads and only logs what fails: ``HoldfastCheckpoints`` is exact.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    url: str | None = Field(exclude=True, repr=False)
    """Of the store; None for that of HOLDFAST_URL. It may hold a password: written nowhere."""
    agent_id: str = Field(default=Framework.CREWAI.value, exclude=True)

    _store: AdapterStore = PrivateAttr()
    _kept: KeptSessions = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Open the store; what is wrong with it is raised as it is."""
        self._store = AdapterStore.given(None, self.url)
        self._kept = KeptSessions(self._store, Framework.CREWAI, self.agent_id)

    def checkpoint(
        self, data: str, location: str, *, parent_id: str | None = None, branch: str = _MAIN
    ) -> str:
        """Keep a checkpoint of CrewAI's as data; returns where it is."""
        state = without_secrets(json.loads(data))
        name = state.get("trigger") or "checkpoint"
        session = _session(location, branch)
        kept = self._store.sync.run(self._kept.update(session, lambda _: state, name=name))
        return f"{session}#{kept.checkpoint_id}"

    async def acheckpoint(
        self, data: str, location: str, *, parent_id: str | None = None, branch: str = _MAIN
    ) -> str:
        """Do what ``checkpoint`` does, without blocking the event loop."""
        return await asyncio.to_thread(
            self.checkpoint, data, location, parent_id=parent_id, branch=branch
        )

    def extract_id(self, location: str) -> str:
        """Return the id of a checkpoint from where it is."""
        return location.rpartition("#")[2]

    def from_checkpoint(self, location: str) -> str:
        """Return a checkpoint as CrewAI wrote it, but for keys of models."""
        found = self._store.client.restore(self.extract_id(location))
        return json.dumps(_state(found.execution_state, location))

    async def afrom_checkpoint(self, location: str) -> str:
        """Do what ``from_checkpoint`` does, without blocking the event loop."""
        return await asyncio.to_thread(self.from_checkpoint, location)

    def prune(self, location: str, max_keep: int, *, branch: str = _MAIN) -> int:
        """Remove the oldest checkpoints of a branch; returns how many there were."""
        client = self._store.client
        listed = client.timeline(self.agent_id, _session(location, branch), limit=None)
        old = [info.checkpoint_id for info in listed[max_keep:]]
        return sum(client.expire(checkpoint_id) for checkpoint_id in old)

    def latest(self, location: str) -> CheckpointConfig | None:
        """Return the newest checkpoint of a location, to restore from; None if there is none."""
        head = self._store.sync.run(self._kept.head(location))
        if head is None:
            return None
        state = _state(head.state, location)
        return config_of(state, head.checkpoint_id, location=location, provider=self)

    @property
    def client(self) -> SyncClient:
        """The client of the store, to look at what was kept."""
        return self._store.client

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def _session(location: str, branch: str) -> str:
    return location if branch == _MAIN else f"{location}.{branch}"


def _state(state: Any, location: str) -> dict[str, Any]:
    if isinstance(state, dict) and isinstance(state.get("entities"), list):
        return state
    raise AdapterError(
        f"{location!r} holds no checkpoint of CrewAI: it was kept by something else (a flow, a "
        "conversation), or is damaged; use another location"
    )
