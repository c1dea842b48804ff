"""What a prune looks at: on disk, as it may be more than memory holds.

The rules of a policy are asked of each checkpoint; what hangs on what stays is found at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import overload

from holdfast.core.codec import pack, unpack
from holdfast.model import CheckpointInfo
from holdfast.model.decoding import info_of_plain
from holdfast.model.record import plain_of
from holdfast.system.scratch import Scratch

_TABLES = """
    CREATE TABLE seen (
        place   INTEGER PRIMARY KEY, -- the newest comes first
        id      BLOB NOT NULL UNIQUE,
        parent  BLOB,
        session BLOB NOT NULL,
        builds  INTEGER NOT NULL,    -- whether it needs its parent to be whole
        stays   INTEGER NOT NULL,
        size    INTEGER NOT NULL,
        info    BLOB NOT NULL
    );
    CREATE TABLE ranks (session BLOB PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE wanted (id BLOB PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE removed (
        number INTEGER PRIMARY KEY, id BLOB NOT NULL, size INTEGER NOT NULL, info BLOB NOT NULL
    );
"""
_ADD = """
    INSERT OR IGNORE INTO seen (id, parent, session, builds, stays, size, info)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_KEEP_WANTED = "UPDATE seen SET stays = 1 WHERE NOT stays AND id IN wanted"
# An ancestor that stays has to be whole as well, so one leads to the next.
_KEEP_NEEDED = """
    WITH RECURSIVE needed (id) AS (
        SELECT id FROM seen WHERE stays AND parent IS NOT NULL
        UNION
        SELECT p.id FROM needed n JOIN seen c ON c.id = n.id JOIN seen p ON p.id = c.parent
        WHERE c.builds OR c.session <> p.session
    )
    UPDATE seen SET stays = 1 WHERE NOT stays AND id IN needed
"""
_REMOVE = """
    INSERT INTO removed (id, size, info)
    SELECT id, size, info FROM seen WHERE NOT stays ORDER BY place
"""
_PAGE = 500


class Removed(Sequence[CheckpointInfo]):
    """The checkpoints that were or would be removed, the newest first: a list that is on disk."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        ((count, size),) = scratch.ask("SELECT count(*), coalesce(sum(size), 0) FROM removed")
        self._count, self.size = int(count), int(size)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> CheckpointInfo: ...

    @overload
    def __getitem__(self, at: slice) -> list[CheckpointInfo]: ...

    def __getitem__(self, at: int | slice) -> CheckpointInfo | list[CheckpointInfo]:
        if isinstance(at, slice):
            return [self._at(number) for number in range(len(self))[at]]
        return self._at(range(len(self))[at])

    def _at(self, number: int) -> CheckpointInfo:
        ((packed,),) = self._scratch.ask("SELECT info FROM removed WHERE number = ?", number + 1)
        return info_of_plain(unpack(packed, "raw"))

    def __iter__(self) -> Iterator[CheckpointInfo]:
        last = 0
        page = "SELECT number, info FROM removed WHERE number > ? ORDER BY number LIMIT ?"
        while rows := self._scratch.ask(page, last, _PAGE):
            last = rows[-1][0]
            for _, packed in rows:
                yield info_of_plain(unpack(packed, "raw"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self):,} checkpoints>"

    def ids(self) -> Iterator[list[str]]:
        """Give the ids of all, some at a time."""
        last = 0
        page = "SELECT number, id FROM removed WHERE number > ? ORDER BY number LIMIT ?"
        while rows := self._scratch.ask(page, last, _PAGE):
            last = rows[-1][0]
            yield [_name(key) for _, key in rows]


class Candidates:
    """Checkpoints that may be removed, and which of them stay."""

    def __init__(self) -> None:
        self._scratch = Scratch(_TABLES)

    def add(
        self,
        infos: Collection[CheckpointInfo],
        offered: Collection[str],
        keeps: Callable[[CheckpointInfo, int], bool],
    ) -> None:
        """Take in the next checkpoints, the newest first.

        Those that are offered stay, with what they offer. Of the others a rule is asked, which is
        told how many of their session are newer.
        """
        ranks = self._ranks(infos)
        rows = []
        for info in infos:
            session = _session(info)
            stays = info.checkpoint_id in offered or keeps(info, ranks[session])
            ranks[session] += 1
            rows.append(
                (
                    _key(info.checkpoint_id),
                    None if info.parent_id is None else _key(info.parent_id),
                    session,
                    builds_on(info),
                    stays,
                    info.size,
                    pack(plain_of(info.__dict__)),
                )
            )
        self._scratch.write(_ADD, rows)
        self._scratch.write("INSERT OR REPLACE INTO ranks VALUES (?, ?)", ranks.items())
        self._want(i.parent_id for i in infos if i.checkpoint_id in offered and i.parent_id)

    def _ranks(self, infos: Iterable[CheckpointInfo]) -> dict[bytes, int]:
        ranks: dict[bytes, int] = {}
        for session in {_session(info) for info in infos}:
            known = self._scratch.ask("SELECT next FROM ranks WHERE session = ?", session)
            ranks[session] = known[0][0] if known else 0
        return ranks

    def _want(self, ids: Iterable[str]) -> None:
        rows = ((_key(each),) for each in ids)
        self._scratch.write("INSERT OR IGNORE INTO wanted VALUES (?)", rows)

    def last(self) -> str | None:
        """Return the checkpoint that was taken in last."""
        rows = self._scratch.ask("SELECT id FROM seen ORDER BY place DESC LIMIT 1")
        return _name(rows[0][0]) if rows else None

    def drop_last(self) -> None:
        """Forget the checkpoint that was taken in last: it is gone."""
        self._scratch.ask("DELETE FROM seen WHERE place = (SELECT max(place) FROM seen)")

    def going(self) -> Iterator[list[str]]:
        """Give the ids of those that do not stay so far, some at a time."""
        last = 0
        page = "SELECT place, id FROM seen WHERE place > ? AND NOT stays ORDER BY place LIMIT ?"
        while rows := self._scratch.ask(page, last, _PAGE):
            last = rows[-1][0]
            yield [_name(key) for _, key in rows]

    def children(self, infos: Iterable[CheckpointInfo]) -> None:
        """Keep what those of the children need that are no candidates themselves."""
        for child in infos:
            if self._scratch.ask("SELECT 1 FROM seen WHERE id = ?", _key(child.checkpoint_id)):
                continue
            parent = _key(child.parent_id or "")
            rows = self._scratch.ask("SELECT session FROM seen WHERE id = ?", parent)
            if rows and (builds_on(child) or rows[0][0] != _session(child)):
                self._want([child.parent_id or ""])

    def removed(self) -> tuple[Removed, int]:
        """Return what does not stay, and how many do."""
        self._scratch.ask(_KEEP_WANTED)
        self._scratch.ask(_KEEP_NEEDED)
        self._scratch.ask(_REMOVE)
        removed = Removed(self._scratch)
        ((seen,),) = self._scratch.ask("SELECT count(*) FROM seen")
        return removed, seen - len(removed)


def builds_on(info: CheckpointInfo) -> bool:
    """Return whether parts of a checkpoint are kept with its parent alone."""
    named = info.metadata.get("builds_on")
    return type(named) is list and any(isinstance(name, str) for name in named)


def _session(info: CheckpointInfo) -> bytes:
    return _key(info.agent_id) + b"\0" + _key(info.session_id)


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _name(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")
