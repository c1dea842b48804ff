"""A checkpoint: its record and its payload, which is kept in chunks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any

from holdfast.core.chunk_encoder import Base, Encoded, encode
from holdfast.errors import InvalidArgumentError, SerializationError
from holdfast.model.fields import BY_NAME, FIRST_VERSION, HEADER, Header
from holdfast.model.record import CheckpointInfo, check_version, checksum_fits


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
        """Return the parts that are kept in chunks; unused ones are left out."""
        return make_payload(*(getattr(self, part) for part in PAYLOAD))

    @property
    def content_id(self) -> str:
        """Names the payload by its content, as that of the record does; it is encoded for that."""
        return encode_payload(self.payload(), allow_pickle=True).root.hex()

    def verify_integrity(self) -> bool:
        """Return whether the checksum fits everything the record holds."""
        try:
            encoded = encode_payload(self.payload(), allow_pickle=True)
            return checksum_fits(self.info(encoded.root.hex(), encoded.size))
        except SerializationError:
            return False

    def info(self, content_id: str, size: int) -> CheckpointInfo:
        """Return the record without its payload, which is known by its content id."""
        shared = {name: self.__dict__[name] for name in HEADER}
        return CheckpointInfo.of({**shared, "content_id": content_id, "size": size})

    @classmethod
    def from_parts(cls, info: CheckpointInfo, payload: dict[str, Any]) -> Checkpoint:
        """Put a record and its payload together."""
        shared = {name: info.__dict__[name] for name in HEADER}
        return cls(**shared, **payload)

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the state as it is; ``from_dict`` makes the checkpoint again."""
        data = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in HEADER:
            if both := BY_NAME[name].type.both("text"):
                data[name] = both[0](data[name])
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Checkpoint:
        """Return a checkpoint from what ``as_dict`` gave, also where that had fewer fields."""
        known = {each.name for each in fields(cls)}
        data = {**data}
        check_version(data.get("checkpoint_id"), data.get("schema_version", FIRST_VERSION))
        if unknown := sorted(data.keys() - known):
            raise InvalidArgumentError(f"no such fields in a checkpoint: {', '.join(unknown)}")
        required = {name for name in HEADER if BY_NAME[name].is_required}
        if missing := sorted(required - data.keys()):
            raise InvalidArgumentError(f"a checkpoint needs the fields {', '.join(missing)}")
        for name in HEADER:
            of = BY_NAME[name].type
            if name in data and type(data[name]) not in of.types and (both := of.both("text")):
                data[name] = both[1](data[name])
        return cls(**data)


PAYLOAD = tuple(each.name for each in fields(Checkpoint) if each.name not in HEADER)
"""The parts of a checkpoint that are kept in chunks."""


def make_payload(
    execution_state: Any,
    agent_context: dict[str, Any],
    tasks: Any = (),
    effects: Any = (),
    workspace: Any = None,
) -> dict[str, Any]:
    """Return the payload of a checkpoint; parts that are not used take no room."""
    payload = {"execution_state": execution_state, "agent_context": agent_context}
    if tasks:
        payload["tasks"] = tasks
    if effects:
        payload["effects"] = effects
    if workspace is not None:
        payload["workspace"] = workspace
    return payload


def encode_payload(payload: dict[str, Any], base: Base | None = None, **options: Any) -> Encoded:
    """Return the chunks of a payload; errors name a path in the state as ``$.name``."""
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


_PART = re.compile(r"(?<![^ ])\$\.(execution_state|agent_context)\b")
