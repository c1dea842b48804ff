"""What carries out plans: sessions, workspaces and adapters are given one, clients sit on top."""

from holdfast.runtime.runtime import AsyncRuntime, HasRuntime, Runtime, SyncRuntime
from holdfast.runtime.steps import Plan, Step

__all__ = ["AsyncRuntime", "HasRuntime", "Plan", "Runtime", "Step", "SyncRuntime"]
