"""Checkpoints of workflows: each is a checkpoint of Holdfast, whose parent is the one before it.

They are JSON with islands of pickle, which are read with the framework's own list of allowed types
and never otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException
from agent_framework._workflows._checkpoint_encoding import (
    decode_checkpoint_value,
    encode_checkpoint_value,
)

from holdfast.adapters.opening import AdapterStore
from holdfast.client import Client, SyncClient
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.model import CheckpointInfo, Framework, checked_name

_ID, _WORKFLOW = "workflow_checkpoint", "workflow"
"""Tags of a checkpoint: the framework's own id of it, and the name of the workflow."""


class HoldfastCheckpointStorage:
    """Keeps the checkpoints of one run of a workflow as a session.

    The framework only logs a checkpoint that could not be written. Use the storage as a context
    (``async with HoldfastCheckpointStorage("order-7") as storage:``), or call ``check()`` when the
    run is over: both raise what went wrong.
    """

    def __init__(
        self,
        session_id: str,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        agent_id: str = Framework.AGENT_FRAMEWORK.value,
        allowed_types: Iterable[str | type[Any]] = (),
    ) -> None:
        """Keep checkpoints in the store of a client or a URL; ``HOLDFAST_URL`` if neither is given.

        ``allowed_types`` are the classes of your own in the workflow's state and messages, or their
        names (``"shop.orders:Order"``): no others are read, but for the framework's.
        """
        self.session_id = checked_name("session_id", session_id)
        self._agent_id = checked_name("agent_id", agent_id)
        self._allowed = frozenset(map(_named, _listed(allowed_types)))
        self._store = AdapterStore.given(client, url)
        self._problem: Exception | None = None

    @property
    def client(self) -> SyncClient:
        """A client of the store, to look at what was kept."""
        return self._store.client

    # What the framework asks for

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Keep a checkpoint; its parent is what was kept of the one before it."""
        try:
            await self._save(checkpoint)
        except Exception as error:
            self._problem = self._problem or error
            raise
        return str(checkpoint.checkpoint_id)

    async def _save(self, checkpoint: WorkflowCheckpoint) -> None:
        encoded = encode_checkpoint_value(checkpoint.to_dict())
        self._decoded(encoded, checkpoint.checkpoint_id)  # what cannot be read is not written
        await self._head()
        before = await self._found(checkpoint.previous_checkpoint_id)
        await self._store.async_client.save(
            self._agent_id,
            Framework.AGENT_FRAMEWORK,
            {"checkpoint": encoded},
            session_id=self.session_id,
            parent_id=None if before is None else before.checkpoint_id,
            step_index=0 if before is None else before.step_index + 1,
            step_name=f"superstep {checkpoint.iteration_count}",
            **{_ID: checkpoint.checkpoint_id, _WORKFLOW: checkpoint.workflow_name},
        )

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Return a checkpoint by the framework's id of it."""
        self._raise_once()
        found = await self._found(checkpoint_id)
        if found is None:
            raise WorkflowCheckpointException(
                f"No checkpoint found with ID {checkpoint_id} in session {self.session_id!r}"
            )
        return await self._read(found)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return all checkpoints of a workflow in this session, the oldest first."""
        self._raise_once()
        return [await self._read(each) for each in await self._of_workflow(workflow_name)]

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """Return the framework's ids of the same."""
        self._raise_once()
        return [each.metadata[_ID] for each in await self._of_workflow(workflow_name)]

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return where the session stands: its newest checkpoint, or what it was rolled back to."""
        self._raise_once()
        head = await self._head()
        if head is None:
            return None
        if head.metadata.get(_WORKFLOW) == workflow_name:
            return await self._read(head)
        found = await self._of_workflow(workflow_name)
        return await self._read(found[-1]) if found else None

    async def delete(self, checkpoint_id: str) -> bool:
        """Remove a checkpoint; what followed it stays."""
        self._raise_once()
        found = await self._find({_ID: checkpoint_id})
        gone = [await self._store.async_client.expire(each.checkpoint_id) for each in found]
        return any(gone)

    # What went wrong

    def check(self) -> None:
        """Raise why a checkpoint was not written, if one was not; the framework only logs it."""
        if self._problem is not None:
            raise self._problem

    def _raise_once(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
        if error is None:
            self._raise_once()

    def close(self) -> None:
        """Close the store, if it was opened for this."""
        self._store.close()

    async def aclose(self) -> None:
        """Do what ``close`` does, on an event loop."""
        await self._store.aclose()

    # Where checkpoints are

    async def _find(self, tags: dict[str, Any]) -> list[CheckpointInfo]:
        return await self._store.async_client.find(
            agent_id=self._agent_id, session_id=self.session_id, tags=tags, limit=None
        )

    async def _head(self) -> CheckpointInfo | None:
        """Return the head of the session; an error if it is not a workflow's."""
        found = await self._store.async_client.find(
            agent_id=self._agent_id, session_id=self.session_id, limit=1
        )
        if found and (
            found[0].framework is not Framework.AGENT_FRAMEWORK or _ID not in found[0].metadata
        ):
            raise AdapterError(
                f"session {self.session_id!r} of agent {self._agent_id!r} holds no checkpoints of "
                "a workflow of Agent Framework: use another session_id for the workflow"
            )
        return found[0] if found else None

    async def _found(self, checkpoint_id: str | None) -> CheckpointInfo | None:
        """Return what was kept of one of the framework's checkpoints, also before a fork."""
        if checkpoint_id is None:
            return None
        found = await self._find({_ID: checkpoint_id})
        if found:
            return found[0]
        head = await self._head()
        if head is None:
            return None
        for each in await self._store.async_client.ancestors(head.checkpoint_id):
            if each.metadata.get(_ID) == checkpoint_id:
                return each
        return None

    async def _of_workflow(self, workflow_name: str) -> list[CheckpointInfo]:
        """Return each checkpoint of a workflow once, the oldest first."""
        await self._head()
        newest_first = await self._find({_WORKFLOW: workflow_name})
        once = {each.metadata[_ID]: each for each in newest_first}  # the oldest of each
        return list(reversed(list(once.values())))

    async def _read(self, info: CheckpointInfo) -> WorkflowCheckpoint:
        kept = await self._store.async_client.restore(info.checkpoint_id)
        state = kept.execution_state
        encoded = state.get("checkpoint") if isinstance(state, dict) else None
        if not isinstance(encoded, dict):
            raise AdapterError(
                f"checkpoint {info.checkpoint_id} holds no checkpoint of a workflow: it is damaged"
            )
        decoded = self._decoded(encoded, info.metadata.get(_ID))
        return WorkflowCheckpoint.from_dict(decoded)

    def _decoded(self, encoded: Any, checkpoint_id: Any) -> Any:
        try:
            return decode_checkpoint_value(encoded, allowed_types=self._allowed)
        except WorkflowCheckpointException as error:
            raise WorkflowCheckpointException(
                f"checkpoint {checkpoint_id} of session {self.session_id!r} holds a class that "
                "HoldfastCheckpointStorage(…, allowed_types=[…]) does not name, or is damaged: "
                f"{error}"
            ) from error


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def _named(given: Any) -> str:
    """Return the name of a class as the framework's allow-list has it."""
    if isinstance(given, type):
        return f"{given.__module__}:{given.__qualname__}"
    if isinstance(given, str) and ":" in given:
        return given
    raise InvalidArgumentError(
        f'allowed_types are classes or names such as "shop.orders:Order", not {given!r}'
    )
