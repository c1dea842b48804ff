"""The record: Checkpoint, CheckpointInfo, CheckpointBuilder, Framework."""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any, Self

from holdfast.core.chunk_encoder import Base, Encoded, encode
from holdfast.core.codec import pack
from holdfast.core.migrations import CURRENT_SCHEMA_VERSION, migrate_record
from holdfast.core.safe_repr import briefly
from holdfast.errors import InvalidArgumentError, SerializationError
from holdfast.ids import new_id, new_stamp


class Framework(str, Enum):  # noqa: UP042  (StrEnum would lose the repr users compare)
    """The framework an agent runs on.

    >>> from holdfast import Framework
    >>> Framework("langgraph")
    <Framework.LANGGRAPH: 'langgraph'>
    """

    LANGGRAPH = "langgraph"
    CREWAI = "crewai"
    AUTOGEN = "autogen"
    OPENAI_AGENTS = "openai_agents"
    CLAUDE_AGENT_SDK = "claude_agent_sdk"
    PYDANTIC_AI = "pydantic_ai"
    AGENT_FRAMEWORK = "agent_framework"
    GOOGLE_ADK = "google_adk"
    STRANDS = "strands"
    LLAMA_INDEX = "llama_index"
    AGENTSCOPE = "agentscope"
    SMOLAGENTS = "smolagents"
    CUSTOM = "custom"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Header:
    """What listings need of a checkpoint: everything but its payload."""

    checkpoint_id: str
    agent_id: str
    session_id: str
    parent_id: str | None = None
    framework: Framework = Framework.CUSTOM
    schema_version: str = CURRENT_SCHEMA_VERSION
    step_index: int = 0
    step_name: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    created_at: datetime
    ttl_seconds: float | None = None
    handoff_target: str | None = None
    handoff_schema: str | None = None
    checksum: str = ""

    @property
    def expires_at(self) -> datetime | None:
        """When it expires, or None if it is kept for good."""
        if self.ttl_seconds is None:
            return None
        try:
            return self.created_at + timedelta(seconds=self.ttl_seconds)
        except OverflowError:
            return datetime.max.replace(tzinfo=UTC)

    def is_expired(self, now: datetime | None = None) -> bool:
        """Whether its time to live has passed."""
        end = self.expires_at
        return end is not None and (now or datetime.now(UTC)) >= end


@dataclass(frozen=True, kw_only=True)
class CheckpointInfo(Header):
    """A checkpoint without its payload, as listings show it."""

    content_id: str = ""
    """Names the payload by its content: equal states have equal ids."""
    size: int = 0
    """Bytes of the payload before compression and sharing."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> CheckpointInfo:
        """A record that has exactly these fields, and the dict itself; made quickly."""
        info = object.__new__(cls)
        object.__setattr__(info, "__dict__", values)
        return info

    def with_(self, **changes: Any) -> CheckpointInfo:
        """The same record with other values, and the checksum that fits them."""
        values = {**self.__dict__, **changes}
        return CheckpointInfo.of({**values, "checksum": checksum(values)})

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as ``holdfast log --json`` prints it."""
        return _as_dict(self)


_HEADER = tuple(f.name for f in fields(Header))

PAYLOAD = ("execution_state", "agent_context", "tasks", "effects", "workspace")
"""The parts of a checkpoint that are kept in chunks."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Header):
    """An immutable record of an agent at one moment: who, where, what, when, and a checksum.

    >>> from holdfast import CheckpointBuilder
    >>> checkpoint = CheckpointBuilder("coder").execution_state({"step": 1}).build()
    >>> checkpoint.verify_integrity()
    True
    """

    execution_state: Any = field(default_factory=dict)
    agent_context: dict[str, Any] = field(default_factory=dict)
    tasks: Any = ()
    effects: Any = ()
    workspace: Any = None

    def payload(self) -> dict[str, Any]:
        """The parts that are kept in chunks; unused ones are left out."""
        return make_payload(*(getattr(self, part) for part in PAYLOAD))

    @property
    def content_id(self) -> str:
        """Names the payload by its content, as that of the record does; it is encoded for that."""
        return encode_payload(self.payload(), allow_pickle=True).root.hex()

    def verify_integrity(self) -> bool:
        """Whether the checksum fits everything the record holds."""
        try:
            encoded = encode_payload(self.payload(), allow_pickle=True)
            return checksum_fits(self.info(encoded.root.hex(), encoded.size))
        except SerializationError:
            return False

    def info(self, content_id: str, size: int) -> CheckpointInfo:
        """The record without its payload, which is known by its content id."""
        shared = {name: self.__dict__[name] for name in _HEADER}
        return CheckpointInfo.of({**shared, "content_id": content_id, "size": size})

    @classmethod
    def from_parts(cls, info: CheckpointInfo, payload: dict[str, Any]) -> Checkpoint:
        """Put a record and its payload together."""
        shared = {name: info.__dict__[name] for name in _HEADER}
        return cls(**shared, **payload)

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the state as it is; ``from_dict`` makes the checkpoint again."""
        return _as_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Checkpoint:
        """A checkpoint from what ``as_dict`` gave, brought up to the current schema version."""
        data = migrate_record(dict(data))
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise InvalidArgumentError(f"no such fields in a checkpoint: {', '.join(unknown)}")
        missing = sorted({"checkpoint_id", "agent_id", "session_id", "created_at"} - set(data))
        if missing:
            raise InvalidArgumentError(f"a checkpoint needs the fields {', '.join(missing)}")
        data["framework"] = as_framework(data.get("framework", Framework.CUSTOM))
        if isinstance(data["created_at"], str):
            data["created_at"] = datetime.fromisoformat(data["created_at"])
        return cls(**data)


def _as_dict(record: Header) -> dict[str, Any]:
    data = {f.name: getattr(record, f.name) for f in fields(record)}
    data["framework"] = record.framework.value
    data["created_at"] = record.created_at.isoformat()
    return data


def make_payload(
    execution_state: Any,
    agent_context: dict[str, Any],
    tasks: Any = (),
    effects: Any = (),
    workspace: Any = None,
) -> dict[str, Any]:
    """The payload of a checkpoint; parts that are not used take no room."""
    payload = {"execution_state": execution_state, "agent_context": agent_context}
    if tasks:
        payload["tasks"] = tasks
    if effects:
        payload["effects"] = effects
    if workspace is not None:
        payload["workspace"] = workspace
    return payload


def encode_payload(payload: dict[str, Any], base: Base | None = None, **options: Any) -> Encoded:
    """The chunks of a payload; errors name a path in the state as ``$.name``."""
    try:
        return encode(payload, base, **options)
    except SerializationError as error:
        show_own_path(error)
        raise


def show_own_path(error: SerializationError) -> None:
    """Name a path in a payload as users know it: in the state, or in the context."""

    def shown(found: re.Match[str]) -> str:
        return {"execution_state": "$", "agent_context": "context"}[found[1]]

    path = _PART.sub(shown, error.path, count=1)
    problem = _PART.sub(shown, error.problem)  # a circular reference has another end
    error.path, error.problem, error.args = path, problem, (f"{path}: {problem}",)


_COVERED = (*(name for name in _HEADER if name != "checksum"), "content_id", "size")
_PART = re.compile(r"(?<![^ ])\$\.(execution_state|agent_context)\b")
_IN_METADATA = f"$[{_COVERED.index('metadata')}]"


def checksum(values: dict[str, Any]) -> str:
    """SHA-256 over identity, parent, metadata and payload: all fields of a record."""
    covered = [values[name] for name in _COVERED]
    covered[_FRAMEWORK] = values["framework"].value
    covered[_CREATED] = microseconds(values["created_at"])
    try:
        return hashlib.sha256(pack(covered)).hexdigest()
    except SerializationError as error:
        path = error.path.replace(_IN_METADATA, "metadata", 1)
        problem = error.problem.replace(_IN_METADATA, "metadata")
        raise SerializationError(path, problem) from error


_FRAMEWORK, _CREATED = _COVERED.index("framework"), _COVERED.index("created_at")


def checksum_fits(info: CheckpointInfo) -> bool:
    """Whether a record is as it was when it was saved."""
    return info.checksum == checksum(info.__dict__)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(since_epoch: int) -> datetime:
    """The UTC time of that many microseconds since 1970."""
    return _EPOCH + timedelta(0, 0, since_epoch)


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
        """The checkpoint this one follows."""
        return self._set(parent_id=parent_id)

    def step(self, index: int, name: str | None = None) -> Self:
        """The position in the run, and its name."""
        return self._set(step_index=index, step_name=name)

    def execution_state(self, state: Any) -> Self:
        """The program's or framework's own state."""
        return self._set(execution_state=state)

    def context(self, context: dict[str, Any]) -> Self:
        """The developer's own dict, kept apart from the state."""
        return self._set(agent_context=context)

    def tasks(self, tasks: Any) -> Self:
        """The plan, step by step."""
        return self._set(tasks=tasks)

    def effects(self, effects: Any) -> Self:
        """What tool calls did to the world."""
        return self._set(effects=effects)

    def workspace(self, workspace: Any) -> Self:
        """The snapshot of the agent's directory."""
        return self._set(workspace=workspace)

    def tag(self, **tags: Any) -> Self:
        """Add to the metadata that listings are filtered by."""
        return self._set(metadata={**self._fields.get("metadata", {}), **tags})

    def ttl(self, seconds: float | None) -> Self:
        """Expire after that many seconds."""
        return self._set(ttl_seconds=seconds)

    def handoff(self, target_agent_id: str, schema: str | None = None) -> Self:
        """Offer it to another agent."""
        return self._set(
            handoff_target=target_agent_id, handoff_schema=schema or CURRENT_SCHEMA_VERSION
        )

    def build(self) -> Checkpoint:
        """The finished checkpoint, with an id, the time and a checksum."""
        given = {k: v for k, v in self._fields.items() if k not in PAYLOAD}
        info = new_info(**given)
        unused: dict[str, Any] = {"execution_state": {}, "agent_context": {}}
        chosen = {k: v for k, v in self._fields.items() if k in PAYLOAD}
        payload = make_payload(**{**unused, **chosen})
        encoded = encode_payload(payload)
        info = info.with_(content_id=encoded.root.hex(), size=encoded.size)
        return Checkpoint.from_parts(info, payload)


def new_info(
    *,
    agent_id: str,
    session_id: str | None = None,
    parent_id: str | None = None,
    framework: Framework | str = Framework.CUSTOM,
    step_index: int = 0,
    step_name: str | None = None,
    metadata: dict[str, Any] | None = None,
    ttl_seconds: float | None = None,
    handoff_target: str | None = None,
    handoff_schema: str | None = None,
) -> CheckpointInfo:
    """A record with a new id and the present time, its fields checked."""
    if not is_count(step_index) or step_index.bit_length() > _NUMBER_BITS:
        raise InvalidArgumentError(f"step_index is a number from 0, not {briefly(step_index)}")
    if step_name is not None and not isinstance(step_name, str):
        raise InvalidArgumentError(f"step_name is a string, not {type(step_name).__name__}")
    checkpoint_id, now = new_stamp()
    return CheckpointInfo.of(
        {
            "checkpoint_id": checkpoint_id,
            "agent_id": checked_name("agent_id", agent_id),
            "session_id": new_id()
            if session_id is None
            else checked_name("session_id", session_id),
            "parent_id": None if parent_id is None else checked_name("parent_id", parent_id),
            "framework": as_framework(framework),
            "schema_version": CURRENT_SCHEMA_VERSION,
            "step_index": int(step_index),
            "step_name": None if step_name is None else str.__str__(step_name),
            "metadata": dict(metadata or {}),
            "created_at": moment(now),
            "ttl_seconds": _checked_ttl(ttl_seconds),
            "handoff_target": (
                None if handoff_target is None else checked_name("handoff_target", handoff_target)
            ),
            "handoff_schema": handoff_schema,
            "checksum": "",
            "content_id": "",
            "size": 0,
        }
    )


_NUMBER_BITS = 2048
"""Of the numbers in a record, which a readable document writes in decimal."""


def is_count(value: object) -> bool:
    """Whether a value is a whole number from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def checked_name(what: str, value: object) -> str:
    """An agent's, session's or checkpoint's name; anything but a readable string is refused."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{what} is a string, not {type(value).__name__}")
    if problem := _problem_of_name(value):
        raise InvalidArgumentError(f"{what} {problem}")
    return str.__str__(value)  # of an enum's member its value, not its name


@lru_cache(4096)  # the same few names come again with every save
def _problem_of_name(value: str) -> str:
    if not value.strip():
        return "is empty: give it a name"
    if len(value) > 1024 or "\x00" in value:
        return "is longer than 1024 characters or holds a NUL"
    try:
        value.encode()
    except UnicodeEncodeError:
        return f"holds a lone surrogate: {value!r}"
    return ""


def as_framework(value: Framework | str) -> Framework:
    """The framework of that name."""
    if type(value) is Framework:
        return value
    try:
        return Framework(value)
    except ValueError:
        names = ", ".join(framework.value for framework in Framework)
        raise InvalidArgumentError(f"no framework {value!r}; there are {names}") from None


def _checked_ttl(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise InvalidArgumentError(f"ttl_seconds is a number, not {type(seconds).__name__}")
    if not 0 <= seconds <= sys.float_info.max:  # nor is nan
        raise InvalidArgumentError(
            f"ttl_seconds is {briefly(seconds)}: give a number of seconds from 0"
        )
    return seconds
