"""What the helper does for hooks: it records their events, one after the other."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from holdfast._version import __version__
from holdfast.coding_agents.hook_options import read_options
from holdfast.coding_agents.resident.meeting import Meeting
from holdfast.coding_agents.resident.messages import AGAIN, DONE, FAILED, Answer, Request
from holdfast.system.crash_points import reach

if TYPE_CHECKING:
    from holdfast.coding_agents.recording import Project
    from holdfast.coding_agents.told import Told

_LARGEST = 2**30
"""Bytes of memory: a helper that has taken so many gives way to another."""


class Work:
    """Records events in the one project that it opened. Used by one thread."""

    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting
        self._project: Project | None = None
        self._is_cold = False
        self._has_told_loss = False
        self.is_over = False
        """Whether another helper has to be told from now on."""

    @property
    def is_as_it_was(self) -> bool:
        """Whether the project, if one is open, is still there."""
        return self._project is None or self._project.is_as_it_was

    def do(self, request: Request) -> Answer:
        """Record an event; returns what became of it, whatever happened."""
        if self.is_over or request.version != __version__:
            self.is_over = True
            return Answer(AGAIN)
        try:
            # Here and not above: a helper listens before all of this is imported.
            from holdfast.coding_agents.hook_log import HookLog, words_of
            from holdfast.coding_agents.recording import told_in
        except Exception as error:  # it was upgraded, or removed, under our feet
            self.is_over = True
            return Answer(FAILED, f"{type(error).__name__}: {error}")
        program = "helper"
        try:
            options = read_options(request.words)
            program = options.program
            if Meeting.of(request.folder, options.store).socket != self._meeting.socket:
                self.is_over = True
                return Answer(AGAIN)  # it was meant for another, or by somebody who is no hook
            told = told_in(options, request.event)
            reach("helper:told")
            answer = self._record(request, told, options.store, options.agent)
            reach("helper:recorded")
            return answer
        except Exception as error:
            problem = words_of(error)
            HookLog.of(request.folder).problem(program, problem)
            return Answer(FAILED, problem)
        finally:
            self.is_over = self.is_over or _memory() > _LARGEST

    def _record(self, request: Request, told: Told, store: str | None, agent: str | None) -> Answer:
        from holdfast.coding_agents import recording
        from holdfast.coding_agents.hook_log import HookLog
        from holdfast.coding_agents.told import Moment

        location = recording.location_from(request.folder, store)
        is_start = told.moment is Moment.START
        try:
            if self._project is None and is_start and not recording.is_there(location):
                HookLog.of(request.folder).arrived(told.program, told.event)
                return Answer(DONE, recording.as_json(recording.nothing_of(told)))
            if self._project is None:
                self._project = recording.Project(request.folder, location, watch=True)
                self._is_cold = True
            elif not (self._project.is_at(request.folder, location) and self._project.is_as_it_was):
                self.is_over = True
                self._tell_loss()
                return Answer(AGAIN)
        finally:
            if location.path is None or location.path.is_absolute():
                os.chdir("/")  # so that nothing is kept from being unmounted
        self._project.log.arrived(told.program, told.event)
        if is_start:
            recorded = recording.nothing_of(told)
        else:
            recorded = self._project.record(told, agent, request.event_id)
            self._is_cold = False
        return Answer(DONE, recording.as_json(recorded))

    def prepare(self) -> None:
        """Look at all files while nobody waits, if that was not done yet."""
        if self._project is None or not self._is_cold:
            return
        self._is_cold = False
        try:
            self._project.warm_up()
        except Exception as error:
            from holdfast.coding_agents.hook_log import words_of

            self._project.log.problem("helper", words_of(error))

    def close(self) -> None:
        """Let go of the project."""
        if self._project is not None:
            self._tell_loss()
            self._project.close()

    def _tell_loss(self) -> None:
        """Note, once, that the store was taken away: who follows makes a new one unasked."""
        from holdfast.coding_agents.hook_log import HookLog

        loss = None if self._project is None else self._project.loss
        if self._project is not None and loss is not None and not self._has_told_loss:
            self._has_told_loss = True
            HookLog.of(self._project.root).problem("helper", loss)


def _memory() -> int:
    """Return how many bytes of memory this process has had at most."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
