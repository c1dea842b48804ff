"""Runs: sessions that are worked on, resumed, rolled back and forked."""

from holdfast.session.approval import Decision, Question
from holdfast.session.async_run import AsyncRun
from holdfast.session.effects import Effect
from holdfast.session.functions import register_tool
from holdfast.session.recovery import Recovered
from holdfast.session.rollback import RolledBack
from holdfast.session.run import Run

__all__ = [
    "AsyncRun",
    "Decision",
    "Effect",
    "Question",
    "Recovered",
    "RolledBack",
    "Run",
    "register_tool",
]
