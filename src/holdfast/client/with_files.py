"""Checkpoints that hold the files of a directory, made and read without a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.client.sync import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.workspace import Snapshot, Workspace
    from holdfast.workspace.capture import Progress


def snapshot_of(client: SyncClient, info: CheckpointInfo) -> Snapshot | None:
    """Return the files of a checkpoint; None if it has none."""
    from holdfast.workspace import Snapshot

    part = client.restore(info.checkpoint_id, on_unknown="raw").workspace
    return None if part is None else Snapshot.from_value(part, info.created_at)


def save_with_files(
    client: SyncClient,
    workspace: Workspace,
    *,
    agent_id: str,
    session_id: str,
    name: str | None,
    state: Any,
    tags: dict[str, Any],
    progress: Progress | None = None,
) -> tuple[str, Snapshot]:
    """Save a checkpoint that holds the files of a workspace as they are; return its id and them."""
    # One at a time: hooks of tools that run side by side make one line.
    with workspace._local.mutex, workspace._alone():
        snapshot = workspace.snapshot_for_checkpoint(progress)
        head = client.find(agent_id=agent_id, session_id=session_id, limit=1)
        checkpoint_id = put_with_files(
            client,
            workspace,
            snapshot,
            agent_id=agent_id,
            session_id=session_id,
            name=name,
            state=state,
            tags=tags,
            parent=head[0] if head else None,
        )
    return checkpoint_id, snapshot


def put_with_files(
    client: SyncClient,
    workspace: Workspace,
    snapshot: Snapshot,
    *,
    agent_id: str,
    session_id: str,
    name: str | None,
    state: Any,
    tags: dict[str, Any],
    parent: CheckpointInfo | None,
) -> str:
    """Save a checkpoint that holds a snapshot and goes on from another; return its id."""
    from holdfast.model import Framework, make_payload
    from holdfast.verbs import save

    # As ``client.save`` does, which encodes only what is new since the parent.
    checkpoint_id = client.runtime.run(
        save.save(
            client.runtime.engine,
            agent_id=agent_id,
            framework=Framework.CUSTOM,
            payload=make_payload(state, {}, workspace=snapshot.as_value()),
            session_id=session_id,
            parent_id=None if parent is None else parent.checkpoint_id,
            step_index=0 if parent is None else parent.step_index + 1,
            step_name=name,
            ttl_seconds=None,
            metadata=tags,
            append_only=(),
            events=False,
        )
    )
    workspace.saved_with(snapshot, checkpoint_id)
    workspace.works_for(agent_id, session_id)
    return checkpoint_id
