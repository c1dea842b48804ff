"""What carries out plans: sessions, workspaces and adapters are given one, clients sit on top.

A plan is a generator that yields steps and is sent their answers, so that it is written once for
sync and async: ``client.runtime.run(plan)`` returns its result, or is awaited.
"""

from holdfast.runtime.engine import Engine
from holdfast.runtime.runtime import AsyncRuntime, HasRuntime, Runtime, SyncRuntime
from holdfast.runtime.steps import Ask, Call, Do, Plan, Rest, Step

__all__ = [
    "Ask",
    "AsyncRuntime",
    "Call",
    "Do",
    "Engine",
    "HasRuntime",
    "Plan",
    "Rest",
    "Runtime",
    "Step",
    "SyncRuntime",
]
