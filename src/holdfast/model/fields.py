"""The table of the record's fields: a row for each, and the only place that lists them.

A row says what the values of a field are, their default, and the schema version in which the field
came. All else follows from it: the checksum, how every store and bundle writes a record, the checks
of one that is read, the JSON. The fields of the first version stand at fixed places in what is
stored. Later ones are stored by name, and only where they say something; a record is of the lowest
version that has all it says. So what was saved before a field came is as it was, and is read.

A field may be added, with a default. None is removed, and none gets another default or meaning.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from holdfast.model.field_types import (
    COUNT,
    DIGEST,
    FRAMEWORK,
    ID,
    METADATA,
    MOMENT,
    NAME,
    SECONDS,
    SIZE,
    TEXT,
    VERSION,
    FieldType,
    Framework,
)

FIRST_VERSION = "1.0"


def row(
    of: FieldType,
    *,
    since: str = FIRST_VERSION,
    column: bool = False,
    chosen: bool = True,
    covered: bool = True,
) -> MappingProxyType[str, Any]:
    """Return a row of the table.

    Databases keep a ``column`` apart, all else in the body of a row. What is ``chosen`` is given by
    who saves, the rest is found out. The checksum covers all but itself.
    """
    return MappingProxyType(
        {"type": of, "since": since, "column": column, "chosen": chosen, "covered": covered}
    )


# What dataclasses have besides fields is made for those that come of these two.
@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Header:
    """The fields that a checkpoint and its record share: everything but the payload."""

    checkpoint_id: str = field(metadata=row(ID, column=True, chosen=False))
    agent_id: str = field(metadata=row(NAME, column=True))
    session_id: str = field(metadata=row(NAME, column=True))
    parent_id: str | None = field(default=None, metadata=row(NAME.or_none(), column=True))
    framework: Framework = field(default=Framework.CUSTOM, metadata=row(FRAMEWORK))
    schema_version: str = field(default=FIRST_VERSION, metadata=row(VERSION, chosen=False))
    step_index: int = field(default=0, metadata=row(COUNT))
    step_name: str | None = field(default=None, metadata=row(TEXT.or_none()))
    metadata: dict[str, Any] = field(default_factory=dict, metadata=row(METADATA))
    created_at: datetime = field(metadata=row(MOMENT, column=True, chosen=False))
    ttl_seconds: float | None = field(default=None, metadata=row(SECONDS.or_none()))
    handoff_target: str | None = field(default=None, metadata=row(NAME.or_none(), column=True))
    handoff_schema: str | None = field(default=None, metadata=row(TEXT.or_none()))
    checksum: str = field(
        default="", metadata=row(DIGEST, column=True, chosen=False, covered=False)
    )

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
        """Return whether its time to live has passed."""
        end = self.expires_at
        return end is not None and (now or datetime.now(UTC)) >= end

    def _repr_html_(self) -> str:
        from holdfast.model.notebook import card

        return card(self)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ContentFields(Header):
    """The fields that only the record has, which tell of the payload."""

    content_id: str = field(default="", metadata=row(DIGEST, column=True, chosen=False))
    """Names the payload by its content: equal states have equal ids."""
    size: int = field(default=0, metadata=row(SIZE, column=True, chosen=False))
    """Bytes of the payload before compression and sharing."""


class Field(NamedTuple):
    """A row of the table."""

    name: str
    type: FieldType
    since: str
    column: bool
    chosen: bool
    covered: bool
    given_default: Any
    factory: Any

    @property
    def default(self) -> Any:
        """The value in records that do not say it; a new one where it can be changed."""
        return self.given_default if self.factory is MISSING else self.factory()

    @property
    def is_changeable(self) -> bool:
        """Whether its default can be changed, so that each record needs one of its own."""
        return self.factory is not MISSING

    @property
    def is_required(self) -> bool:
        """Whether every record has to say it."""
        return self.given_default is MISSING and self.factory is MISSING

    @property
    def order(self) -> tuple[int, ...]:
        """The version it came in, so that versions can be compared."""
        return tuple(map(int, self.since.split(".")))


_ROWS = [
    Field(each.name, **each.metadata, given_default=each.default, factory=each.default_factory)
    for each in fields(ContentFields)
]
FIRST = tuple(each for each in _ROWS if each.since == FIRST_VERSION)
"""The fields that every record has, at fixed places."""
LATER = tuple(
    sorted((each for each in _ROWS if each.since != FIRST_VERSION), key=lambda f: f.order)
)
"""Those that came since, the earliest first."""
FIELDS = (*FIRST, *LATER)
BY_NAME = {each.name: each for each in FIELDS}
HEADER = tuple(each.name for each in fields(Header))
RICH = tuple(each.name for each in FIELDS if each.type.is_rich)
"""Those that may hold values of any type."""
VERSIONS = tuple(dict.fromkeys(each.since for each in FIELDS))
"""The schema versions that can be read, the earliest first."""
