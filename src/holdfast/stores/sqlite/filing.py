"""Whether the SQLite store finds records where it filed their sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator

from holdfast.model import CheckpointInfo
from holdfast.stores.shared.misfiled import asked_for, reasons
from holdfast.stores.shared.tags import numbers_of
from holdfast.stores.sqlite import schema as sql
from holdfast.stores.sqlite.reads import batches
from holdfast.stores.sqlite.rows import key_of, name_of


def misfiled(
    db: sqlite3.Connection, infos: Collection[CheckpointInfo]
) -> Iterator[tuple[str, str]]:
    """Give those of some records that would not be found, and why not; what is gone is not."""
    for some in batches(list(infos)):
        known = {info.checkpoint_id: info for info in some}
        keys = list(map(key_of, known))
        rows = db.execute(sql.FILED_AT.format(",".join("?" * len(keys))), keys).fetchall()
        sessions: dict[int, list[tuple[CheckpointInfo, int, object]]] = {}
        for key, place, session, touched in rows:
            info = asked_for(known, name_of(key))
            sessions.setdefault(session, []).append((info, place, touched))
        for session, found in sessions.items():
            filed = _filed(db, session, [info for info, _, _ in found])
            for info, place, touched in found:
                yield from reasons(info, place, touched, filed)


def _filed(db: sqlite3.Connection, session: int, infos: list[CheckpointInfo]) -> set[int]:
    """Return under which of the numbers of the tags of its records a session is filed."""
    wanted = {
        number
        for info in infos
        for name, value in info.metadata.items()
        for number in numbers_of(name, value)
    }
    filed: set[int] = set()
    for some in batches(list(wanted)):
        statement = sql.FILED_UNDER.format(",".join("?" * len(some)))
        filed.update(number for (number,) in db.execute(statement, (*some, session)))
    return filed
