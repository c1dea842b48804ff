"""What is asked of a store of each size: every row of the table of reads and small writes."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import count
from typing import Any

from benchmarks.scale.shape import EVER_NEW, LONG, PROBE, PROBED, PROBER, QUIET, REVIEWER, Shape
from holdfast import SyncClient
from holdfast.cli import main

_PAGE, _SEVERAL = 50, 20


class Subject:
    """A loaded store, and what of it is asked for: another session each time."""

    def __init__(self, url: str, shape: Shape) -> None:
        self.url = url
        self.shape = shape
        self.client = SyncClient.open(url)
        self.numbers = count()
        self._random = random.Random(shape.size)
        ordinary = [each for each in shape.ordinary if not each.is_offered]
        self._sessions = ordinary[::2]
        removed = max(1, shape.length // 20)
        self.prunable = (
            (each.agent, each.name, last)
            for last in range(shape.length - removed, 0, -removed)
            for each in ordinary[1::2]
        )
        probe = self.client.timeline(PROBER, PROBE, limit=PROBED)
        self.probe = [info.checkpoint_id for info in probe]
        self.parent = self.probe[len(self.probe) // 2]
        own = [each for each in probe if each.metadata["attempt"] >= EVER_NEW]
        self.attempt = own[0].metadata["attempt"]
        (newest,) = self.client.find(limit=1)
        self.cursor = self.client.sessions(limit=_SEVERAL)[-1]
        self.head = newest.checkpoint_id
        state = self.client.restore(self.probe[0]).execution_state
        self.states = ({**state, "step": number} for number in count())

    def some_session(self) -> tuple[str, str]:
        """Return an ordinary session, each time another."""
        session = self._random.choice(self._sessions)
        return session.agent, session.name

    def command(self, *words: str) -> str:
        """Run a command in this process, and return what it prints."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main([*words, "--store", self.url])
        if code:
            raise RuntimeError(f"holdfast {' '.join(words)} ended with {code}: {err.getvalue()}")
        return out.getvalue()

    def close(self) -> None:
        """Let go of the store."""
        self.client.close()


@dataclass(frozen=True)
class Question:
    """Something that is asked, and how much more it may cost in the largest store."""

    name: str
    ask: Callable[[Subject], object]
    bound: float | None = 2.0

    @property
    def is_command(self) -> bool:
        """Whether it is one of the command line, which opens the store."""
        return self.name.startswith("`")


def _found(subject: Subject, least: int = 1, **asked: Any) -> object:
    found = subject.client.find(**asked)
    if len(found) < least:
        raise RuntimeError(f"{asked} found {len(found)} checkpoints, not {least}")
    return found


def _save(subject: Subject, session: str) -> object:
    return subject.client.save("saver", execution_state=next(subject.states), session_id=session)


def _restore(subject: Subject) -> object:
    agent, session = subject.some_session()
    (info,) = subject.client.timeline(agent, session, limit=1)
    return subject.client.restore(info.checkpoint_id)


def _fork(subject: Subject) -> object:
    name = f"fork-{next(subject.numbers)}"
    return subject.client.fork(subject.parent, session_id=name)


def _take(subject: Subject) -> object:
    subject.client.handoff(subject.head, "taker")
    taken = subject.client.take("taker")
    if taken is None:
        raise RuntimeError("the offer was not found")
    return taken


def _prune(subject: Subject) -> object:
    agent, session, last = next(subject.prunable)
    pruned = subject.client.prune(last=last, agent_id=agent, session_id=session)
    if not pruned.removed:
        raise RuntimeError(f"nothing was pruned of {session}")
    return pruned


def _poll(subject: Subject, channel: str, after: str | None = None) -> object:
    for event in subject.client.subscribe(channel, after, timeout=0):
        after = event.cursor
    return after


class _Polled:
    """A channel that was read to its end, and is looked at again."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._ends: dict[str, str] = {}

    def __call__(self, subject: Subject) -> object:
        after = self._ends.get(subject.url)
        end = _poll(subject, self._channel, after)
        if isinstance(end, str):
            self._ends[subject.url] = end
        return end


SAVE = "save, next of a session"
QUESTIONS = (
    Question(SAVE, lambda s: _save(s, "saved")),
    Question("save, a new session", lambda s: _save(s, f"new-{next(s.numbers)}")),
    Question("restore the newest of a session", _restore),
    Question("latest", lambda s: s.client.latest(*s.some_session())),
    Question("latest of the long-lived session", lambda s: s.client.latest("builder", LONG)),
    Question("timeline, 50", lambda s: s.client.timeline(*s.some_session(), limit=_PAGE)),
    Question(
        "timeline of the long-lived, 50", lambda s: s.client.timeline("builder", LONG, limit=_PAGE)
    ),
    Question("fork", _fork),
    Question("diff of neighbours", lambda s: s.client.diff(s.probe[1], s.probe[0])),
    Question(
        "find by session",
        lambda s: _found(s, _SEVERAL, session_id=s.some_session()[1], limit=_PAGE),
    ),
    Question("find by parent", lambda s: _found(s, parent_id=s.parent)),
    Question("find by agent, of many", lambda s: _found(s, _SEVERAL, agent_id="agent-07")),
    Question("find by agent, of few", lambda s: _found(s, _SEVERAL, agent_id=PROBER)),
    Question("find by tag, common", lambda s: _found(s, _SEVERAL, tags={"project": "project-3"})),
    Question("find by tag, of one session", lambda s: _found(s, tags={"ticket": "T-probe"})),
    Question(
        "find by tag, one of ever new values",
        lambda s: _found(s, tags={"attempt": s.attempt}),
        bound=None,
    ),
    Question(
        "find by that tag in its session",
        lambda s: _found(s, tags={"attempt": s.attempt}, agent_id=PROBER, session_id=PROBE),
    ),
    Question("tree of 100 and 3 forks", lambda s: s.client.tree(PROBER, PROBE)),
    Question("sessions, the first 20", lambda s: s.client.sessions(limit=_SEVERAL)),
    Question("sessions, the next 20", lambda s: s.client.sessions(limit=_SEVERAL, before=s.cursor)),
    Question("inbox", lambda s: s.client.inbox(REVIEWER)),
    Question("handoff and take", _take),
    Question("poll a quiet channel", _Polled(QUIET)),
    Question("poll a busy channel", _Polled("saves:agent-03")),
    Question("prune of one session", _prune),
    Question("stats", lambda s: s.client.stats(), bound=None),
    Question("`show x@~3`", lambda s: s.command("show", f"{PROBE}@~3")),
    Question("`log`", lambda s: s.command("log")),
    Question("`log x`", lambda s: s.command("log", PROBE)),
    Question("`log --graph x`", lambda s: s.command("log", "--graph", PROBE)),
    Question("`log --all`", lambda s: s.command("log", "--all")),
    Question("`log` of a name that begins so", lambda s: s.command("log", LONG[:6])),
    Question("`diff x@~1 x@`", lambda s: s.command("diff", f"{PROBE}@~1", f"{PROBE}@")),
    Question("`sessions -n 20`", lambda s: s.command("sessions", "-n", str(_SEVERAL))),
)
"""What has no bound reads all there is, or all that may fit, and says so in its documentation."""
