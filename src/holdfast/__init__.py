"""Holdfast: checkpoint, rewind and fork AI agents."""

from __future__ import annotations

from holdfast._lazy import OLD_ERRORS, lazy

TYPE_CHECKING = False  # as of typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from holdfast._version import __version__ as __version__
    from holdfast.client import Client as Client
    from holdfast.client import SyncClient as SyncClient
    from holdfast.core.diff import ByPath as ByPath
    from holdfast.core.diff import Diff as Diff
    from holdfast.core.kinds import register_type as register_type
    from holdfast.core.raw import Raw as Raw
    from holdfast.core.raw import Sealed as Sealed
    from holdfast.errors import AdapterError as AdapterError
    from holdfast.errors import AmbiguousIdError as AmbiguousIdError
    from holdfast.errors import ApprovalDenied as ApprovalDenied
    from holdfast.errors import ApprovalDeniedError as ApprovalDeniedError
    from holdfast.errors import CheckpointConflictError as CheckpointConflictError
    from holdfast.errors import CheckpointIntegrityError as CheckpointIntegrityError
    from holdfast.errors import CheckpointNotFoundError as CheckpointNotFoundError
    from holdfast.errors import CodingAgentError as CodingAgentError
    from holdfast.errors import ContractError as ContractError
    from holdfast.errors import DivergenceError as DivergenceError
    from holdfast.errors import FencedError as FencedError
    from holdfast.errors import HandoffError as HandoffError
    from holdfast.errors import HoldfastError as HoldfastError
    from holdfast.errors import InvalidArgumentError as InvalidArgumentError
    from holdfast.errors import MissingBaseError as MissingBaseError
    from holdfast.errors import MissingPackageError as MissingPackageError
    from holdfast.errors import MissingParentError as MissingParentError
    from holdfast.errors import NoteExistsError as NoteExistsError
    from holdfast.errors import NotTheHeadError as NotTheHeadError
    from holdfast.errors import Problem as Problem
    from holdfast.errors import RefusedError as RefusedError
    from holdfast.errors import RollbackRefusedError as RollbackRefusedError
    from holdfast.errors import RunError as RunError
    from holdfast.errors import SchemaMigrationError as SchemaMigrationError
    from holdfast.errors import SerializationError as SerializationError
    from holdfast.errors import SessionBusyError as SessionBusyError
    from holdfast.errors import SessionLostError as SessionLostError
    from holdfast.errors import StillWaiting as StillWaiting
    from holdfast.errors import StillWaitingError as StillWaitingError
    from holdfast.errors import StoreClosedError as StoreClosedError
    from holdfast.errors import StoreConnectionError as StoreConnectionError
    from holdfast.errors import StoreError as StoreError
    from holdfast.errors import StoreFormatError as StoreFormatError
    from holdfast.errors import StoreFullError as StoreFullError
    from holdfast.errors import StoreReadOnlyError as StoreReadOnlyError
    from holdfast.errors import TaskError as TaskError
    from holdfast.errors import TranscriptError as TranscriptError
    from holdfast.errors import UnknownEffectError as UnknownEffectError
    from holdfast.errors import UnknownTypeError as UnknownTypeError
    from holdfast.errors import WorkspaceError as WorkspaceError
    from holdfast.model import Checkpoint as Checkpoint
    from holdfast.model import CheckpointBuilder as CheckpointBuilder
    from holdfast.model import CheckpointInfo as CheckpointInfo
    from holdfast.model import Framework as Framework
    from holdfast.session import AsyncRun as AsyncRun
    from holdfast.session import AsyncTask as AsyncTask
    from holdfast.session import AsyncTasks as AsyncTasks
    from holdfast.session import AsyncUnknownEffect as AsyncUnknownEffect
    from holdfast.session import Continued as Continued
    from holdfast.session import Decision as Decision
    from holdfast.session import Effect as Effect
    from holdfast.session import Exploration as Exploration
    from holdfast.session import Outcome as Outcome
    from holdfast.session import Question as Question
    from holdfast.session import Recovered as Recovered
    from holdfast.session import ReplayedStep as ReplayedStep
    from holdfast.session import RolledBack as RolledBack
    from holdfast.session import Run as Run
    from holdfast.session import Task as Task
    from holdfast.session import Tasks as Tasks
    from holdfast.session import UnknownCall as UnknownCall
    from holdfast.session import UnknownEffect as UnknownEffect
    from holdfast.session import register_tool as register_tool
    from holdfast.state import Checkpointable as Checkpointable
    from holdfast.state import CheckpointManager as CheckpointManager
    from holdfast.state import checkpoint as checkpoint
    from holdfast.state import register_migration as register_migration
    from holdfast.stores.base import Collected as Collected
    from holdfast.stores.base import SessionInfo as SessionInfo
    from holdfast.stores.base import Stats as Stats
    from holdfast.stores.base import Store as Store
    from holdfast.verbs.bundle import Exported as Exported
    from holdfast.verbs.bundle import Imported as Imported
    from holdfast.verbs.events import Event as Event
    from holdfast.verbs.handoff import Offer as Offer
    from holdfast.verbs.interrupts import OpenInterrupt as OpenInterrupt
    from holdfast.verbs.lineage import Tree as Tree
    from holdfast.verbs.lineage import TreeNode as TreeNode
    from holdfast.verbs.prune import Keep as Keep
    from holdfast.verbs.prune import Pruned as Pruned
    from holdfast.verbs.verify import Damage as Damage
    from holdfast.verbs.verify import Verified as Verified
    from holdfast.workspace import AsyncWorkspace as AsyncWorkspace
    from holdfast.workspace import Restored as Restored
    from holdfast.workspace import Skipped as Skipped
    from holdfast.workspace import Snapshot as Snapshot
    from holdfast.workspace import TreeDiff as TreeDiff
    from holdfast.workspace import TreeEntry as TreeEntry
    from holdfast.workspace import Workspace as Workspace

_homes = {
    "_version": ("__version__",),
    "client": ("Client", "SyncClient"),
    "core.diff": ("ByPath", "Diff"),
    "core.kinds": ("register_type",),
    "core.raw": ("Raw", "Sealed"),
    "errors": (
        "AdapterError",
        "AmbiguousIdError",
        "ApprovalDeniedError",
        "CheckpointConflictError",
        "CheckpointIntegrityError",
        "CheckpointNotFoundError",
        "CodingAgentError",
        "ContractError",
        "DivergenceError",
        "FencedError",
        "HandoffError",
        "HoldfastError",
        "InvalidArgumentError",
        "MissingBaseError",
        "MissingPackageError",
        "MissingParentError",
        "NotTheHeadError",
        "NoteExistsError",
        "Problem",
        "RefusedError",
        "RollbackRefusedError",
        "RunError",
        "SchemaMigrationError",
        "SerializationError",
        "SessionBusyError",
        "SessionLostError",
        "StillWaitingError",
        "StoreClosedError",
        "StoreConnectionError",
        "StoreError",
        "StoreFormatError",
        "StoreFullError",
        "StoreReadOnlyError",
        "TaskError",
        "TranscriptError",
        "UnknownEffectError",
        "UnknownTypeError",
        "WorkspaceError",
    ),
    "model": ("Checkpoint", "CheckpointBuilder", "CheckpointInfo", "Framework"),
    "session": (
        "AsyncRun",
        "AsyncTask",
        "AsyncTasks",
        "AsyncUnknownEffect",
        "Continued",
        "Decision",
        "Effect",
        "Exploration",
        "Outcome",
        "Question",
        "Recovered",
        "ReplayedStep",
        "RolledBack",
        "Run",
        "Task",
        "Tasks",
        "UnknownCall",
        "UnknownEffect",
        "register_tool",
    ),
    "state": ("CheckpointManager", "Checkpointable", "checkpoint", "register_migration"),
    "stores.base": ("Collected", "SessionInfo", "Stats", "Store"),
    "verbs.bundle": ("Exported", "Imported"),
    "verbs.events": ("Event",),
    "verbs.handoff": ("Offer",),
    "verbs.interrupts": ("OpenInterrupt",),
    "verbs.lineage": ("Tree", "TreeNode"),
    "verbs.prune": ("Keep", "Pruned"),
    "verbs.verify": ("Damage", "Verified"),
    "workspace": (
        "AsyncWorkspace",
        "Restored",
        "Skipped",
        "Snapshot",
        "TreeDiff",
        "TreeEntry",
        "Workspace",
    ),
}
"""Where each public name is defined; nothing is imported before it is asked for."""

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = lazy(__name__, _homes, OLD_ERRORS)
