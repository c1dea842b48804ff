"""PyTorch-style state: ``state_dict`` and ``load_state_dict``, and a manager to keep it."""

from holdfast.core.state_migrations import register_migration
from holdfast.state.checkpointable import Checkpointable
from holdfast.state.decorator import checkpoint
from holdfast.state.manager import CheckpointManager

__all__ = ["CheckpointManager", "Checkpointable", "checkpoint", "register_migration"]
