"""The record of a checkpoint: how it is written, and the checksum over all of it.

Every store, bundle, checksum and JSON writes it here. Databases keep a list of *packed* values:
some of them in columns, the rest as the body of a row. Documents and bundles are dicts: of *text*
for people, of *plain* values otherwise. In each, what later versions added comes behind, by name
and plain, so that a Holdfast which does not know a field can carry it along and prove it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from holdfast.core.codec import pack
from holdfast.core.safe_repr import briefly
from holdfast.errors import InvalidArgumentError, SchemaMigrationError, SerializationError
from holdfast.model.field_types import Form
from holdfast.model.fields import FIELDS, FIRST, LATER, VERSIONS, ContentFields, Field

Values = Mapping[str, Any]
"""The fields of a record by name."""


def _choosing(fields: Sequence[Field], form: Form) -> Callable[[Values], list[Any]]:
    """Return a function that gives these fields of a record, and what it says of later ones."""
    get = itemgetter(*(f.name for f in fields))
    writes = [(at, both[0]) for at, f in enumerate(fields) if (both := f.type.both(form))]

    def choose(values: Values) -> list[Any]:
        chosen = [*get(values)]
        for at, write in writes:
            chosen[at] = write(chosen[at])
        if (LATER or "later" in values) and (later := _later(values)):
            chosen.append(later)
        return chosen

    return choose


NAMES = tuple(f.name for f in FIRST)
COVERED = tuple(f.name for f in FIRST if f.covered)

packed_of = _choosing(FIRST, "packed")
"""Return a record as a list; its id comes first."""

body_of = _choosing([f for f in FIRST if not f.column], "packed")
"""Return what of a record has no column of its own."""

covered = _choosing([f for f in FIRST if f.covered], "plain")
"""Return what the checksum of a record covers: all that its schema version has.

That is the fields of the first version, and what the record says of later ones. A record that says
nothing of those has the checksum that it had before they came.
"""

_plain = _choosing(FIRST, "plain")
_text = _choosing(FIRST, "text")
_all_text = _choosing(FIELDS, "text")
_ALL_NAMES = tuple(f.name for f in FIELDS)


def plain_of(values: Values) -> dict[str, Any]:
    """Return a record as a bundle holds it."""
    return dict(zip(NAMES, _plain(values), strict=False)) | _later(values)


def text_of(values: Values) -> dict[str, Any]:
    """Return a record as a document holds it."""
    return dict(zip(NAMES, _text(values), strict=False)) | _later(values)


def shown_of(values: Values) -> dict[str, Any]:
    """Return all fields that this Holdfast knows as people read them, said or not."""
    return dict(zip(_ALL_NAMES, _all_text(values), strict=False))


def _later(values: Values) -> dict[str, Any]:
    """Return what a record says of later versions, in the order of names; mostly nothing."""
    later = values.get("later")
    said = {} if later is None else dict(later)
    for f in LATER:
        value = values[f.name]
        if value != f.default:
            said[f.name] = f.type.plain[0](value) if f.type.plain else value
    return dict(sorted(said.items())) if said else said


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
