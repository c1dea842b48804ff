"""What the Redis store writes, as plans: each yields commands and is sent their replies."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import starmap
from typing import Any

import ormsgpack

from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    FencedError,
    InvalidArgumentError,
    MissingBaseError,
    MissingParentError,
    NoteExistsError,
    NotTheHeadError,
    StoreError,
    StoreFormatError,
)
from holdfast.model import microseconds
from holdfast.stores.base import Collected, Commit, Note, NotesOnly
from holdfast.stores.redis.keys import (
    FORMAT,
    OLDER,
    SEQ,
    Keys,
    as_bytes,
    as_text,
    id_at,
    numbers_filed,
    parted,
    touched_by,
)
from holdfast.stores.redis.reads import (
    BATCH,
    WRITTEN,
    RedisPlan,
    RedisReads,
    batches,
    members_of,
    page_of,
)
from holdfast.stores.redis.records import IndexEntry, pack_note, pack_record, unpack_record
from holdfast.stores.redis.scripts import (
    CLOCK,
    DOOM,
    DROP,
    FENCE,
    FORGET,
    REFILE,
    REMOVE,
    SETTLE,
    WRITE,
    RedisCommand,
    ScriptCall,
)
from holdfast.system import crash_points

AFTERLIFE = 24 * 3600 * 1000
"""Milliseconds for which Redis still keeps what has expired, for listings that ask for it."""
_AT_ONCE = 4 * 2**20
"""Up to so many bytes of chunks go with the record, on one server."""
_BYTES = 8 * 2**20
_ATTEMPTS = 5
_REFILE_TELLS = 3
"""Arguments of ``REFILE`` before the values that they name by their number."""
_SESSIONS, _RECORDS = b"s", b"r"
"""What older stores are filed by: where that stands begins with it."""

Tags = dict[tuple[bytes, ...], None]
"""The numbers of tags, in the order in which they were met."""


class CommitCall:
    """What the script that writes is to do; it names keys and values by their number."""

    def __init__(self, keys: Keys) -> None:
        kept = (keys.format, keys.chunks, keys.totals, keys.last, keys.notes, keys.expiry)
        always = (*kept, keys.wake, keys.touched, keys.tags, keys.filed)
        self._keys = {key: number for number, key in enumerate(always, 1)}
        self._values: dict[bytes, int] = {}
        self._own: list[tuple[int, int, str, bool]] = []
        self._needs: dict[int, str] = {}
        self._entries: list[tuple[int, int, int, int]] = []
        self._told: dict[str, Any] = {}
        self._notes: list[tuple[int, int, int, int, str]] = []
        self.size: int | bool = False

    def _key(self, key: bytes) -> int:
        return self._keys.setdefault(key, len(self._keys) + 1)

    def _value(self, value: bytes) -> int:
        return self._values.setdefault(value, len(self._values) + 2)

    def own(self, key: bytes, value: bytes, expires: int | None, numbered: bool = False) -> None:
        """Set a key that must not be there yet."""
        self._own.append((self._key(key), self._value(value), _until(expires), numbered))

    def need(self, key: bytes, what: str) -> None:
        """Answer this word if there is no such key."""
        self._needs.setdefault(self._key(key), what)

    def enter(self, key: bytes, score: int, member: bytes, at: int) -> None:
        """Put a member in a sorted set; the place of the record begins at a byte of it, if any."""
        self._entries.append((self._key(key), score, self._value(member), at))

    def unless(self, key: bytes) -> None:
        """Refuse all if there is such a key."""
        self._told["unless"] = self._key(key)

    def place(self, session: bytes, place: bytes, behind: bytes | None) -> None:
        """Place a record behind all of its session, or behind what stands at some place."""
        self._told |= {"session": self._key(session), "place": self._value(place)}
        if behind is not None:
            self._told["behind"] = self._value(behind)

    def file(self, who: bytes, tags: Iterable[Sequence[bytes]]) -> None:
        """File its session by the tags of the record."""
        numbered = [list(map(self._value, tag)) for tag in tags]
        self._told |= {"who": self._value(who), "tags": numbered}

    def follow(self, checkpoint_id: bytes) -> None:
        """Refuse all if the session has something else last."""
        self._told["follows"] = self._value(checkpoint_id)

    def note(self, order: bytes, scope: bytes, name: bytes, expires: int | None) -> None:
        """Give a place to the note that was made its own last."""
        until = "" if expires is None else str(expires)
        names = (self._value(scope), self._value(name))
        self._notes.append((len(self._own), self._key(order), *names, until))

    def begin(self, names: list[bytes]) -> ScriptCall:
        """Refuse what would be refused, and list chunks that are about to be written."""
        return self._call("begin", names)

    def end(self, names: Collection[bytes]) -> ScriptCall:
        """Write everything but the chunks, which were written before."""
        return self._call("end", names)

    def whole(self, keys: Keys, chunks: Mapping[bytes, bytes]) -> ScriptCall:
        """Write everything."""
        return self._call("whole", chunks, list(map(keys.chunk, chunks)), chunks.values())

    def _call(
        self,
        mode: str,
        names: Collection[bytes],
        keys: Collection[bytes] = (),
        data: Collection[bytes] = (),
    ) -> ScriptCall:
        told = {
            "format": FORMAT.decode(),
            **self._told,
            "mode": mode,
            "own": self._own,
            "needs": list(self._needs.items()),
            "entries": self._entries,
            "notes": self._notes,
            "size": self.size,
            "first": len(self._values) + 2,
            "chunks": len(names),
        }
        return WRITE([*self._keys, *keys], ormsgpack.packb(told), *self._values, *names, *data)


class RedisWrites(RedisReads):
    """Plans that change what is kept, and all that only read."""

    def commit(self, commit: Commit | NotesOnly) -> RedisPlan[None]:
        """Keep a record with its chunks and notes: one round trip on one server, else three."""
        call = self._call_of(commit, (yield from self._behind(commit)))
        crash_points.reach("redis:begun")
        if not self.spread and _small(commit.chunks):
            (answer,) = yield [call.whole(self.keys, commit.chunks)]
            self._check(answer, commit)
        else:
            for _ in range(_ATTEMPTS):
                if (yield from self._commit_in_steps(call, commit)):
                    break
            else:
                raise StoreError("gc takes the chunks of this save again and again: save later")
        crash_points.reach("redis:committed")

    def _commit_in_steps(self, call: CommitCall, commit: Commit | NotesOnly) -> RedisPlan[bool]:
        """Enter the chunks, write them, and then the record; False if gc took some meanwhile."""
        written: dict[bytes, bytes] = {}
        for part in list(batches(list(commit.chunks))) or [[]]:
            (answer,) = yield [call.begin(part)]
            if not self._check(answer, commit):
                return True
            written.update(dict.fromkeys(part, int(answer[1]).to_bytes(WRITTEN, "big")))
        crash_points.reach("redis:entered")
        for some in _by_bytes(commit.chunks):
            yield [("SET", self.keys.chunk(name), written[name] + data) for name, data in some]
        crash_points.reach("redis:chunks_written")
        (answer,) = yield [call.end(commit.chunks)]
        if answer[0] == b"again":
            return False
        self._check(answer, commit)
        return True

    def _behind(self, commit: Commit | NotesOnly) -> RedisPlan[bytes | None]:
        """Return the last place of those that a record comes behind, which never changes."""
        if isinstance(commit, NotesOnly) or commit.behind is None:
            return None
        placed = yield from self._records(commit.behind)
        return max((each.place for each in placed.values()), default=b"")

    def _call_of(self, commit: Commit | NotesOnly, behind: bytes | None) -> CommitCall:
        call, keys = CommitCall(self.keys), self.keys
        token = os.urandom(8)
        if commit.unless is not None:
            call.unless(keys.note(*commit.unless))
        if isinstance(commit, Commit):
            info = commit.info
            filed = IndexEntry.of(info)
            call.own(keys.record(info.checkpoint_id), pack_record(info, token), filed.expires)
            if commit.base is not None:
                call.need(keys.record(commit.base), "base")
            if commit.needs_parent and info.parent_id:
                call.need(keys.record(info.parent_id), "parent")
            for entry in filed.entries(keys):
                call.enter(*entry)
            call.place(keys.session(*filed.session), filed.place, behind)
            call.file(filed.who, starmap(numbers_filed, info.metadata.items()))
            if commit.follows is not None:
                call.follow(as_bytes(commit.follows))
            call.size = info.size
        seen: set[tuple[str, str]] = set()
        for note in commit.notes:
            if (note.scope, note.key) in seen:
                raise NoteExistsError(note)
            seen.add((note.scope, note.key))
            self._add_note(call, note, token)
        return call

    def _add_note(self, call: CommitCall, note: Note, token: bytes) -> None:
        if "\0" in note.scope:
            raise InvalidArgumentError(f"the scope of a note holds a NUL: {note.scope!r}")
        expires = None if note.expires_at is None else microseconds(note.expires_at)
        body = self.keys.note(note.scope, note.key)
        call.own(body, pack_note(note, token), expires, numbered=True)
        names = (as_bytes(note.scope), as_bytes(note.key))
        call.note(self.keys.order(note.scope), *names, expires)

    def _check(self, answer: list[Any], commit: Commit | NotesOnly) -> bool:
        """Return whether the work is still to be done; raises what the script refused it for."""
        word = answer[0]
        if word == b"format":
            raise StoreFormatError(
                "another version of Holdfast writes to this store: open it again to see to that"
            )
        if word == b"fenced" and commit.unless is not None:
            raise FencedError(commit.unless)
        if word == b"head":
            raise NotTheHeadError
        if word == b"base":
            raise MissingBaseError
        if word == b"parent":
            raise MissingParentError
        if word == b"taken":
            which = answer[1] - 1
            if isinstance(commit, Commit):
                if which == 0:
                    raise CheckpointConflictError(commit.info.checkpoint_id)
                which -= 1
            raise NoteExistsError(commit.notes[which])
        return bool(word == b"ok")

    def delete(self, checkpoint_ids: Collection[str]) -> RedisPlan[int]:
        """Remove records and the notes of these scopes."""
        removed = 0
        for part in batches(list(dict.fromkeys(checkpoint_ids))):
            yield from self._forget_scopes(part)
            (values,) = yield [("MGET", *map(self.keys.record, part))]
            found = dict(zip(part, values, strict=True))
            calls = {i: self._removal(i, value) for i, value in found.items() if value is not None}
            if calls:
                removed += sum((yield list(calls.values())))
            # Where a record that is gone or cannot be read is listed, it does not say.
            unread = [i for i in part if not isinstance(calls.get(i), ScriptCall)]
            listed = (
                (yield [("ZSCORE", self.keys.ids, as_bytes(i)) for i in unread]) if unread else []
            )
            yield from self._strike_off(
                {i for i, score in zip(unread, listed, strict=True) if score is not None}
            )
            crash_points.reach("upkeep:part")
        return removed

    def _strike_off(self, ids: set[str]) -> RedisPlan[None]:
        """Take ids off all listings of records, by looking through them."""
        if not ids:
            return
        keys = self.keys
        places = [at for at in (yield from members_of(keys.all)) if id_at(at) in ids]
        sessions = [parted(each) for each in (yield from members_of(keys.sessions))]
        lists = {keys.agent(agent) for _, agent in sessions}
        lists |= {keys.session(agent, session) for session, agent in sessions}
        for part in batches([keys.all, *lists]) if places else ():
            yield [("ZREM", key, *places) for key in part]
        yield from self._touch_again(set(places))
        yield [("ZREM", keys.ids, *map(as_bytes, ids))]

    def _touch_again(self, struck: set[bytes]) -> RedisPlan[None]:
        """File sessions as touched by what they have left, where that was by a place struck off."""
        for member in (yield from members_of(self.keys.touched)):
            place, who = touched_by(member)
            if place in struck:
                yield [("ZREM", self.keys.touched, member), self._refile({who: {}})]

    def _removal(self, checkpoint_id: str, value: bytes) -> ScriptCall | RedisCommand:
        try:
            placed = unpack_record(checkpoint_id, value)
        except CheckpointIntegrityError:
            return ("DEL", self.keys.record(checkpoint_id))
        return self._removal_of(IndexEntry.of(placed.info, placed.place), value)

    def _forget_scopes(self, scopes: list[str]) -> RedisPlan[None]:
        left = scopes
        while left:  # what was listed is forgotten by the next time
            orders = yield [("ZRANGE", self.keys.order(scope), 0, BATCH - 1) for scope in left]
            listed = list(zip(left, orders, strict=True))
            calls = [
                self._forgetting(member[:SEQ], scope, as_text(member[SEQ:]))
                for scope, members in listed
                for member in members
            ]
            yield from batches(calls)
            left = [scope for scope, members in listed if len(members) == BATCH]

    def _forgetting(self, seq: bytes, scope: str, key: str) -> ScriptCall:
        keys = [self.keys.note(scope, key), self.keys.order(scope)]
        return FORGET(
            [*keys, self.keys.notes, self.keys.expiry], seq, as_bytes(scope), as_bytes(key)
        )

    def sweep(self, now: datetime) -> RedisPlan[int]:
        """Remove what has expired, also where Redis did so already."""
        removed = 0
        asked = ("ZRANGEBYSCORE", self.keys.expiry, "-inf", microseconds(now))
        while True:
            (members,) = yield [(*asked, "LIMIT", 0, BATCH)]
            if not members:
                return removed
            records = [IndexEntry.expiring(member) for member in members if member[:1] == b"r"]
            notes = [member[1:] for member in members if member[:1] == b"n"]
            if notes:
                yield [self._forgetting(m[:SEQ], *parted(m[SEQ:])) for m in notes]
            if records:
                yield from self._forget_scopes([filed.checkpoint_id for filed in records])
                removed += sum((yield [self._removal_of(filed) for filed in records]))
            yield [("ZREM", self.keys.expiry, *members)]
            crash_points.reach("upkeep:part")

    def _removal_of(self, filed: IndexEntry, value: bytes = b"") -> ScriptCall:
        return REMOVE(filed.keys_to_remove(self.keys), value, *filed.members_to_remove())

    def file_sessions(self, tell: Callable[[int], None]) -> RedisPlan[bytes | None]:
        """Bring a store of an older format to this one; return its format, None if it has none.

        By the sessions, then by the records for their tags; some at a time: whoever is killed
        goes on there, and many may do it at once.
        """
        keys, done = self.keys, 0
        while True:
            ((format, at),) = yield [FENCE([keys.format, keys.filing], FORMAT, *OLDER)]
            if format != FORMAT or at is None:
                return format  # type: ignore[no-any-return]
            behind = b"(" + at[1:] if at[1:] else b"-"
            if at.startswith(_RECORDS):
                page = yield from page_of(keys.all, behind, BATCH)
                filing = yield from self._filing_of(list(map(id_at, page)))
                done += len(page)
            else:
                page = yield from page_of(keys.sessions, behind, BATCH)
                filing = {who: {} for who in page}
            # What comes behind the last page was written since, and filed.
            if len(page) == BATCH:
                yield [self._refile(filing, at, (at[:1] or _SESSIONS) + page[-1])]
            elif at.startswith(_RECORDS):
                yield [self._refile(filing, at, at), ("DEL", keys.filing)]
            else:
                yield [self._refile(filing, at, _RECORDS)]
            crash_points.reach("upkeep:part")
            tell(done)

    def _filing_of(self, ids: list[str]) -> RedisPlan[dict[bytes, Tags]]:
        """Return the sessions of some records, with the tags of these."""
        (values,) = (yield [("MGET", *map(self.keys.record, ids))]) if ids else ([],)
        filing: dict[bytes, Tags] = {}
        for checkpoint_id, value in zip(ids, values, strict=True):
            if value is not None:
                with suppress(CheckpointIntegrityError):  # its tags are not known, and it says so
                    info = unpack_record(checkpoint_id, value).info
                    tags = filing.setdefault(IndexEntry.of(info).who, {})
                    tags |= {tuple(numbers_filed(*tag)): None for tag in info.metadata.items()}
        return filing

    def _refile(self, filing: dict[bytes, Tags], at: bytes = b"", now: bytes = b"") -> ScriptCall:
        keys = self.keys
        sessions = [keys.session_of(who) for who in filing]
        values: dict[bytes, int] = {}

        def value(given: bytes) -> int:
            return values.setdefault(given, len(values) + _REFILE_TELLS + 1)

        told = [[value(who), [[*map(value, tag)] for tag in tags]] for who, tags in filing.items()]
        kept = [keys.touched, keys.tags, keys.filed, keys.filing]
        return REFILE([*kept, *sessions], at, now, ormsgpack.packb(told), *values)

    def collect(
        self, live: Container[bytes], before: datetime, dry_run: bool
    ) -> RedisPlan[Collected]:
        """Remove chunks that are not live and were last written before then.

        In three steps, so that no save can rely on a chunk that is going: it is marked, removed
        unless it was written again, and struck off the list unless it was entered again.
        """
        bound = microseconds(before) + (yield from self._skew())
        chunks = size = 0
        cursor = 0
        while True:
            ((cursor, page),) = yield [("ZSCAN", self.keys.chunks, cursor, "COUNT", BATCH)]
            dead = [name for name, at in page if at < bound and name not in live]
            for part in batches(dead):
                going = self._sizes(part) if dry_run else self._take(part, bound)
                sizes = yield from going
                chunks, size = chunks + len(sizes), size + sum(sizes)
            if not cursor:
                return Collected(chunks, size)

    def _take(self, names: list[bytes], bound: int) -> RedisPlan[list[int]]:
        """Remove chunks that no record needs; return the size of each that was not spared."""
        (doomed,) = yield [DOOM([self.keys.chunks], bound, *names)]
        if not doomed:
            return []
        taken = yield from self._drop(doomed, bound)
        yield [SETTLE([self.keys.chunks], *doomed)]
        crash_points.reach("upkeep:part")
        return taken

    def _drop(self, names: list[bytes], bound: int) -> RedisPlan[list[int]]:
        keys = [self.keys.chunk(name) for name in names]
        groups = [[key] for key in keys] if self.spread else [keys]
        answers = yield [DROP(group, bound) for group in groups]
        return [size for sizes in answers for size in sizes if size >= 0]

    def _skew(self) -> RedisPlan[int]:
        """Return microseconds by which the server's clock, which dates chunks, is ahead of ours."""
        sent = microseconds(datetime.now(UTC))
        (answer,) = yield [CLOCK([self.keys.chunks])]
        came = microseconds(datetime.now(UTC))
        clock = int(answer)
        return 0 if sent <= clock <= came else clock - came


def _until(expires: int | None) -> str:
    """Return when Redis may remove what expires, in milliseconds; nothing for what does not."""
    if expires is None:
        return ""
    return str(max(expires, microseconds(datetime.now(UTC))) // 1000 + AFTERLIFE)


def _small(chunks: Mapping[bytes, bytes]) -> bool:
    return len(chunks) <= BATCH and sum(map(len, chunks.values())) <= _AT_ONCE


def _by_bytes(chunks: Mapping[bytes, bytes]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield chunks in portions that a server takes at once."""
    some: list[tuple[bytes, bytes]] = []
    size = 0
    for name, data in chunks.items():
        if some and (len(some) == BATCH or size + len(data) > _BYTES):
            yield some
            some, size = [], 0
        some.append((name, data))
        size += len(data)
    if some:
        yield some
