"""Parts of a checkpoint, read without its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.cli.access.opening import LazyClient
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo


def parts_of(client: SyncClient | LazyClient, info: CheckpointInfo, *names: str) -> dict[str, Any]:
    """Return parts by their names; classes that are not known are given as Raw."""
    from holdfast.verbs.read import restore_parts

    return client.runtime.run(restore_parts(client.runtime.engine, info, names))


def tasks_of(client: SyncClient | LazyClient, info: CheckpointInfo) -> Any:
    """Return the plan that a checkpoint holds, as it was kept."""
    return parts_of(client, info, "tasks")["tasks"]
