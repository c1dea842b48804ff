"""How far a run of agents has come, as its session keeps it.

A safe point is where a model is about to be asked: there the SDK's RunState holds whole turns. What
comes between two of them is the model's answer, kept before the SDK acts on it, and the tools that
the answer calls, each in the journal. So a run that was killed goes on at its last safe point, is
given the answer that is kept, and finds in the journal what its tools gave.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents import FunctionTool, Handoff, RunState
from agents.items import ItemHelpers
from openai.types.responses import ResponseFunctionToolCall

from holdfast.adapters.journal import ToolJournal
from holdfast.adapters.openai_agents.answers import Answer
from holdfast.adapters.openai_agents.models import WITHIN_TOOL
from holdfast.core.conversation import openai_agents
from holdfast.core.conversation.openai_items import answer_items, item_list, repaired
from holdfast.errors import AdapterError, ApprovalDeniedError, HoldfastError
from holdfast.session.async_run import AsyncRun

_INTERRUPTED = "next_step_interruption"


class Progress:
    """What an open session knows of a run, and writes of it."""

    def __init__(
        self,
        run: AsyncRun,
        journal: ToolJournal,
        *,
        streams: bool,
        to_json: Callable[[RunState[Any, Any]], dict[str, Any]],
    ) -> None:
        self._run = run
        self._journal = journal
        self._to_json = to_json
        self.streams = streams
        self.is_over = False
        self.result: Any = None
        """The SDK's own result, from which its state is taken."""
        self._is_kept = False
        """Whether the session holds the safe point at which the run is."""
        self._agent = ""
        self._seen: dict[str, int] = {}
        self.problem: HoldfastError | None = None

    @property
    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._run.state
        return state

    @property
    def unfinished(self) -> dict[str, Any] | None:
        """What is kept of a run that has not come to its end."""
        return self._state.get("run")

    # Beginning

    async def begin(self, agent: str, given: Any) -> dict[str, Any] | None:
        """Know what the user gives: an agent, and a prompt, nothing, or a state with decisions.

        Returns the JSON of the RunState to go on with; None if the run is at its beginning.
        """
        if not self._state:
            self._state.update(items=[], instructions=None, run=None)
        if openai_agents.extract(self._state) is None:
            raise AdapterError(
                f"the head of session {self._run.session_id!r} holds no conversation of the OpenAI "
                "Agents SDK; roll it back to a checkpoint that does, or use another session_id"
            )
        ended = self._state.pop("ended", None)
        if self._is_untold(given, ended):
            self._state.update(ended)
        if isinstance(given, RunState):
            await self._decided(given)
        elif self.unfinished is None or not _is_same(given, self.unfinished["prompt"]):
            await self._prompted(given)
        else:
            self._is_kept = True
        unfinished = self.unfinished
        assert unfinished is not None
        self._count_ids()
        self._agent = agent
        kept: dict[str, Any] | None = unfinished["state"]
        if kept is not None:
            step = kept.get("current_step")
            if isinstance(step, Mapping) and step.get("type") == _INTERRUPTED:
                self._is_kept = False
            self._agent = kept["current_agent"]["name"]
        return kept

    def _is_untold(self, given: Any, ended: Any) -> bool:
        """Return whether a run had ended, and its process was killed before it could say so."""
        if self.unfinished is not None or ended is None or isinstance(given, RunState):
            return False
        return self._run.follows_crash and _is_same(given, ended["run"]["prompt"])

    async def _decided(self, given: RunState[Any, Any]) -> None:
        known = self.unfinished or {"prompt": [], "outputs": {}}
        state = self._to_json(given)
        if not self._state["items"]:
            self._state["items"] = item_list(state["original_input"])
        self._state["run"] = {**known, "state": state, "answer": None}
        await self._run.checkpoint("decision")

    async def _prompted(self, given: Any) -> None:
        prompt = given if isinstance(given, str) else [_plain(item) for item in given]
        self._state["items"] = [*self._history(), *item_list(prompt)]
        self._state["run"] = {"prompt": prompt, "state": None, "answer": None, "outputs": {}}
        await self._run.checkpoint("user prompt")
        self._is_kept = True

    def _history(self) -> list[Any]:
        """Return the conversation so far; what a run left open in it is answered."""
        native = openai_agents.extract(self._state)
        assert native is not None
        return repaired(native.messages, self._journaled())

    def _journaled(self) -> dict[str, Any]:
        """Return what the tools gave that a last answer called, as the SDK would say it."""
        calls = {
            item["call_id"]: item
            for item in answer_items(self.unfinished or {})
            if item.get("type") == "function_call"
        }
        if not calls:
            return {}
        self._count_ids()
        keys = {self._key(call_id): call_id for call_id in calls}
        found = {}
        for effect in self._run.effects:
            call_id = keys.get(effect.key or "")
            if call_id is not None and effect.status == "done" and not effect.abandoned:
                call = ResponseFunctionToolCall.construct(**calls[call_id])
                found[call_id] = dict(ItemHelpers.tool_call_output_item(call, effect.output))
        return found

    @property
    def input(self) -> Any:
        """What a run at its beginning is given: the prompt, behind the conversation so far."""
        unfinished = self.unfinished
        assert unfinished is not None
        if len(item_list(unfinished["prompt"])) == len(self._state["items"]):
            return unfinished["prompt"]
        return list(self._state["items"])

    # While it runs

    async def before_model(self, instructions: str | None) -> Answer | None:
        """Keep where the run stands, as a model is about to be asked; an answer that is kept."""
        self._check()
        unfinished = self.unfinished
        assert unfinished is not None
        if self._is_kept:
            answer: Answer | None = unfinished["answer"]
            self._is_kept = False
            self._state["instructions"] = instructions
            return answer
        state = self._to_json(self.result.to_state())
        self._state["instructions"] = instructions
        self._state["run"] = {**unfinished, "state": state, "answer": None, "outputs": {}}
        name = state["current_agent"]["name"]
        has_changed, self._agent = name != self._agent, name
        await self._kept("handoff" if has_changed else "tools")
        return None

    async def answered(self, answer: Answer) -> None:
        """Keep an answer before the SDK acts on it."""
        unfinished = self.unfinished
        assert unfinished is not None
        self._state["run"] = {**unfinished, "answer": answer}
        await self._kept("model")

    async def _kept(self, name: str) -> None:
        try:
            await self._run.checkpoint(name)
        except HoldfastError as error:
            self.problem = error
            raise

    async def call_tool(
        self,
        tool: FunctionTool,
        context: Any,
        arguments: str,
        invoke: Callable[[Any, str], Awaitable[Any]],
    ) -> Any:
        """Run a tool through the journal; one whose output is known is not run."""
        call_id = getattr(context, "tool_call_id", None)
        if self.is_over or WITHIN_TOOL.get() or not call_id:
            return await invoke(context, arguments)
        unfinished = self.unfinished
        assert unfinished is not None
        if call_id in unfinished["outputs"]:
            return unfinished["outputs"][call_id]
        given = _arguments(arguments)

        async def run(allowed: Any) -> Any:
            said = arguments if allowed == given else json.dumps(allowed, ensure_ascii=False)
            within = WITHIN_TOOL.set(True)
            try:
                return await invoke(context, said)
            finally:
                WITHIN_TOOL.reset(within)

        try:
            return await self._journal.call(tool.name, self._key(call_id), given, run)
        except ApprovalDeniedError as denied:
            return str(denied)

    async def call_handoff(
        self, handoff: Handoff[Any, Any], arguments: str, hand_over: Callable[[], Awaitable[Any]]
    ) -> None:
        """Run what a handoff does through the journal, under the id of its call."""
        if self.is_over or WITHIN_TOOL.get():
            await hand_over()
            return
        calls = answer_items(self.unfinished or {})
        named = (item["call_id"] for item in calls if item.get("name") == handoff.tool_name)
        call_id = next(named, handoff.tool_name)

        async def run(_: Any) -> None:
            await hand_over()

        await self._journal.call(
            handoff.tool_name, self._key(call_id), _arguments(arguments or "{}"), run
        )

    def _count_ids(self) -> None:
        """Know which ids earlier runs used: some models begin to count anew with each."""
        self._seen = {}
        for item in self._state["items"]:
            if isinstance(item, Mapping) and item.get("type") == "function_call":
                call_id = str(item.get("call_id"))
                self._seen[call_id] = self._seen.get(call_id, 0) + 1

    def _key(self, call_id: str) -> str:
        times = self._seen.get(call_id, 0)
        return call_id if not times else f"{call_id}@{times + 1}"

    def _check(self) -> None:
        if self.problem is not None:
            raise self.problem
        self._journal.check()

    def check(self) -> None:
        """Raise what went wrong in Holdfast itself, which the SDK may have shown to the model."""
        self._check()

    # Ending

    def finished(self, items: list[Any]) -> None:
        """Know that the run came to its end.

        Its last step is kept too, as the process may be killed before anybody knows of the end.
        """
        ended = {"items": self._state["items"], "run": self.unfinished}
        self._state.update(items=[_plain(item) for item in items], run=None, ended=ended)

    def paused(self, state: RunState[Any, Any]) -> None:
        """Know that the run waits for a decision, or was told to stop behind a turn."""
        unfinished = self.unfinished
        assert unfinished is not None
        kept = {"state": self._to_json(state), "answer": None, "outputs": {}}
        self._state["run"] = {**unfinished, **kept}

    def refused(self) -> None:
        """Know that a guardrail refused the prompt: it is no part of the conversation."""
        unfinished = self.unfinished
        assert unfinished is not None
        prompt = item_list(unfinished["prompt"])
        items = self._state["items"]
        self._state.update(items=items[: len(items) - len(prompt)], run=None)

    def answer_refused(self) -> None:
        """Know that the last answer was not accepted: the model is asked again."""
        unfinished = self.unfinished
        assert unfinished is not None
        self._state["run"] = {**unfinished, "answer": None, "outputs": {}}


def _is_same(given: Any, prompt: Any) -> bool:
    """Return whether what is given goes on with a run: its prompt again, or nothing new."""
    items = [_plain(item) for item in item_list(given)]
    return not items or items == item_list(prompt)


def _plain(item: Any) -> Any:
    return item.model_dump(mode="json", exclude_unset=True) if hasattr(item, "model_dump") else item


def _arguments(arguments: str) -> Any:
    """Return the arguments of a call as people read them; as text where they are no object."""
    try:
        found = json.loads(arguments)
    except ValueError:
        return arguments
    return found if isinstance(found, dict) else arguments
