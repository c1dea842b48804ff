"""Holdfast: checkpoint, rewind and fork AI agents."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast._version import __version__

if TYPE_CHECKING:
    from holdfast.client import Client, SyncClient
    from holdfast.core.diff import Diff
    from holdfast.core.kinds import register_type
    from holdfast.core.raw import Raw, Sealed
    from holdfast.errors import (
        AdapterError,
        AmbiguousIdError,
        ApprovalDenied,
        CheckpointConflictError,
        CheckpointIntegrityError,
        CheckpointNotFoundError,
        ContractError,
        DivergenceError,
        HandoffError,
        HoldfastError,
        InvalidArgumentError,
        MissingPackageError,
        RollbackRefusedError,
        RunError,
        SchemaMigrationError,
        SerializationError,
        SessionBusyError,
        SessionLostError,
        StillWaiting,
        StoreClosedError,
        StoreConnectionError,
        StoreError,
        StoreFormatError,
        StoreFullError,
        StoreReadOnlyError,
        TaskError,
        UnknownEffectError,
        UnknownTypeError,
        WorkspaceError,
    )
    from holdfast.model import Checkpoint, CheckpointBuilder, CheckpointInfo, Framework
    from holdfast.session import AsyncRun, Decision, Effect, Run, register_tool
    from holdfast.state import Checkpointable, CheckpointManager, checkpoint, register_migration
    from holdfast.verbs.events import Event
    from holdfast.verbs.handoff import Offer
    from holdfast.verbs.prune import Keep
    from holdfast.workspace import Snapshot, Workspace

_homes = {
    "client": ("Client", "SyncClient"),
    "core.diff": ("Diff",),
    "core.kinds": ("register_type",),
    "core.raw": ("Raw", "Sealed"),
    "errors": (
        "AdapterError",
        "AmbiguousIdError",
        "ApprovalDenied",
        "CheckpointConflictError",
        "CheckpointIntegrityError",
        "CheckpointNotFoundError",
        "ContractError",
        "DivergenceError",
        "HandoffError",
        "HoldfastError",
        "InvalidArgumentError",
        "MissingPackageError",
        "RollbackRefusedError",
        "RunError",
        "SchemaMigrationError",
        "SerializationError",
        "SessionBusyError",
        "SessionLostError",
        "StillWaiting",
        "StoreClosedError",
        "StoreConnectionError",
        "StoreError",
        "StoreFormatError",
        "StoreFullError",
        "StoreReadOnlyError",
        "TaskError",
        "UnknownEffectError",
        "UnknownTypeError",
        "WorkspaceError",
    ),
    "model": ("Checkpoint", "CheckpointBuilder", "CheckpointInfo", "Framework"),
    "session": ("AsyncRun", "Decision", "Effect", "Run", "register_tool"),
    "state": ("CheckpointManager", "Checkpointable", "checkpoint", "register_migration"),
    "verbs.events": ("Event",),
    "verbs.handoff": ("Offer",),
    "verbs.prune": ("Keep",),
    "workspace": ("Snapshot", "Workspace"),
}
_home_of = {name: home for home, names in _homes.items() for name in names}

__all__ = [
    "AdapterError",
    "AmbiguousIdError",
    "ApprovalDenied",
    "AsyncRun",
    "Checkpoint",
    "CheckpointBuilder",
    "CheckpointConflictError",
    "CheckpointInfo",
    "CheckpointIntegrityError",
    "CheckpointManager",
    "CheckpointNotFoundError",
    "Checkpointable",
    "Client",
    "ContractError",
    "Decision",
    "Diff",
    "DivergenceError",
    "Effect",
    "Event",
    "Framework",
    "HandoffError",
    "HoldfastError",
    "InvalidArgumentError",
    "Keep",
    "MissingPackageError",
    "Offer",
    "Raw",
    "RollbackRefusedError",
    "Run",
    "RunError",
    "SchemaMigrationError",
    "Sealed",
    "SerializationError",
    "SessionBusyError",
    "SessionLostError",
    "Snapshot",
    "StillWaiting",
    "StoreClosedError",
    "StoreConnectionError",
    "StoreError",
    "StoreFormatError",
    "StoreFullError",
    "StoreReadOnlyError",
    "SyncClient",
    "TaskError",
    "UnknownEffectError",
    "UnknownTypeError",
    "Workspace",
    "WorkspaceError",
    "__version__",
    "checkpoint",
    "register_migration",
    "register_tool",
    "register_type",
]


def __getattr__(name: str) -> object:
    home = _home_of.get(name)
    if home is None:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = getattr(import_module(f"holdfast.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
