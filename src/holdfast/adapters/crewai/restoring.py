"""CrewAI's own way back: ``crew.kickoff(from_checkpoint=...)``, which reads a file.

The file is made for this one reading, where nobody else can read it, and is gone afterwards.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crewai.agents.agent_builder import base_agent
from crewai.crew import Crew
from crewai.events.event_bus import crewai_event_bus
from crewai.llms.base_llm import BaseLLM
from crewai.state.checkpoint_config import CheckpointConfig
from crewai.tools import base_tool
from pydantic import PrivateAttr

from holdfast.errors import AdapterError

_STAND_IN = "holdfast-stand-in"
_STAYS = frozenset({"id", "execution_context", "checkpoint", "usage_metrics", "token_usage"})


class StandInLLM(BaseLLM):
    """Holds the place of a model that the program has, until that is put there."""

    llm_type: str = _STAND_IN

    def call(self, *args: Any, **kwargs: Any) -> Any:
        raise AdapterError(
            "the model of this agent is one that only the program has: resume by "
            "crew.kickoff(from_checkpoint=checkpoints.latest()) or checkpoints.resume(crew)"
        )


class KeptConfig(CheckpointConfig):
    """A checkpoint to restore from, which tells us when CrewAI has made its crew of it."""

    _restored: Callable[[Crew], None] | None = PrivateAttr(default=None)
    _remove: Callable[[], object] | None = PrivateAttr(default=None)

    def model_copy(self, *, update: Any = None, deep: bool = False) -> Any:
        """Give the restored crew what is the program's; CrewAI asks for this copy right then."""
        if update == {"restore_from": None} and self._restored is not None:
            for crew in _restored_crews():
                self._restored(crew)
        if self._remove is not None:
            self._remove()
        return super().model_copy(update=update, deep=deep)


def _restored_crews() -> Iterator[Crew]:
    state = crewai_event_bus.runtime_state
    for entity in () if state is None else state.root:
        if isinstance(entity, Crew):
            yield entity


def config_of(
    state: dict[str, Any],
    checkpoint_id: str,
    restored: Callable[[Crew], None] | None = None,
    **options: Any,
) -> KeptConfig:
    """Return a configuration that CrewAI restores a kept state from."""
    directory = Path(tempfile.mkdtemp(prefix="holdfast-crewai-"))  # 0700, a name nobody guesses
    path = directory / f"{checkpoint_id}.json"  # CrewAI takes the id of the checkpoint from it
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({key: value for key, value in state.items() if key != "live"}, file)
    config = KeptConfig(restore_from=str(path), **options)
    config._restored = restored
    config._remove = weakref.finalize(config, shutil.rmtree, directory, ignore_errors=True)
    return config


def crew_given(callback: object) -> Crew | None:
    """Return the one crew of the program that has this callback and is yet to be started.

    CrewAI restores a crew from text alone, and tells nobody of the crew that was asked to resume:
    the one with the tools, models and functions that no text holds.
    """
    given = [
        each
        for each in gc.get_objects()
        if issubclass(type(each), Crew) and each.__dict__.get("task_callback") is callback
    ]
    fresh = [crew for crew in given if crew._kickoff_event_id is None]
    found = fresh or given
    return found[0] if len(found) == 1 else None


def put_live(crew: Crew, live: Crew) -> None:
    """Give a restored crew all that the program's own crew has: agents, tasks, functions."""
    for name, value in live.__dict__.items():
        if name not in _STAYS and not name.startswith("checkpoint_"):
            crew.__dict__[name] = value


def strange_models(entity: dict[str, Any]) -> list[str]:
    """Return whose models are of classes that CrewAI could not make again from text."""
    return [owner for owner, holder, name in _models(entity) if _is_strange(holder[name])]


def with_stand_ins(state: dict[str, Any], entity: dict[str, Any]) -> dict[str, Any]:
    """Return a state in which such models are held by stand-ins."""
    base_agent._LLM_TYPE_REGISTRY.setdefault(_STAND_IN, f"{__name__}.{StandInLLM.__name__}")
    copy: dict[str, Any] = json.loads(json.dumps(entity))
    for _, holder, name in _models(copy):
        if _is_strange(holder[name]):
            holder[name] = {"llm_type": _STAND_IN, "model": str(holder[name].get("model"))}
    entities = [copy if each is entity else each for each in state["entities"]]
    return {**state, "entities": entities}


def check_tools(entity: dict[str, Any], session_id: str) -> None:
    """Refuse tools of classes that the program has not imported: CrewAI would import them."""
    for holder in (*entity["agents"], *entity["tasks"]):
        for tool in holder.get("tools") or ():
            kind = tool.get("tool_type") if isinstance(tool, dict) else None
            if kind not in base_tool._TOOL_TYPE_REGISTRY:
                raise AdapterError(
                    f"session {session_id!r} has a tool of class {kind}, which this program has "
                    "not imported: import it first, or resume with checkpoints.resume(crew)"
                )


def _models(entity: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield every model that a kept crew names: whose it is, and where it is."""
    holders = [("the crew", entity)]
    agents = [*entity["agents"], entity.get("manager_agent")]
    for task in entity["tasks"]:
        agents += [each.get("agent") for each in (task, *_context(task))]
    holders += [(f"agent {a.get('role')!r}", a) for a in agents if isinstance(a, dict)]
    for owner, holder in holders:
        for name in ("llm", "function_calling_llm", "manager_llm", "planning_llm", "chat_llm"):
            if isinstance(holder.get(name), dict):
                yield owner, holder, name


def _context(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    context = task.get("context")
    for each in context if isinstance(context, list) else ():
        yield each
        yield from _context(each)


def _is_strange(model: dict[str, Any]) -> bool:
    kind = model.get("llm_type")
    # What says "base" has a class of its own, and CrewAI would take another in its place.
    return kind is not None and (kind == "base" or kind not in base_agent._LLM_TYPE_REGISTRY)
