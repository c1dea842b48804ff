"""Runs: sessions that are worked on, resumed, rolled back and forked."""

from holdfast.session.approval import Decision, Question
from holdfast.session.async_run import AsyncRun, AsyncTask, AsyncTasks, AsyncUnknownEffect
from holdfast.session.continuing import Continued
from holdfast.session.effects import Effect
from holdfast.session.exploration import Exploration, Outcome
from holdfast.session.functions import register_tool
from holdfast.session.recovery import Recovered
from holdfast.session.replay import ReplayedStep
from holdfast.session.rollback import RolledBack
from holdfast.session.run import Run, Task, Tasks, UnknownEffect
from holdfast.session.unknown import UnknownCall

__all__ = [
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
]
