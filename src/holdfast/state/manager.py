"""CheckpointManager: keeps the states of agents under keys, in any store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from holdfast.client import SyncClient
from holdfast.core.state_tags import AGENT_ID, State
from holdfast.errors import CheckpointIntegrityError, CheckpointNotFoundError, InvalidArgumentError
from holdfast.model import Checkpoint, CheckpointInfo, checked_name
from holdfast.state.checkpointable import Checkpointable, as_checkpointable
from holdfast.state.loading import current
from holdfast.state.options import using
from holdfast.state.rollback import Rollback
from holdfast.state.save_queue import PendingSave, SaveQueue
from holdfast.state.state_diff import StateDiff, diff_states

A = TypeVar("A", bound=Checkpointable)

DEFAULT_DIRECTORY = Path(".holdfast") / "state"

_OURS = ("agent_id", "framework", "execution_state", "session_id", "parent_id")


class Saved(dict[str, Any]):
    """A line of ``history``: ``id``, and ``ts``, the time in seconds since 1970."""

    def __init__(self, info: CheckpointInfo, number: int) -> None:
        super().__init__(id=info.checkpoint_id, ts=info.created_at.timestamp())
        self.number = number
        """Which save of its key it is, counted from 1: the ``step_index`` of its checkpoint."""


class CheckpointManager:
    """Saves and loads Checkpointable agents under keys. Safe to share between threads.

    The backend is "memory", "file" (``path`` is a directory, ``fmt`` "json" or "pickle"), "sqlite"
    (``path`` is a file), a URL such as "sqlite:///agents.db", or a SyncClient, which stays open
    when the manager is closed.

    >>> from holdfast import Checkpointable, CheckpointManager
    >>> class Agent(Checkpointable):
    ...     def __init__(self):
    ...         self.step = 0
    >>> agent = Agent()
    >>> with CheckpointManager() as manager:
    ...     saved = manager.save("coder", agent)
    ...     agent.step = 5
    ...     manager.diff("coder", agent=agent)["changed"]
    ...     manager.load("coder", agent).step
    {'step': (0, 5)}
    0
    """

    def __init__(
        self,
        backend: Literal["memory", "file", "sqlite"] | str | SyncClient = "memory",
        path: str | os.PathLike[str] | None = None,
        fmt: Literal["json", "pickle"] = "json",
    ) -> None:
        self._client = _opened(backend, path, fmt)
        self._owned = self._client is not backend
        self._lines: dict[str, SaveQueue] = {}

    @property
    def client(self) -> SyncClient:
        """Return the client it works on: each key is a session of the agent "holdfast.state"."""
        return self._client

    @property
    def allow_pickle(self) -> bool:
        """Return whether values that only pickle can keep are kept."""
        return self._client.store.allow_pickle

    def save(self, key: str, agent: Checkpointable, **metadata: Any) -> str:
        """Keep the agent's state as the newest of its key, and return the checkpoint's id.

        The saves of a key are numbered from 1. The number is the checkpoint's ``step_index``; if
        one is given, they go on from it. Further keywords are metadata; ``step_name``, ``context``
        and ``ttl_seconds`` mean what they mean for ``SyncClient.save``.
        """
        return self.prepare(key, agent, **metadata).write()

    def prepare(self, key: str, agent: Checkpointable, **metadata: Any) -> PendingSave:
        """Take the state now and write it later: ``await asyncio.to_thread(prepared.write)``.

        >>> from holdfast import Checkpointable, CheckpointManager
        >>> class Agent(Checkpointable):
        ...     step = 0
        >>> with CheckpointManager() as manager:
        ...     prepared = manager.prepare("coder", Agent())
        ...     manager.list_keys()
        ...     _ = prepared.write()
        ...     manager.list_keys()
        []
        ['coder']
        """
        checked_name("key", key)
        as_checkpointable(agent)
        taken = [name for name in _OURS if name in metadata]
        if taken:
            raise InvalidArgumentError(
                f"{', '.join(taken)} cannot be metadata: the manager sets it; use another name"
            )

        def snapshot() -> State:
            with using(allow_pickle=self.allow_pickle):
                return agent.state_dict()

        def save(state: State) -> str:
            return self.write(key, state, **metadata)

        return self._lines.setdefault(key, SaveQueue()).take(snapshot, save)

    def write(self, key: str, state: State, **options: Any) -> str:
        """Write a state that was taken as the next save of its key."""
        if "step_index" not in options:
            newest = self.history(key, 1)
            options["step_index"] = newest[0].number + 1 if newest else 1
        return self._client.save(AGENT_ID, execution_state=state, session_id=key, **options)

    def load(self, key: str, agent: A, checkpoint_id: str | None = None, strict: bool = True) -> A:
        """Load the newest state of a key, or that of an id, into the agent, and return the agent.

        The agent is changed in place, or on any error not at all; see
        ``Checkpointable.load_state_dict`` for ``strict``.
        """
        as_checkpointable(agent)
        state = self._state(key, checkpoint_id)
        with using(allow_pickle=self.allow_pickle):
            # Without the argument, so that a class's own load_state_dict(state) will do.
            agent.load_state_dict(state) if strict else agent.load_state_dict(state, strict=False)
        return agent

    def list_keys(self) -> list[str]:
        """Return every key something is saved under, sorted."""
        return sorted(session.session_id for session in self._client.sessions(AGENT_ID))

    def history(self, key: str, n: int | None = None) -> list[Saved]:
        """Return the checkpoints of a key, newest first, at most n: ``[{"id": ..., "ts": ...}]``.

        ``ts`` is the time of the save in seconds since 1970; ``number`` is an attribute of each
        line, counted from 1. A key without checkpoints has [].
        """
        checked_name("key", key)
        infos = self._client.timeline(AGENT_ID, key, limit=n)
        numbers = [info.step_index for info in infos]
        if 0 in numbers:  # saved by 0.2, which did not number them
            every = self._client.timeline(AGENT_ID, key, limit=None)
            numbers = [i.step_index or len(every) - at for at, i in enumerate(every)][: len(infos)]
        return list(map(Saved, infos, numbers))

    def rollback_context(self, key: str, agent: Checkpointable) -> Rollback:
        """Save the agent, run a block, and put the agent back if the block raises.

        For ``with`` and ``async with``. The exception passes on. Attributes that the block added
        are removed; objects in the agent are put back in place. If the block saved the agent under
        the key as well, what was rolled back to is saved again, so that it is the newest.

        >>> from holdfast import Checkpointable, CheckpointManager
        >>> class Agent(Checkpointable):
        ...     def __init__(self):
        ...         self.plan = []
        >>> agent, manager = Agent(), CheckpointManager()
        >>> try:
        ...     with manager.rollback_context("coder", agent):
        ...         agent.plan.append("a bad step")
        ...         raise RuntimeError("it failed")
        ... except RuntimeError:
        ...     agent.plan
        []
        """
        return Rollback(self, checked_name("key", key), as_checkpointable(agent))

    def diff(
        self,
        key: str,
        agent: Checkpointable | None = None,
        checkpoint_id_a: str | None = None,
        checkpoint_id_b: str | None = None,
    ) -> StateDiff:
        """Return what changed from a saved state to the live agent, or to another saved state.

        ``diff(key, agent=agent)`` starts at the newest state, or at ``checkpoint_id_a``.
        ``diff(key, checkpoint_id_a=a, checkpoint_id_b=b)`` compares two; without b, the newest.
        """
        if agent is not None and checkpoint_id_b is not None:
            raise InvalidArgumentError("give diff() an agent or checkpoint_id_b, not both")
        if agent is None and checkpoint_id_a is None:
            raise InvalidArgumentError("give diff() an agent, or checkpoint_id_a to start from")
        old = self._state(key, checkpoint_id_a)
        with using(allow_pickle=self.allow_pickle):
            if agent is None:
                return diff_states(old, self._state(key, checkpoint_id_b))
            return diff_states(current(old, as_checkpointable(agent)), agent.state_dict())

    def delete(self, key: str) -> int:
        """Remove all checkpoints of a key, and return how many there were."""
        return sum(self._client.expire(saved["id"]) for saved in self.history(key))

    def _state(self, key: str, checkpoint_id: str | None) -> State:
        checked_name("key", key)
        if checkpoint_id is None:
            newest = self._client.latest(AGENT_ID, key)
            if newest is None:
                raise CheckpointNotFoundError(key, "nothing is saved under this key")
            return _state_of(newest)
        checkpoint = self._client.restore(checkpoint_id)
        if (checkpoint.agent_id, checkpoint.session_id) != (AGENT_ID, key):
            owner = checkpoint.session_id
            if checkpoint.agent_id != AGENT_ID:
                owner = f"{owner} of the agent {checkpoint.agent_id}"
            raise CheckpointNotFoundError(
                checkpoint_id, f"it belongs to {owner!r}, not to the key {key!r}"
            )
        return _state_of(checkpoint)

    def close(self) -> None:
        """Release the store, unless the manager was given a client; closing twice does nothing."""
        if self._owned:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"CheckpointManager({self._client!r})"


def _state_of(checkpoint: Checkpoint) -> State:
    state = checkpoint.execution_state
    if not isinstance(state, dict):
        raise CheckpointIntegrityError(checkpoint.checkpoint_id, "it holds no state of an agent")
    return state


def _opened(
    backend: object, path: str | os.PathLike[str] | None, fmt: Literal["json", "pickle"]
) -> SyncClient:
    if fmt not in ("json", "pickle"):
        raise InvalidArgumentError(f'fmt is "json" or "pickle", not {fmt!r}')
    if fmt == "pickle" and backend != "file":
        raise InvalidArgumentError('fmt="pickle" is for backend="file" alone')
    if backend == "file":
        directory = DEFAULT_DIRECTORY if path is None else Path(path)
        return SyncClient.file(directory, fmt)
    if backend == "sqlite":
        return SyncClient.sqlite() if path is None else SyncClient.sqlite(Path(path))
    if path is not None:
        raise InvalidArgumentError('path is for backend="file" (a directory) and "sqlite" (a file)')
    if isinstance(backend, SyncClient):
        return backend
    if backend == "memory":
        return SyncClient.memory()
    if isinstance(backend, str) and "://" in backend:
        return SyncClient.open(backend)
    # Shown only where it cannot hold a password.
    given = backend if isinstance(backend, str) and backend.isidentifier() else type(backend)
    raise InvalidArgumentError(
        f'backend is "memory", "file", "sqlite", a URL or a SyncClient, not {given!r}'
    )
