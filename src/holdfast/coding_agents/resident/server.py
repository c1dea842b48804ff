"""The helper: listens to hooks, has one thread record, and knows when to end.

While a hook waits it is sent signs of life, so that it need not wait for a helper that is stopped.
"""

from __future__ import annotations

import os
import queue
import selectors
import signal
import socket
import sys
import threading
import time
from contextlib import suppress

from holdfast.coding_agents.resident.agents import Agent, agent_of, peer_of
from holdfast.coding_agents.resident.meeting import Meeting
from holdfast.coding_agents.resident.messages import AGAIN, ALIVE, Answer, Request
from holdfast.coding_agents.resident.starting import lock_of
from holdfast.coding_agents.resident.work import Work
from holdfast.system.crash_points import reach

SIGN_SECONDS = 0.5
LOOK_SECONDS = 3.0
"""So often it looks whether its project and its socket are there."""
ALONE_SECONDS = 3.0
"""For so long it stays when the last agent has ended: another may come."""
IDLE_SECONDS = 15 * 60.0
FIRST_SECONDS = 15.0
"""For so long it waits for the first word of a hook."""
STUCK_SECONDS = 60.0
"""For so long what is being recorded may go on when it has to end."""
_LOCK_SECONDS = 2.0
_MOST_AGENTS = 32
_LARGEST_READ = 2**20


class Talk:
    """A connection to a hook."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.heard = bytearray()
        self.since = time.monotonic()

    def say(self, data: bytes) -> None:
        """Say something; a hook that has gone is told nothing."""
        with suppress(OSError):
            self.connection.send(data)


class Helper:
    """Serves the hooks of one project until there is no reason to."""

    def __init__(self, meeting: Meeting, idle_seconds: float = IDLE_SECONDS) -> None:
        self._meeting = meeting
        self._idle_seconds = idle_seconds
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(meeting.socket)
        self._place = os.stat(meeting.socket)
        self._listener.listen(128)
        self._wakes, self._woken = socket.socketpair()
        for end in (self._wakes, self._woken):
            end.setblocking(False)
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        signal.set_wakeup_fd(self._wakes.fileno())
        self._events = selectors.DefaultSelector()
        self._events.register(self._listener, selectors.EVENT_READ, self._accept)
        self._events.register(self._woken, selectors.EVENT_READ, self._wake)
        self._talks: set[Talk] = set()
        """Those who have not said all yet, and those who wait for an answer."""
        self._waiting: list[Talk] = []
        self._again: list[Talk] = []
        """Who has to tell another helper, once this one no longer listens."""
        self._agents: dict[int, Agent] = {}
        self._has_known_agents = False
        self._stopping_since: float | None = None
        self._heard_at = self._alone_since = self._looked_at = time.monotonic()
        self._has_heard = False
        self._work = Work(meeting)
        self._jobs: queue.SimpleQueue[tuple[Talk, Request] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Talk, Answer]] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._record, name="recorder")

    def serve(self) -> None:
        """Serve until it is time to end, and leave nothing behind."""
        self._worker.start()
        try:
            while not (self._is_time_to_end() and self._leave()):
                self._turn()
        finally:
            self._jobs.put(None)
            self._worker.join()
            self._work.close()

    def _turn(self) -> None:
        for key, _ in self._events.select(SIGN_SECONDS if self._waiting else LOOK_SECONDS):
            key.data(key.fileobj)
        while not self._done.empty():
            self._answer(*self._done.get())
        for talk in self._waiting:
            talk.say(ALIVE + b"\n")
        for agent in [each for each in self._agents.values() if each.has_ended]:
            self._forget(agent)
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._looked_at = time.monotonic()
            if not (self._work.is_as_it_was and self._is_met_here()):
                self._stop()
            self._end_if_stuck()

    def _is_met_here(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._meeting.socket), self._place)
        except OSError:
            return False

    def _stop(self) -> None:
        self._stopping_since = self._stopping_since or time.monotonic()

    @property
    def _has_to_end(self) -> bool:
        return self._stopping_since is not None or self._work.is_over

    # hooks

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # there is none, or it has gone
                return
            connection.setblocking(False)
            talk = Talk(connection)
            self._talks.add(talk)
            self._events.register(connection, selectors.EVENT_READ, lambda _, t=talk: self._hear(t))

    def _hear(self, talk: Talk) -> None:
        try:
            part = talk.connection.recv(_LARGEST_READ)
            talk.heard += part
            request = Request.unpack(talk.heard)
        except BlockingIOError:
            return
        except (OSError, ValueError):
            self._end(talk)
            return
        if request is not None:
            self._events.unregister(talk.connection)
            talk.heard.clear()
            self._heard_at = time.monotonic()
            self._has_heard = True
            self._note_agent(talk)
            self._waiting.append(talk)
            self._jobs.put((talk, request))
        elif not part:  # it was killed before it had said all
            self._end(talk)

    def _answer(self, talk: Talk, answer: Answer) -> None:
        self._heard_at = time.monotonic()
        self._waiting.remove(talk)
        if answer.kind == AGAIN:
            self._again.append(talk)
            return
        talk.say(answer.pack())
        reach("helper:answered")
        self._end(talk)

    def _end(self, talk: Talk) -> None:
        with suppress(KeyError, ValueError):
            self._events.unregister(talk.connection)
        talk.connection.close()
        self._talks.discard(talk)

    # the thread that records

    def _record(self) -> None:
        while (job := self._jobs.get()) is not None:
            talk, request = job
            try:
                answer = self._work.do(request)
            except BaseException:
                # Nobody is told anything wrong, and nobody waits: this process ends.
                os._exit(1)
            self._done.put((talk, answer))
            with suppress(BlockingIOError):  # it is awake
                self._wakes.send(b"\0")
            if self._jobs.empty():
                self._work.prepare()

    def _wake(self, woken: socket.socket) -> None:
        with suppress(BlockingIOError):
            while woken.recv(1000):
                pass

    # the end

    def _note_agent(self, talk: Talk) -> None:
        if self._agents and sys.platform != "linux":
            return  # asking who runs a hook takes a while there
        hook = peer_of(talk.connection)
        pid = None if hook is None else agent_of(hook)
        if pid is None or pid in self._agents or len(self._agents) >= _MOST_AGENTS:
            return
        try:
            agent = Agent(pid)
        except OSError:  # it has ended by now
            return
        self._agents[pid] = agent
        self._has_known_agents = True
        if agent.fd is not None:
            self._events.register(
                agent.fd, selectors.EVENT_READ, lambda _, a=agent: self._forget(a)
            )

    def _forget(self, agent: Agent) -> None:
        if agent.fd is not None:
            self._events.unregister(agent.fd)
        agent.close()
        del self._agents[agent.pid]
        self._alone_since = time.monotonic()

    def _is_time_to_end(self) -> bool:
        if self._waiting or not self._done.empty():
            return False
        if self._has_to_end:
            return True
        now = time.monotonic()
        since = max(self._alone_since, self._heard_at)
        if self._has_known_agents and not self._agents and now - since > ALONE_SECONDS:
            return True
        idle_for = self._idle_seconds if self._has_heard else FIRST_SECONDS
        return now - self._heard_at > idle_for

    def _end_if_stuck(self) -> None:
        """End although an event is being recorded, if that has no end."""
        since = self._stopping_since
        if since is not None and time.monotonic() - since > STUCK_SECONDS:
            self._leave()
            os._exit(1)

    def _leave(self) -> bool:
        """Be met no more; False if a hook has come in the last moment, and is to be heard."""
        lock = lock_of(self._meeting, _LOCK_SECONDS)
        try:
            self._accept(self._listener)
            new = [talk for talk in self._talks if time.monotonic() - talk.since < FIRST_SECONDS]
            if new and not self._has_to_end:
                return False
            if self._is_met_here():
                os.unlink(self._meeting.socket)
            if lock is not None and not os.path.lexists(self._meeting.socket):
                os.unlink(self._meeting.lock)
            self._listener.close()
        finally:
            if lock is not None:
                os.close(lock)
        for talk in self._again:
            talk.say(Answer(AGAIN).pack())
        for talk in list(self._talks):
            self._end(talk)
        return True
