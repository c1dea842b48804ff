"""What a verify has looked at: on disk, as it may be more than memory holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from holdfast.model import CheckpointInfo
from holdfast.system.scratch import Scratch
from holdfast.verbs.chains import shown

Found = tuple[str, str]
"""A checkpoint or the name of notes, and what is to be said of it."""

_PARENTS, _NOTES = "parents", "notes"
_PAGE = 500

_TABLES = """
    CREATE TABLE chunks (name BLOB PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE ends (id BLOB PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE scopes (scope BLOB PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE records (id BLOB PRIMARY KEY, session BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE following (
        id BLOB PRIMARY KEY, next BLOB NOT NULL, key TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE ways ( -- which checkpoint leads to which, by parents or by notes
        by TEXT NOT NULL, id BLOB NOT NULL, next BLOB NOT NULL, walk INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (by, id)
    ) WITHOUT ROWID;
"""
_ASTRAY = """
    SELECT f.id, f.key, f.next FROM following f
    JOIN records a ON a.id = f.id JOIN records b ON b.id = f.next WHERE a.session <> b.session
"""
_ALONE = """
    SELECT scope FROM scopes WHERE substr(scope, 1, 1) <> x'2f'
        AND scope NOT IN (SELECT id FROM records) ORDER BY scope
"""
_LEAD = "INSERT OR REPLACE INTO ways (by, id, next) VALUES (?, ?, ?)"
_STARTS = """
    SELECT id FROM ways WHERE by = ? AND id > ? AND (next = id OR (next > id) = ?)
    ORDER BY id LIMIT ?
"""
_STEP = "SELECT next, walk FROM ways WHERE by = ? AND id = ?"
_NOWHERE = """
    SELECT id, key, next FROM following
    WHERE id IN (SELECT id FROM records) AND next NOT IN (SELECT id FROM records)
"""


class LookedAt:
    """Chunks with what is wrong with them, and what leads to what."""

    def __init__(self) -> None:
        self._scratch = Scratch(_TABLES)

    def reasons(self, names: Iterable[bytes]) -> dict[bytes, str]:
        """Return what is wrong with those of the chunks that were looked at; nothing is ""."""
        ask = "SELECT reason FROM chunks WHERE name = ?"
        return {name: rows[0][0] for name in names if (rows := self._scratch.ask(ask, name))}

    def add_chunks(self, reasons: Mapping[bytes, str]) -> None:
        """Remember what is wrong with chunks."""
        self._scratch.write("INSERT OR REPLACE INTO chunks VALUES (?, ?)", reasons.items())

    def ended_at(self, checkpoint_id: str) -> bool:
        """Return whether a page ended so before, and remember that one did."""
        key = (_key(checkpoint_id),)
        is_known = bool(self._scratch.ask("SELECT 1 FROM ends WHERE id = ?", *key))
        self._scratch.write("INSERT OR IGNORE INTO ends VALUES (?)", [key])
        return is_known

    def add(self, infos: Collection[CheckpointInfo]) -> None:
        """Remember where records are, and where they lead to."""
        rows = (
            (_key(i.checkpoint_id), _key(i.agent_id) + b"\0" + _key(i.session_id)) for i in infos
        )
        self._scratch.write("INSERT OR REPLACE INTO records VALUES (?, ?)", rows)
        ways = ((_PARENTS, _key(i.checkpoint_id), _key(i.parent_id)) for i in infos if i.parent_id)
        self._scratch.write(_LEAD, ways)

    def add_scopes(self, scopes: Collection[str]) -> None:
        """Remember what has notes."""
        rows = ((_key(scope),) for scope in scopes)
        self._scratch.write("INSERT OR IGNORE INTO scopes VALUES (?)", rows)

    def follow(self, scope: str, target: str, key: str) -> None:
        """Remember what a note says that followed a checkpoint; the last one holds."""
        ids = (_key(scope), _key(target))
        self._scratch.write("INSERT OR REPLACE INTO following VALUES (?, ?, ?)", [(*ids, key)])
        self._scratch.write(_LEAD, [(_NOTES, *ids)])

    def astray(self) -> Iterator[Found]:
        """Give circles, and notes that lead to another session."""
        for ids in self._circles(_PARENTS):
            yield from ((each, shown(ids, "its parents lead")) for each in ids)
        for ids in self._circles(_NOTES):
            what = "the notes of what followed it lead"
            yield from ((each, shown(ids, what)) for each in ids)
        for scope, key, target in self._scratch.ask(_ASTRAY):
            yield _name(scope), f"its note {key!r} leads to {_name(target)}, of another session"

    def loose(self) -> Iterator[Found]:
        """Give notes whose checkpoint is gone, and those that lead to one that is."""
        for (scope,) in self._scratch.ask(_ALONE):
            yield _name(scope), "it has notes and is not there itself: gc() removes them"
        for scope, key, target in self._scratch.ask(_NOWHERE):
            yield _name(scope), f"its note {key!r} leads to {_name(target)}, which was removed"

    def _circles(self, by: str) -> Iterator[list[str]]:
        """Give every circle of what leads to what.

        Ids grow with time, so that nearly all parents are smaller, and what followed is greater:
        a circle has to turn somewhere, and only there is anything followed.
        """
        walk, last = 0, b""
        while starts := self._scratch.ask(_STARTS, by, last, by == _PARENTS, _PAGE):
            last = starts[-1][0]
            for (start,) in starts:
                walk += 1
                met = self._walk(by, start, walk)
                if met is not None:
                    yield self._circle(by, met)

    def _walk(self, by: str, start: bytes, walk: int) -> bytes | None:
        """Follow what leads on from a checkpoint; return one of a circle if that is a new one."""
        at = start
        while step := self._scratch.ask(_STEP, by, at):
            ((following, passed),) = step
            if passed:
                return at if passed == walk else None
            self._scratch.ask("UPDATE ways SET walk = ? WHERE by = ? AND id = ?", walk, by, at)
            at = following
        return None

    def _circle(self, by: str, start: bytes) -> list[str]:
        ids, at = [_name(start)], self._scratch.ask(_STEP, by, start)[0][0]
        while at != start:
            ids.append(_name(at))
            at = self._scratch.ask(_STEP, by, at)[0][0]
        return ids

    def close(self) -> None:
        """Let go of the file."""
        self._scratch.close()


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _name(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")
