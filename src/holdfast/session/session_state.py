"""The state of an open session: what the program keeps, its tasks, and in which of them it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from holdfast.core.state_migrations import advanced
from holdfast.errors import SchemaMigrationError
from holdfast.model import Checkpoint, Framework, encode_payload, make_payload
from holdfast.session.effects import SESSION, Block
from holdfast.session.options import SessionOptions
from holdfast.session.tasks import TaskList
from holdfast.verbs.stored_values import damaged

VERSION_TAG = "program_version"

_entered_here: ContextVar[tuple[tuple[SessionState, str], ...]] = ContextVar(
    "holdfast_tasks", default=()
)
"""The tasks that the running thread or asyncio task is in, and of which session each is."""


_OF_ONE = ("failed", "error", "adopted", "rolled_back_from", "edited_outside")
"""Tags that say how one checkpoint came to be."""


class SessionState:
    """What a program keeps: its own state and context, its tasks, and the version it is of."""

    def __init__(self, options: SessionOptions) -> None:
        self._options = options
        self.program: Any = None
        """The program's own state."""
        self.context: dict[str, Any] = {}
        self.tasks = TaskList()
        self.jumps = 0
        """How often the program went on from another checkpoint, as by a rollback."""
        self.framework = options.framework or Framework.CUSTOM
        """Whose state it is."""
        self._inherited: dict[str, Any] = {}
        """Tags by which an adapter finds its session, where others work on it."""
        self._version: int | str | None = options.version
        self._entered: list[str] = []
        """The tasks that the program is in."""

    def begin(self) -> None:
        """Be what a new session begins with."""
        self.program = {} if self._options.state is None else self._options.state
        self.context = dict(self._options.context)

    def resume(self, kept: Checkpoint) -> None:
        """Be what the head of a session holds, and the context that the program gives now."""
        self.load(kept)
        if self._options.context:
            self.context.update(self._options.context)

    def load(self, kept: Checkpoint) -> None:
        """Be what a checkpoint holds, brought to the version of this program."""
        self.program = self._at_this_version(kept)
        self.framework = self._options.framework or _kept_by_adapter(kept)
        is_from_outside = self._options.framework is not self.framework is not Framework.CUSTOM
        self._inherited = _lasting(kept.metadata) if is_from_outside else {}
        if not isinstance(kept.agent_context, dict):
            raise damaged("the context of a checkpoint", "is not a dict")
        self.context = kept.agent_context
        self.tasks = TaskList(kept.tasks)

    def _at_this_version(self, kept: Checkpoint) -> Any:
        """Return its state; what a program without a version saved counts as of version 0."""
        wanted, saved = self._options.version, kept.metadata.get(VERSION_TAG)
        if wanted is None or saved == wanted:
            self._version = saved
            return kept.execution_state
        if not isinstance(kept.execution_state, dict):
            raise SchemaMigrationError(
                f"the state of session {self._options.session_id!r} was saved by version {saved!r} "
                f"of the program, and {type(kept.execution_state).__name__} is not a dict, which "
                "could be migrated: open it with that version"
            )
        return advanced(
            self._options.agent_id, kept.execution_state, 0 if saved is None else saved, wanted
        )

    def jump(self, kept: Checkpoint) -> list[Block]:
        """Be what another checkpoint holds; returns the blocks in whose middle the program is.

        It stays in the tasks that it is in, and goes on there.
        """
        tasks = self.tasks
        self.load(kept)
        for task in self._entered:
            record = self.tasks.again(tasks.get(task))
            if record.status != "in_progress":
                self.tasks.put(record.begun())
        self.jumps += 1
        return [SESSION, *map(self.block_of, self._entered)]

    def tags(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tags of a checkpoint: the session's, those given for it, and the version."""
        version = {} if self._version is None else {VERSION_TAG: self._version}
        return {**self._inherited, **self._options.metadata, **given, **version}

    def payload(self, calls: Sequence[Any] = (), workspace: Any = None) -> dict[str, Any]:
        """Return what a checkpoint holds of it, beside the calls and the files."""
        tasks = self.tasks.as_list()
        return make_payload(self.program, self.context, tasks, calls, workspace)

    def is_that_of(self, kept: Checkpoint, allow_pickle: bool) -> bool:
        """Return whether nothing was changed since it was resumed at a checkpoint."""
        before = SessionState(self._options)
        before.resume(kept)
        then, now = (
            encode_payload(each.payload(), allow_pickle=allow_pickle) for each in (before, self)
        )
        return then.root == now.root

    # Where the program is

    @property
    def block(self) -> Block:
        """Where the program is now: in a task, or in the session itself.

        A thread that entered no task itself counts as in the one that was entered last.
        """
        mine = [task for state, task in _entered_here.get() if state is self]
        task = mine[-1] if mine else (self._entered[-1] if self._entered else None)
        return SESSION if task is None else self.block_of(task)

    def block_of(self, task: str) -> Block:
        """Return the block of a task: which attempt at it the program is at."""
        record = self.tasks.known(task)
        return task, 0 if record is None else record.attempts

    def is_open(self, block: Block) -> bool:
        """Return whether a resumed program comes to the calls of a block again."""
        return self.tasks.is_open(block)

    def enter(self, task: str) -> None:
        """Know that the program is in a task."""
        self._entered.append(task)
        _entered_here.set((*_entered_here.get(), (self, task)))

    def leave(self, task: str) -> None:
        """Know that the program is in a task no more."""
        self._entered = [each for each in self._entered if each != task]
        _entered_here.set(tuple(each for each in _entered_here.get() if each != (self, task)))


def _kept_by_adapter(kept: Checkpoint) -> Framework:
    """Return whose state a checkpoint holds, where its adapter goes on from whatever is the head.

    LangGraph's keeps a book of its own: what a run writes on a thread is no checkpoint of it.
    """
    is_langgraph = kept.framework is Framework.LANGGRAPH
    return Framework.CUSTOM if is_langgraph else kept.framework


def _lasting(tags: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tags.items() if name not in _OF_ONE}
