"""The record of a checkpoint, which listings show, and the checksum over all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core.codec import pack
from holdfast.core.safe_repr import briefly
from holdfast.errors import InvalidArgumentError, SchemaMigrationError, SerializationError
from holdfast.model.encoding import COVERED, Values, covered, shown_of
from holdfast.model.fields import FIELDS, LATER, VERSIONS, ContentFields


@dataclass(frozen=True, kw_only=True)
class CheckpointInfo(ContentFields):
    """A checkpoint without its payload, as listings show it."""

    later: Mapping[str, Any] | None = None
    """Fields that a newer Holdfast wrote and this one does not know, as they are stored."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> CheckpointInfo:
        """Return a record that has exactly these fields, and the dict itself; made quickly."""
        info = object.__new__(cls)
        object.__setattr__(info, "__dict__", values)
        return info

    def with_(self, **changes: Any) -> CheckpointInfo:
        """Return the same record with other values, and the version and checksum that fit them."""
        values = {**self.__dict__, **changes}
        if LATER:
            values["schema_version"] = _version_of(values)
        values["checksum"] = checksum(values)
        return CheckpointInfo.of(values)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as ``holdfast log --json`` prints it."""
        return shown_of(self.__dict__)


def checksum(values: Values) -> str:
    """Return the SHA-256 over identity, parent, metadata and payload: all fields of a record."""
    try:
        return hashlib.sha256(pack(covered(values))).hexdigest()
    except SerializationError as error:
        path = error.path.replace(_IN_METADATA, "metadata", 1)
        problem = error.problem.replace(_IN_METADATA, "metadata")
        raise SerializationError(path, problem) from error


_IN_METADATA = f"$[{COVERED.index('metadata')}]"


def checksum_fits(info: CheckpointInfo) -> bool:
    """Return whether a record is as it was when it was saved."""
    return info.checksum == checksum(info.__dict__)


def _version_of(values: Values) -> str:
    """Return a record's version: its own, or the lowest that has all it says if that is later."""
    own: str = values["schema_version"]
    said = [f.since for f in LATER if values[f.name] != f.default]
    if own not in VERSIONS or not said:
        return own
    return max(own, said[-1], key=VERSIONS.index)


def check_known(info: CheckpointInfo) -> None:
    """Refuse a record that says what only a newer Holdfast understands."""
    check_version(info.checkpoint_id, info.schema_version)
    if info.later is not None:
        raise _newer(info.checkpoint_id, f"fields such as {briefly(next(iter(info.later)))}")


def check_version(checkpoint_id: Any, version: Any) -> None:
    """Refuse a schema version that this Holdfast does not know."""
    if version not in VERSIONS:
        raise _newer(checkpoint_id, f"schema version {briefly(version)}")


def _newer(checkpoint_id: Any, what: str) -> SchemaMigrationError:
    return SchemaMigrationError(
        f"checkpoint {briefly(checkpoint_id)} has {what}, this Holdfast reads schema versions up "
        f"to {VERSIONS[-1]!r}: upgrade Holdfast to open it"
    )


def check_record(info: CheckpointInfo) -> None:
    """Refuse a record that was made elsewhere and that no store could give back as it is."""
    values = info.__dict__
    for f in FIELDS:
        value = values[f.name]
        if type(value) not in f.type.types:
            raise InvalidArgumentError(f.type.problem(f.name, value))
        if value is not None:
            f.type.accept(f.name, value)
