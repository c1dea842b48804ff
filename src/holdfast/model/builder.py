"""Making new checkpoints: of values that a caller gave, each checked."""

from __future__ import annotations

from typing import Any, Self

from holdfast.ids import moment, new_id, new_stamp
from holdfast.model.checkpoint import PAYLOAD, Checkpoint, encode_payload, make_payload
from holdfast.model.checks import checked_name
from holdfast.model.field_types import Framework
from holdfast.model.fields import FIELDS
from holdfast.model.record import CheckpointInfo


class CheckpointBuilder:
    """Builds a checkpoint step by step.

    >>> from holdfast import CheckpointBuilder, Framework
    >>> checkpoint = (
    ...     CheckpointBuilder("coder", Framework.CUSTOM)
    ...     .session("fix-42")
    ...     .step(3, name="after_tests")
    ...     .execution_state({"messages": ["hello"]})
    ...     .tag(branch="main")
    ...     .ttl(3600)
    ...     .build()
    ... )
    >>> checkpoint.step_name
    'after_tests'
    """

    def __init__(self, agent_id: str, framework: Framework | str = Framework.CUSTOM) -> None:
        self._fields: dict[str, Any] = {
            "agent_id": agent_id,
            "framework": framework,
            "session_id": None,
        }

    def _set(self, **values: Any) -> Self:
        self._fields.update(values)
        return self

    def session(self, session_id: str) -> Self:
        """Name the session; without this a new one is begun."""
        return self._set(session_id=session_id)

    def parent(self, parent_id: str | None) -> Self:
        """Name the checkpoint this one follows."""
        return self._set(parent_id=parent_id)

    def step(self, index: int, name: str | None = None) -> Self:
        """Give the position in the run, and its name."""
        return self._set(step_index=index, step_name=name)

    def execution_state(self, state: Any) -> Self:
        """Give the program's or framework's own state."""
        return self._set(execution_state=state)

    def context(self, context: dict[str, Any]) -> Self:
        """Give the developer's own dict, kept apart from the state."""
        return self._set(agent_context=context)

    def tasks(self, tasks: Any) -> Self:
        """Give the plan, step by step."""
        return self._set(tasks=tasks)

    def effects(self, effects: Any) -> Self:
        """Say what tool calls did to the world."""
        return self._set(effects=effects)

    def workspace(self, workspace: Any) -> Self:
        """Give the snapshot of the agent's directory."""
        return self._set(workspace=workspace)

    def tag(self, **tags: Any) -> Self:
        """Add to the metadata that listings are filtered by."""
        return self._set(metadata={**self._fields.get("metadata", {}), **tags})

    def ttl(self, seconds: float | None) -> Self:
        """Expire after that many seconds."""
        return self._set(ttl_seconds=seconds)

    def handoff(self, target_agent_id: str, schema: str | None = None) -> Self:
        """Offer it to another agent; ``schema`` names the contract, if there is one."""
        return self._set(handoff_target=target_agent_id, handoff_schema=schema or None)

    def build(self) -> Checkpoint:
        """Return the finished checkpoint, with an id, the time and a checksum."""
        given = {k: v for k, v in self._fields.items() if k not in PAYLOAD}
        info = new_info(**given)
        unused: dict[str, Any] = {"execution_state": {}, "agent_context": {}}
        chosen = {k: v for k, v in self._fields.items() if k in PAYLOAD}
        payload = make_payload(**{**unused, **chosen})
        encoded = encode_payload(payload)
        info = info.with_(content_id=encoded.root.hex(), size=encoded.size)
        return Checkpoint.from_parts(info, payload)


def new_info(*, agent_id: str, session_id: str | None = None, **chosen: Any) -> CheckpointInfo:
    """Return a record with a new id and the present time, of the fields that its maker chose.

    Each is checked. Without a session it begins one.
    """
    checkpoint_id, now = new_stamp()
    values = _DEFAULTS.copy()
    values["checkpoint_id"], values["created_at"] = checkpoint_id, moment(now)
    values["agent_id"] = checked_name("agent_id", agent_id)
    values["session_id"] = (
        new_id() if session_id is None else checked_name("session_id", session_id)
    )
    for name, value in chosen.items():
        try:
            accept = _ACCEPT[name]
        except KeyError:
            raise TypeError(f"new_info() got an unexpected field {name!r}") from None
        if value is not None or name not in _OPTIONAL:
            values[name] = accept(name, value)
    for f in _CHANGEABLE:
        if f.name not in chosen:
            values[f.name] = f.default
    return CheckpointInfo.of(values)


_DEFAULTS: dict[str, Any] = {f.name: None if f.is_required else f.default for f in FIELDS}
_ACCEPT = {f.name: f.type.accept for f in FIELDS if f.chosen and not f.is_required}
_OPTIONAL = frozenset(f.name for f in FIELDS if type(None) in f.type.types)
_CHANGEABLE = [f for f in FIELDS if f.is_changeable]
