"""The checkpoints of a crew, task by task, and of a conversation with an agent."""

from __future__ import annotations

import threading
import warnings
from typing import Any

from crewai.crew import Crew
from crewai.events.event_bus import crewai_event_bus
from crewai.lite_agent_output import LiteAgentOutput
from crewai.state.checkpoint_config import CheckpointConfig
from crewai.tasks.task_output import TaskOutput

from holdfast.adapters.crewai import conversations
from holdfast.adapters.crewai.dumping import crew_state
from holdfast.adapters.crewai.heads import follow
from holdfast.adapters.crewai.restoring import (
    check_tools,
    config_of,
    crew_given,
    put_live,
    strange_models,
    with_stand_ins,
)
from holdfast.adapters.crewai.resuming import kept_crew, put_onto, relink
from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.client import Client, SyncClient
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.model import Framework, checked_name

_FLUSH_SECONDS = 30.0


class HoldfastCheckpoints(OnStore):
    """Keeps a crew after each of its tasks, and gives it back: ``Crew(task_callback=...)``.

    >>> from holdfast.adapters.crewai import HoldfastCheckpoints
    >>> with HoldfastCheckpoints(session_id="report-7", url="memory://") as checkpoints:
    ...     checkpoints.messages()
    []
    """

    def __init__(
        self,
        *,
        session_id: str,
        client: Client | SyncClient | None = None,
        url: str | None = None,
        agent_id: str = Framework.CREWAI.value,
        workspace: Any = None,
    ) -> None:
        self.session_id = checked_name("session_id", session_id)
        self._store = AdapterStore.given(client, url)
        self._kept = KeptSessions(self._store, Framework.CREWAI, agent_id, workspace)
        self._one_at_a_time = threading.Lock()
        self._crew: Crew | None = None
        self._run: object = None
        self._left: set[object] = set()
        self._finished: set[int] = set()
        self._after: Kept | None = None
        # CrewAI warns that a callable object would prevent its checkpoints; this one makes them.
        warnings.filterwarnings("ignore", f"{type(self).__name__} callbacks", UserWarning)

    def _let_go(self) -> None:
        self._kept.close()

    def __call__(self, output: Any) -> None:
        """Keep the crew as it stands after a task; CrewAI calls this with the task's output.

        The output of an agent that was kicked off by itself is kept as a conversation.
        """
        if isinstance(output, LiteAgentOutput):
            self._run_plan(conversations.kept_output(self._kept, self.session_id, output))
        elif isinstance(output, TaskOutput):
            self._keep_task(output)
        else:
            raise InvalidArgumentError(
                "HoldfastCheckpoints is given as task_callback of a Crew, which calls it with the "
                f"output of a task, not with {type(output).__name__}"
            )

    def _keep_task(self, output: TaskOutput) -> None:
        with self._one_at_a_time:  # tasks with async_execution end in threads of their own
            crew, place = self._task_of(output)
            if not crewai_event_bus.flush(_FLUSH_SECONDS):
                raise AdapterError(
                    f"task {place + 1} could not be kept: handlers of CrewAI's events are still "
                    f"at work after {_FLUSH_SECONDS:.0f} seconds, so the crew may change meanwhile"
                )
            finished = self._finished | {place}
            state = crew_state(crew, finished, self)
            task = crew.tasks[place]
            name = f"task {place + 1}: {task.name or task.description.strip()}"[:80]
            tags = {"tasks_done": len(finished), "tasks": len(crew.tasks)}
            self._after = self._run_plan(
                follow(self._kept, self.session_id, state, name=name, after=self._after, tags=tags)
            )
            self._finished = finished

    def _task_of(self, output: TaskOutput) -> tuple[Crew, int]:
        """Return the crew that is running, and which of its tasks has this output."""
        state = crewai_event_bus.runtime_state
        for crew in () if state is None else state.root:
            if isinstance(crew, Crew):
                for place, task in enumerate(crew.tasks):
                    if task.output is output:
                        self._check_run(crew)
                        return crew, place
        raise AdapterError(
            f"session {self.session_id!r}: the task that ended belongs to no crew that runs; "
            "HoldfastCheckpoints keeps crews: give it as task_callback and call crew.kickoff()"
        )

    def _check_run(self, crew: Crew) -> None:
        run = crew._kickoff_event_id
        if run in self._left:
            raise AdapterError(
                f"session {self.session_id!r} holds one crew, and two report to it at once: give "
                "each its own HoldfastCheckpoints with a session_id of its own (kickoff_for_each "
                "makes a crew of each input)"
            )
        if self._crew is not crew or self._run not in (None, run):
            self._left.add(self._run)
            self._after = self._head()
            self._finished = set()  # kicked off anew: outputs of the run before count no more
        self._crew, self._run = crew, run

    def _begins(self, crew: Crew, finished: set[int], head: Kept) -> None:
        self._crew, self._run, self._finished, self._after = crew, None, finished, head
        self._left.clear()

    def resume(self, crew: Crew) -> bool:
        """Have the crew go on where the session stands; False if it is yet to begin.

        Tasks that are done keep their outputs and are not run again by ``crew.kickoff()``; the one
        that was cut begins again. Agents, tools, models and functions are the crew's own. A crew
        whose tasks are all done gives its output again: for another run take another session.
        """
        if not isinstance(crew, Crew):
            raise InvalidArgumentError(f"resume is given a Crew, not {type(crew).__name__}")
        head = self._head()
        if head is None:
            return False
        finished = put_onto(crew, kept_crew(head.state, self.session_id), self.session_id)
        self._begins(crew, finished, head)
        return True

    def latest(self) -> CheckpointConfig | None:
        """Return where the session stands for ``crew.kickoff(from_checkpoint=...)``; None: anew.

        CrewAI makes a crew of text, which holds no functions and no tools of ``@tool``: those are
        taken from the program's crew that has this object as its ``task_callback``.
        """
        head = self._head()
        if head is None:
            return None
        entity = kept_crew(head.state, self.session_id)
        live = crew_given(self)
        missing = [*head.state.get("live", ()), *(f"model of {o}" for o in strange_models(entity))]
        if live is None and missing:
            raise AdapterError(
                f"session {self.session_id!r}: CrewAI cannot make this crew from a file, as only "
                f"the program has {', '.join(dict.fromkeys(missing))}: make the crew with "
                "task_callback=checkpoints before latest(), or use checkpoints.resume(crew)"
            )
        check_tools(entity, self.session_id)
        state = head.state if live is None else with_stand_ins(head.state, entity)

        def restored(crew: Crew) -> None:
            if live is not None:
                put_live(crew, live)
            relink(crew)
            crew.task_callback = self
            self._begins(crew, put_onto(crew, entity, self.session_id), head)

        # Without events CrewAI writes no checkpoints of its own beside these.
        return config_of(state, head.checkpoint_id, restored, on_events=[])

    def messages(self) -> list[dict[str, Any]]:
        """Return the conversation that is kept: what ``Agent.kickoff`` takes to go on."""
        head = self._head()
        return [] if head is None else conversations.kept_messages(head.state, self.session_id)

    def kickoff(self, agent: Any, prompt: Any, **options: Any) -> LiteAgentOutput:
        """Have an agent answer in the conversation of this session: ``agent.kickoff`` that resumes.

        ``prompt`` is text, or chat messages to add. The conversation is kept before each request
        to the model and when it has answered; started again with the same prompt after a kill, it
        goes on from the last of these. ``options`` are those of ``Agent.kickoff``.
        """
        turn = conversations.Turn(self._run_plan, self._kept, self.session_id)
        return turn.kickoff(agent, prompt, options)

    def _head(self) -> Kept | None:
        return self._store.sync.run(self._kept.head(self.session_id))

    def _run_plan(self, plan: Any) -> Any:
        return self._store.sync.run(plan)
