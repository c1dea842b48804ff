"""A run of an agent under way: what was recorded of it is given again, what is new is kept.

The framework's own loop runs from the beginning each time. As long as there are recorded answers
of the model and outputs of tools it is given those, and so comes to where it was killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_framework import AgentSession, MiddlewareFailure

from holdfast.adapters.agent_framework import turn_state
from holdfast.adapters.agent_framework.messages import kept, loaded
from holdfast.adapters.agent_framework.results import (
    RecordedToolError,
    content_of,
    fields_of,
    kept_result,
    loaded_result,
    response_of,
)
from holdfast.adapters.agent_framework.turn_state import State
from holdfast.adapters.journal import Effects, ToolJournal
from holdfast.errors import ApprovalDeniedError, HoldfastError

if TYPE_CHECKING:
    from holdfast.session.async_run import AsyncRun


class Turn:
    """One run of an agent in a session, from its input to its answer."""

    def __init__(
        self, run: AsyncRun, session: AgentSession, source_id: str, effects: Effects
    ) -> None:
        self._run = run
        self._session = session
        self._source_id = source_id
        self.journal = ToolJournal(run, effects)
        self._given = 0
        """How many recorded answers of the model were given again."""
        self._known: dict[str, Mapping[str, Any]] = {}
        """Recorded results of the calls that the last answer asked for."""
        self._calls: Counter[str] = Counter()
        """How often each id was given to a call in the session."""
        self.is_open = True

    @property
    def _state(self) -> State:
        state: State = self._run.state
        return state

    # Its beginning

    async def begin(self, messages: list[Any], system: list[Any]) -> list[Any]:
        """Begin with this input, or go on where a run with it was cut off; returns the input."""
        self._run.state = turn_state.checked(self._run.state, self._run.session_id)
        state, inputs = self._state, kept(messages)
        is_open = state.get("turn") is not None
        self._restore_session(is_open)
        if is_open and turn_state.is_same_input(state, inputs):
            messages = loaded(turn_state.inputs_of(state))
            self._count(state["messages"][: state["turn"]["start"]])
            return messages
        self._count(state["messages"])
        if is_open:
            turn_state.left(state, self._output_of)
        state["system"] = system or state.get("system", [])
        state["session"] = self._session_now()
        turn_state.begun(state, inputs)
        await self._run.checkpoint("user prompt")
        return messages

    def _count(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._calls.update(str(call.get("call_id")) for call in turn_state.calls_in(messages))

    def _restore_session(self, is_open: bool) -> None:
        """Bring the session to what is kept, unless it is the one that was kept."""
        session, was = self._session, self._state.get("session")
        seen = session.state.get(self._source_id, {}).get("head")
        if was is None or (seen == self._run.head and not is_open):
            return
        self._bring_to(was)

    def _bring_to(self, was: Mapping[str, Any]) -> None:
        """Bring the session to what was kept of it."""
        known = AgentSession.from_dict({**was, "session_id": self._session.session_id})
        self._session.state.update(known.state)
        self._session.service_session_id = known.service_session_id

    def _session_now(self) -> dict[str, Any]:
        plain: dict[str, Any] = self._session.to_dict()
        own = {key: each for key, each in plain["state"].items() if key != self._source_id}
        return {**plain, "state": own}

    def _output_of(self, call_id: str) -> Any:
        key = self._key(call_id)
        for call in self._run.effects:
            if (call.key, call.status) == (key, "done"):
                return content_of(call_id, call.output)
        return None

    # The model

    def history(self) -> list[Any]:
        """Return what was said before what is being sent to the model.

        At the beginning of a run that is all before it; later, where the framework asks before
        each model call, all but what followed the last answer.
        """
        state = self._state
        start = state["turn"]["start"]
        own = state["messages"][start : turn_state.tail(state)] if self._given else []
        return loaded([*turn_state.repaired(state["messages"][:start]), *own])

    def recorded_answer(self, options: Any) -> Any:
        """Return the next answer of the model that was recorded; None if it is to be asked."""
        self.journal.check()
        state, number = self._state, self._given
        if number >= len(state["turn"]["responses"]):
            return None
        self._given += 1
        answer = state["turn"]["responses"][number]
        messages = state["messages"][answer["at"] : answer["at"] + answer["count"]]
        self._count(messages)
        after = turn_state.results_in(turn_state.following(state, number))
        self._known = {str(result.get("call_id")): result for result in after}
        is_last = self._given == len(state["turn"]["responses"])
        if is_last and not turn_state.following(state, number):
            self._bring_to_kept()
        return response_of(loaded(messages), answer["fields"], options)

    def _bring_to_kept(self) -> None:
        """Have in the session what tools put there that are not run again."""
        was = self._state["turn"].get("session")
        if was is not None:
            self._bring_to(was)

    async def asks(self, messages: Sequence[Any], *, is_partial: bool) -> None:
        """Keep what is sent to the model and is new: most often what tools gave."""
        fresh = turn_state.unseen(self._state, kept(messages), is_partial=is_partial)
        if not fresh and self._known:
            self._bring_to_kept()
        if fresh:
            self._state["messages"] = [*self._state["messages"], *fresh]
            has_results = any(turn_state.results_in(fresh))
            await self._keep("tools" if has_results else "messages")

    async def _keep(self, name: str) -> None:
        """Keep where the run stands, with the session as it is now."""
        self._state["turn"]["session"] = self._session_now()
        await self._run.checkpoint(name)

    async def answered(self, response: Any) -> None:
        """Keep an answer of the model, before any tool runs."""
        messages = kept(response.messages)
        turn_state.answered(self._state, messages, fields_of(response))
        self._given += 1
        self._known = {}
        self._count(messages)
        await self._keep("model")

    # Tools

    def _key(self, call_id: str) -> str:
        """Return what a call is journaled by: its id, numbered where a model gives ids again."""
        again = self._calls[call_id] - 1
        return call_id if again < 1 else f"{call_id}#{again}"

    async def call(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        """Call a tool, or give the framework what it gave."""
        call_id = str(context.metadata["call_id"])
        key = self._key(call_id)
        failures = self._state["turn"]["failures"]
        known = self._known.get(call_id)
        if known is not None:
            if known.get("exception") is not None:
                raise RecordedToolError(failures.get(key, known.get("result") or ""))
            context.result = loaded_result({"contents": known.get("items") or []})
            return
        is_run = False
        arguments = _arguments(context.arguments)

        async def tool(given: Any) -> Any:
            nonlocal is_run
            is_run = True
            if given != arguments:
                context.arguments = given
            await call_next()
            return kept_result(context.result)

        try:
            output = await self.journal.call(context.function.name, key, arguments, tool)
        except ApprovalDeniedError as denied:  # the framework would only say that it failed
            context.result = str(denied)
            return
        except HoldfastError as error:
            if self.journal.problem is not None:  # not for the model: it ends the run
                raise MiddlewareFailure(str(error)) from error
            failures[key] = str(error)
            raise
        except Exception as error:
            failures[key] = str(error)
            raise
        if not is_run:
            context.result = loaded_result(output)

    # Its end

    async def end(self, response: Any) -> None:
        """Keep the end of a run that gave an answer, and let go of the session."""
        try:
            self.journal.check()
            turn_state.ended(self._state, [] if response is None else kept(response.messages))
            self._state["session"] = self._session_now()
        except BaseException as error:
            await self.fail(error)
            raise
        self.is_open = False
        await self._run.close()
        self._session.state[self._source_id] = {"head": self._run.head}

    async def fail(self, error: BaseException) -> None:
        """Let go of the session after an error; the same input goes on from here."""
        self.is_open = False
        await self._run.__aexit__(type(error), error, error.__traceback__)


def _arguments(given: Any) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else dict(given.model_dump())
