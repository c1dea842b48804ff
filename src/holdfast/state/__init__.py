"""PyTorch-style state: ``state_dict`` and ``load_state_dict``, and a manager to keep it."""

from holdfast.core.state_migrations import register_migration
from holdfast.state.checkpointable import Checkpointable, LoadedKeys
from holdfast.state.decorator import checkpoint
from holdfast.state.manager import CheckpointManager, Saved
from holdfast.state.rollback import Rollback
from holdfast.state.save_queue import PendingSave
from holdfast.state.state_diff import StateDiff

__all__ = [
    "CheckpointManager",
    "Checkpointable",
    "LoadedKeys",
    "PendingSave",
    "Rollback",
    "Saved",
    "StateDiff",
    "checkpoint",
    "register_migration",
]
