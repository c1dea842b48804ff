"""Bringing records of earlier schema versions up to the current one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.errors import SchemaMigrationError

CURRENT_SCHEMA_VERSION = "1.0"

Migration = Callable[[dict[str, Any]], dict[str, Any]]

MIGRATIONS: dict[str, tuple[str, Migration]] = {}
"""From each earlier version: the next version, and the function that leads there."""


def migrate_record(
    record: dict[str, Any],
    migrations: dict[str, tuple[str, Migration]] | None = None,
    current: str = CURRENT_SCHEMA_VERSION,
) -> dict[str, Any]:
    """A record's fields at the current schema version."""
    steps = MIGRATIONS if migrations is None else migrations
    version = record.get("schema_version", "1.0")
    seen = {version}
    while version != current:
        if version not in steps:
            raise SchemaMigrationError(
                f"no migration leads from schema version {version!r} to {current!r}: "
                "read it with the Holdfast release that wrote it, or a newer one"
            )
        following, migrate = steps[version]
        if following in seen:
            raise SchemaMigrationError(
                f"the migration from {version!r} leads back to {following!r}"
            )
        record = {**migrate(record), "schema_version": following}
        seen.add(following)
        version = following
    return record
