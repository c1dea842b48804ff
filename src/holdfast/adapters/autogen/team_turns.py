"""Teams, kept between their turns: a condition that ends nothing is asked there, and only there.

A team runs ahead of the stream that it gives, so that what is saved from the stream resumes with
the wrong speaker. Between two turns, when its conditions are asked, its state is whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from autogen_agentchat.base import OrTerminationCondition, Team, TerminationCondition
from autogen_agentchat.messages import BaseChatMessage, MessageFactory

from holdfast.adapters.autogen.states import AGENT_ID, give, plain, state_in
from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.client import Client, SyncClient
from holdfast.errors import AdapterError, InvalidArgumentError, NotTheHeadError
from holdfast.model import Framework, checked_name

_PATIENCE = 1000
"""How often others on the event loop are let run, until all of a team have got a message."""


class TurnCheckpoints(OnStore, TerminationCondition):
    """Keeps a team after each of its turns; it never ends a run itself.

    ``checkpoints | MaxMessageTermination(20)`` is the team's ``termination_condition``: what is put
    behind it with ``|`` counts on after a restart. ``resume(team)`` comes before every run.
    """

    def __init__(
        self,
        *,
        session_id: str,
        client: Client | SyncClient | None = None,
        url: str | None = None,
        agent_id: str = AGENT_ID,
        conditions: Sequence[TerminationCondition] = (),
        workspace: Any = None,
    ) -> None:
        """Keep the team in the store of a client or a URL; ``HOLDFAST_URL`` if neither is given.

        ``conditions`` are those that end the team's run and are not put behind this one with ``|``:
        after a restart they are shown again what was said in the run.
        """
        self.session_id = checked_name("session_id", session_id)
        self._conditions = list(conditions)
        self._store = AdapterStore.given(client, url)
        self._kept = KeptSessions(self._store, Framework.AUTOGEN, agent_id, workspace)
        self._team: Team | None = None
        self._last: Kept | None = None
        self._is_running = False
        self._turn = 0
        self._since = 0
        """How many messages the team had before this run."""

    def _let_go(self) -> None:
        self._kept.close()

    async def resume(self, team: Team) -> bool:
        """Give a team the state where its session stands; True if a run of it was cut off.

        Then ``team.run()`` goes on without a task. Call it before every run of the team.
        """
        if not isinstance(team, Team):
            raise InvalidArgumentError(f"resume takes a team, not {type(team).__name__}")
        self._team = team
        self._last = await self._store.aio.run(self._kept.head(self.session_id))
        self._is_running, self._turn, self._since = False, 0, 0
        if self._last is None:
            return False
        state = state_in(self._last.state, self.session_id)
        await give(team, state, self.session_id)
        run = self._last.state.get("run") or {}
        self._turn = int(run.get("turn", 0))
        if not run.get("is_open"):
            return False
        self._is_running, self._since = True, int(run["since"])
        await self._show_again(_thread(state)[self._since :])
        return True

    async def _show_again(self, thread: Sequence[Any]) -> None:
        """Have other conditions count what was said before the restart."""
        factory = getattr(self._team, "_message_factory", None) or MessageFactory()
        said = [factory.create(each) for each in thread] if self._conditions else []
        for condition in self._conditions:
            await condition.reset()
            if said:
                await condition(said)
        if any(condition.terminated for condition in self._conditions):
            await self._end()  # it was killed between its last turn and its end
            if self._last is not None and self._team is not None:
                await give(self._team, self._last.state["state"], self.session_id)

    # What the framework asks for

    @property
    def terminated(self) -> bool:
        """Always False: it ends nothing."""
        return False

    async def __call__(self, messages: Sequence[Any]) -> None:
        """Keep the team as it stands after a turn."""
        state = await self._whole_state(messages)
        is_answer = bool(messages) and messages[-1].source in _speakers(state)
        if not self._is_running:
            self._is_running, self._since = True, len(_thread(state)) - len(messages)
        self._turn += is_answer
        # The team counts the turn only when all conditions were asked.
        run = {"is_open": True, "since": self._since, "turn": self._turn}
        name = f"turn {self._turn}: {messages[-1].source}" if is_answer else "task"
        await self._write(_with_turns(state, int(is_answer)), run, name)

    async def reset(self) -> None:
        """Keep that the run has ended: the next task is a new one."""
        if self._is_running:
            await self._end()

    def __or__(self, other: TerminationCondition) -> TerminationCondition:
        return _Together(self, other)

    def __and__(self, other: TerminationCondition) -> TerminationCondition:
        raise InvalidArgumentError(
            "TurnCheckpoints ends nothing, so nothing ends together with it: put the others "
            "behind it with |"
        )

    # Keeping

    async def _end(self) -> None:
        state = plain(await self._of_team().save_state())
        run = {"is_open": False, "since": self._since, "turn": self._turn}
        self._is_running = False
        await self._write(_with_turns(state, None), run, "end")

    async def _write(self, state: dict[str, Any], run: dict[str, Any], name: str) -> None:
        kept = {"state": state, "run": run}
        plan = self._kept.write(self.session_id, kept, name=name, after=self._last)
        try:
            self._last = await self._store.aio.run(plan)
        except NotTheHeadError:
            raise AdapterError(
                f"session {self.session_id!r} was gone on with elsewhere since "
                "checkpoints.resume(team): run the team in one place, and resume it before"
            ) from None

    def _of_team(self) -> Team:
        if self._team is None:
            raise AdapterError(
                f"TurnCheckpoints of session {self.session_id!r} does not know its team: call "
                "await checkpoints.resume(team) before team.run()"
            )
        return self._team

    async def _whole_state(self, messages: Sequence[Any]) -> dict[str, Any]:
        """Return the state of the team when all its members have got what was said last."""
        said = [each for each in messages if isinstance(each, BaseChatMessage)]
        for _ in range(_PATIENCE):
            state: dict[str, Any] = plain(await self._of_team().save_state())
            if not said or _have_got(state, said[-1]):
                return state
            await asyncio.sleep(0)
        raise AdapterError(
            f"not all members of team {self._of_team().name!r} got the last message, so its "
            "state cannot be kept: TurnCheckpoints takes teams whose members hear each other"
        )


class _Together(OrTerminationCondition):
    """Checkpoints, and conditions put behind them, which count on after a restart."""

    def __init__(self, checkpoints: TurnCheckpoints, *others: TerminationCondition) -> None:
        super().__init__(checkpoints, *others)
        self._checkpoints = checkpoints
        self._others = others
        checkpoints._conditions.append(others[-1])

    def __or__(self, other: TerminationCondition) -> TerminationCondition:
        return _Together(self._checkpoints, *self._others, other)

    def __and__(self, other: TerminationCondition) -> TerminationCondition:
        self._checkpoints._conditions.append(other)
        return super().__and__(other)


def _members(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states of the members of a team, by their names."""
    every = state.get("agent_states", {})
    return {name: each for name, each in every.items() if "message_buffer" in each}


def _thread(state: Mapping[str, Any]) -> list[Any]:
    """Return all that was said in a team."""
    for each in state.get("agent_states", {}).values():
        if isinstance(each.get("message_thread"), list):
            thread: list[Any] = each["message_thread"]
            return thread
    return []


def _speakers(state: Mapping[str, Any]) -> dict[str, str]:
    """Return who may speak, each with the member it is: teams inside a team speak as theirs."""
    found: dict[str, str] = {}
    for name, member in _members(state).items():
        inside = member.get("agent_state") or {}
        found |= dict.fromkeys(_speakers(inside), name) | {name: name}
    return found


def _have_got(state: Mapping[str, Any], message: Any) -> bool:
    """Return whether a message waits at all members but the one who said it."""
    speaker = _speakers(state).get(message.source)
    return all(
        any(each.get("id") == message.id for each in member["message_buffer"])
        for name, member in _members(state).items()
        if name != speaker
    )


def _with_turns(state: dict[str, Any], more: int | None) -> dict[str, Any]:
    """Return the state with so many turns more counted by the team; None: begun anew."""
    states = dict(state["agent_states"])
    for name, each in states.items():
        if "current_turn" in each:
            turns = 0 if more is None else each["current_turn"] + more
            states[name] = {**each, "current_turn": turns}
    return {**state, "agent_states": states}
