"""How far a run of agents has come, as its session keeps it.

A safe point is where a model is about to be asked: there the SDK's RunState holds whole turns. What
comes between two of them is the model's answer, kept before the SDK acts on it, and the tools that
the answer calls, each in the journal. So a run that was killed goes on at its last safe point, is
given the answer that is kept, and finds in the journal what its tools gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agents import RunState

from holdfast.adapters.journal import ToolJournal
from holdfast.adapters.openai_agents.answers import Answer
from holdfast.adapters.openai_agents.decisions import is_past, is_same_moment
from holdfast.adapters.openai_agents.tool_calls import ToolCalls
from holdfast.core.conversation.frameworks import openai_agents
from holdfast.core.conversation.frameworks.openai_items import (
    answer_items,
    is_run,
    item_list,
    repaired,
)
from holdfast.errors import AdapterError, HoldfastError, InvalidArgumentError
from holdfast.session.async_run import AsyncRun

_INTERRUPTED = "next_step_interruption"
AGAIN = "next_step_run_again"
"""The step of a RunState whose next turn is about to begin."""
Unfinished = dict[str, Any]
"""``prompt`` of a run, ``state`` at its last safe point (None: it is at its beginning), the
``answer`` that came since, and ``outputs`` of calls that another framework made."""


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
        self._problem: HoldfastError | None = None
        self._is_kept = False
        """Whether the session holds the safe point at which the run is."""
        self._agent = ""
        self.tools = ToolCalls(run, journal)
        self.streams = streams
        self.result: Any = None
        """The SDK's own result, from which its state is taken."""

    @property
    def is_idle(self) -> bool:
        """Whether what is asked now is no step of this run."""
        return self.tools.is_idle

    @property
    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._run.state
        return state

    @property
    def _unfinished(self) -> Unfinished:
        unfinished: Unfinished = self._state["run"]
        return unfinished

    def _go_to(self, unfinished: Unfinished) -> None:
        self._state["run"] = unfinished
        self.tools.known, self.tools.answer = unfinished["outputs"], answer_items(unfinished)

    # Beginning

    async def begin(self, agent: str, given: Any) -> dict[str, Any] | None:
        """Know what the user gives: an agent, and a prompt, nothing, or a state with decisions.

        Returns the JSON of the RunState to go on with; None if the run is at its beginning.
        """
        state = self._checked_state()
        ended = state.pop("ended", None)
        self.tools.begin(state["items"])
        decided = self._to_json(given) if isinstance(given, RunState) else None
        if self._is_untold(given, decided, ended):
            state.update(ended)
        if decided is not None:
            await self._decided(decided)
        elif state["run"] is None or not _is_same(given, self._unfinished["prompt"]):
            await self._prompted(given)
        else:
            self._is_kept = True
        self.tools.begin(state["items"])
        self._go_to(self._unfinished)
        self._agent = agent
        kept: dict[str, Any] | None = self._unfinished["state"]
        if kept is not None:
            step = kept.get("current_step")
            if isinstance(step, Mapping) and step.get("type") == _INTERRUPTED:
                self._is_kept = False  # tools come first, which the decisions are of
            self._agent = kept["current_agent"]["name"]
        return kept

    def _checked_state(self) -> dict[str, Any]:
        state = self._run.state
        if state == {}:
            state["items"] = []
        if openai_agents.extract(state) is not None and _is_whole(state):
            state.setdefault("run", None)
            return self._state
        raise AdapterError(
            f"the head of session {self._run.session_id!r} holds no conversation of the OpenAI "
            "Agents SDK; roll it back to a checkpoint that does, or use another session_id"
        )

    def _is_untold(self, given: Any, decided: dict[str, Any] | None, ended: Any) -> bool:
        """Return whether a run had ended, and its process was killed before it could say so."""
        if self._state["run"] is not None or ended is None or not self._run.follows_crash:
            return False
        if decided is None:
            return _is_same(given, ended["run"]["prompt"])
        return is_past(decided, self._state["items"]) and not is_past(decided, ended["items"])

    async def _decided(self, state: dict[str, Any]) -> None:
        """Go on with decisions; a run that they were given to before goes on where it is."""
        known = self._state["run"] or {"prompt": [], "state": None, "outputs": {}}
        if not is_same_moment(state, known["state"]):
            if is_past(state, self._state["items"]):
                raise AdapterError(
                    f"session {self._run.session_id!r} is past this RunState: its calls have "
                    "their answers there, so nothing was run. Give a prompt to go on, or roll the "
                    "session back to before the decision"
                )
            native = openai_agents.extract(self._state)
            if self._state["run"] is not None and native and is_past(state, native.messages):
                self._is_kept = True
                return
        if not self._state["items"]:
            self._state["items"] = item_list(state["original_input"])
        self._state["run"] = {**known, "state": state, "answer": None}
        await self._run.checkpoint("decision")

    async def _prompted(self, given: Any) -> None:
        prompt = given if isinstance(given, str) else [_plain(item) for item in given]
        self._state["items"] = [*self._history(), *item_list(prompt)]
        if not self._state["items"]:
            raise InvalidArgumentError(
                f"session {self._run.session_id!r} has nothing to go on with: give a prompt"
            )
        self._state["run"] = {"prompt": prompt, "state": None, "answer": None, "outputs": {}}
        await self._run.checkpoint("user prompt" if prompt else "again")
        self._is_kept = True

    def _history(self) -> list[Any]:
        """Return the conversation so far; what a run left open in it is answered."""
        native = openai_agents.extract(self._state)
        assert native is not None
        answer = answer_items(self._state["run"] or {})
        return repaired(native.messages, self.tools.journaled(answer))

    @property
    def input(self) -> Any:
        """What a run at its beginning is given: the prompt, behind the conversation so far."""
        prompt, items = self._unfinished["prompt"], self._state["items"]
        return prompt if len(item_list(prompt)) == len(items) else list(items)

    # While it runs

    async def before_model(self, instructions: str | None) -> Answer | None:
        """Keep where the run stands, as a model is about to be asked; an answer that is kept.

        It may be asked again for the same step, where the SDK tries once more.
        """
        self.check()
        self._state["instructions"] = instructions
        if self._is_kept:
            answer: Answer | None = self._unfinished["answer"]
            self._is_kept = answer is None
            return answer
        state = self._to_json(self.result.to_state())
        self._go_to({**self._unfinished, "state": state, "answer": None, "outputs": {}})
        name = state["current_agent"]["name"]
        has_changed, self._agent = name != self._agent, name
        await self._keep("handoff" if has_changed else "tools")
        self._is_kept = True
        return None

    async def answered(self, answer: Answer) -> None:
        """Keep an answer before the SDK acts on it."""
        self._go_to({**self._unfinished, "answer": answer})
        await self._keep("model")
        self._is_kept = False

    async def _keep(self, name: str) -> None:
        try:
            await self._run.checkpoint(name)
        except HoldfastError as error:
            self._problem = error
            raise

    def check(self) -> None:
        """Raise what went wrong in Holdfast itself, which the SDK may have shown to the model."""
        if self._problem is not None:
            raise self._problem
        self._journal.check()

    # Ending

    def finished(self, items: list[Any]) -> None:
        """Know that the run came to its end.

        Its last step is kept too, as the process may be killed before anybody knows of the end.
        """
        ended = {"items": self._state["items"], "run": self._unfinished}
        self._state.update(items=[_plain(item) for item in items], run=None, ended=ended)

    def paused(self, state: RunState[Any, Any]) -> None:
        """Know that the run waits for a decision, or was told to stop behind a turn."""
        data = self._to_json(state)
        if (data.get("current_step") or {}).get("type") == AGAIN:
            data["current_turn"] += 1  # at a safe point it is the turn that begins
        kept = {"state": data, "answer": None, "outputs": {}}
        self._state["run"] = {**self._unfinished, **kept}

    def refused(self) -> None:
        """Know that a guardrail refused the prompt: it is no part of the conversation."""
        items, prompt = self._state["items"], item_list(self._unfinished["prompt"])
        self._state.update(items=items[: len(items) - len(prompt)], run=None)

    def answer_refused(self) -> None:
        """Know that the last answer was not accepted: the model is asked again."""
        self._state["run"] = {**self._unfinished, "answer": None, "outputs": {}}


def _is_whole(state: Mapping[str, Any]) -> bool:
    """Return whether what is kept of runs is what this adapter keeps."""
    run, ended = state.get("run"), state.get("ended")
    if ended is not None and not (isinstance(ended, Mapping) and is_run(ended.get("run"))):
        return False
    return run is None or is_run(run)


def _is_same(given: Any, prompt: Any) -> bool:
    """Return whether what is given goes on with a run: its prompt again, or nothing new."""
    items = [_plain(item) for item in item_list(given)]
    return not items or items == item_list(prompt)


def _plain(item: Any) -> Any:
    return item.model_dump(mode="json", exclude_unset=True) if hasattr(item, "model_dump") else item
