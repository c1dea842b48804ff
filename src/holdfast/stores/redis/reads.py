"""What the Redis store reads, as plans: each yields commands and is sent their replies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from holdfast.errors import CheckpointIntegrityError
from holdfast.model import CheckpointInfo, microseconds
from holdfast.stores.base import (
    Note,
    Query,
    Record,
    SessionInfo,
    Stats,
    unfold,
)
from holdfast.stores.redis.keys import (
    NUMBER,
    SEQ,
    Keys,
    as_bytes,
    as_text,
    id_at,
    numbers_filed,
    parted,
    seq_digits,
    stamp,
    touched_by,
)
from holdfast.stores.redis.records import IndexEntry, PlacedRecord, unpack_note, unpack_record
from holdfast.stores.redis.scripts import RedisCommand, ScriptCall
from holdfast.stores.shared.id_bounds import AFTER_ALL, byte_bounds

T = TypeVar("T")
Item = TypeVar("Item")
RedisPlan = Generator[Sequence[RedisCommand | ScriptCall], list[Any], T]
"""Yields commands that go out together, is sent their replies, and returns what was asked for."""

BATCH = 500
WRITTEN = 8
"""Bytes before the data of a chunk that say when it was written."""
_FEW = 64
"""Up to so many sessions are listed by merging; for more, all records are looked through."""
_COMMON = 500
"""With a limit, a tag of more sessions is soon met where all records are looked through."""
_MANY = 5000
_SOME = 50
_LISTED = 2000
_PLACE = itemgetter(0)


class Ordered(NamedTuple):
    """A sorted set of records, or the part of one whose members begin with the same name."""

    key: bytes
    lead: bytes = b""

    def page(
        self, low: bytes, high: bytes, count: int | None, is_forward: bool = False
    ) -> RedisCommand:
        """Ask for the newest members from low on and below high, or for the oldest."""
        first, last = b"[" + self.lead + low, b"(" + self.lead + high
        limit = () if count is None else ("LIMIT", 0, count)
        if is_forward:
            return ("ZRANGEBYLEX", self.key, first, last, *limit)
        return ("ZREVRANGEBYLEX", self.key, last, first, *limit)

    def places(self, members: list[bytes]) -> Iterator[bytes]:
        """Return the members as places of records."""
        return (member[len(self.lead) :] for member in members)


class RedisReads:
    """Plans that change nothing."""

    def __init__(self, keys: Keys, spread: bool) -> None:
        self.keys = keys
        self.spread = spread
        """Whether keys lie on several nodes, so that a command may name but one chunk."""

    def load(self, checkpoint_id: str, verify: bool = True) -> RedisPlan[Record | None]:
        """Return a record with everything it needs; one round trip for each level of its chunks."""
        info = (yield from self._infos([checkpoint_id])).get(checkpoint_id)
        if info is None or info.is_expired():
            return None
        return (yield from self._whole(info, verify))

    def newest(self, agent_id: str, session_id: str) -> RedisPlan[Record | None]:
        """Return the newest record of a session; the next one if it is removed while it is read."""
        query = Query(agent_id=agent_id, session_id=session_id, limit=1)
        while found := (yield from self.query(query)):
            record = yield from self._whole(found[0], True)
            if record is not None:
                return record
        return None

    def _whole(self, info: CheckpointInfo, verify: bool) -> RedisPlan[Record | None]:
        try:
            root = bytes.fromhex(info.content_id)
            return Record(info, (yield from unfold({root: True}, {}, self.fetch, verify)))
        except CheckpointIntegrityError as error:
            if not (yield [("EXISTS", self.keys.record(info.checkpoint_id))])[0]:
                return None  # removed and collected while it was read
            raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None

    def fetch(self, names: Collection[bytes]) -> RedisPlan[dict[bytes, bytes]]:
        """Return those of the chunks that there are."""
        found: dict[bytes, bytes] = {}
        for part in batches(list(names)):
            values = yield from self._values([self.keys.chunk(name) for name in part])
            for name, value in zip(part, values, strict=True):
                if value is not None and len(value) > WRITTEN:
                    found[name] = value[WRITTEN:]
        return found

    def _values(self, keys: list[bytes]) -> RedisPlan[list[bytes | None]]:
        if self.spread:
            return (yield [("GET", key) for key in keys])
        return (yield [("MGET", *keys)])[0]  # type: ignore[no-any-return]

    def _infos(self, ids: Collection[str]) -> RedisPlan[dict[str, CheckpointInfo]]:
        """Return those of the records that there are, expired ones too."""
        found = yield from self._records(ids)
        return {checkpoint_id: placed.info for checkpoint_id, placed in found.items()}

    def _records(self, ids: Collection[str]) -> RedisPlan[dict[str, PlacedRecord]]:
        """Return the same, each with its place."""
        found: dict[str, PlacedRecord] = {}
        parts = list(batches(list(ids)))
        for some in batches(parts, 16):
            asked = [("MGET", *map(self.keys.record, part)) for part in some]
            for part, values in zip(some, (yield asked), strict=True):
                for checkpoint_id, value in zip(part, values, strict=True):
                    if value is not None:
                        found[checkpoint_id] = unpack_record(checkpoint_id, value)
        return found

    def match(self, prefix: str, limit: int, after: str = "") -> RedisPlan[list[str]]:
        """Return ids that begin so, in order."""
        found: list[str] = []
        first, past = byte_bounds(as_bytes(prefix))
        low = max(b"(" + as_bytes(after), b"[" + first, key=lambda bound: bound[1:])
        high = b"(" + past
        while len(found) < limit:
            page = min(limit - len(found), BATCH)
            asked = ("ZRANGEBYLEX", self.keys.ids, low, high, "LIMIT", 0, page)
            (members,) = yield [asked]
            ids = list(map(as_text, members))
            # What expired long ago has been removed by Redis, and its entry waits for sweep.
            there = yield [("EXISTS", self.keys.record(i)) for i in ids] if ids else []
            found += [i for i, is_there in zip(ids, there, strict=True) if is_there]
            if len(members) < page:
                break
            low = b"(" + members[-1]
        return found

    def query(self, query: Query) -> RedisPlan[list[CheckpointInfo]]:
        """Return the records asked for, in the order asked for."""
        now = datetime.now(UTC)
        if query.limit is not None and query.limit <= 0:
            return []
        low = b"" if query.since is None else stamp(query.since)
        high = AFTER_ALL  # what was made before a time may have been written after it
        if query.before is not None:
            last = (yield from self._records([query.before])).get(query.before)
            if last is None:
                return []
            high = last.place
        if query.ids is not None:
            placed = (yield from self._records(set(query.ids))).values()
            in_order = sorted(placed, reverse=not query.oldest_first, key=_PLACE)
            older = [info for at, info in in_order if at < high]
            return [info for info in older if query.admits(info, now)][: query.limit]
        sets = yield from self._sets(query)
        if query.limit is None or (query.tags and len(sets) > _FEW):
            listed = yield from self._all_of(sets, low, high)
            ordered = listed[::-1] if query.oldest_first else listed
            return [info for info in ordered if query.admits(info, now)][: query.limit]
        return (yield from self._first_of(sets, low, high, query, query.limit, now))

    def _sets(self, query: Query) -> RedisPlan[list[Ordered]]:
        """Return the smallest sets that hold everything a query asks for."""
        keys = self.keys
        agent, session = query.agent_id, query.session_id
        if query.parent_id is not None:
            return [Ordered(keys.children, as_bytes(query.parent_id) + b"\0")]
        if query.parent_ids is not None:
            parents = set(query.parent_ids)
            return [Ordered(keys.children, as_bytes(each) + b"\0") for each in parents]
        if agent is not None and session is not None:
            return [Ordered(keys.session(agent, session))]
        if query.handoff_target is not None:
            return [Ordered(keys.targets, as_bytes(query.handoff_target) + b"\0")]
        if query.is_offered:
            return [Ordered(keys.targets, lead) for lead in (yield from self._targets())]
        if query.tags:
            tagged = yield from self._tagged(query)
            if tagged is not None:
                return [Ordered(keys.session(*pair)) for pair in tagged]
        if session is not None or query.session_prefix is not None:
            sessions = yield from self._sessions(
                agent, session, query.session_prefix or "", limit=_FEW + 1
            )
            if len(sessions) <= _FEW:
                return [Ordered(keys.session(*pair)) for pair in sessions]
        return [Ordered(keys.all if agent is None else keys.agent(agent))]

    def _tagged(self, query: Query) -> RedisPlan[list[tuple[str, str]] | None]:
        """Return the sessions filed by the rarest of some tags; None where that one is common."""
        bounds = [
            [_from(number) for number in numbers_filed(name, value)]
            for name, value in query.tags.items()
        ]
        counts = yield [("ZLEXCOUNT", self.keys.tags, *of) for each in bounds for of in each]
        each_count = iter(counts)
        rarest, count = min(
            ((each, sum(next(each_count) for _ in each)) for each in bounds), key=itemgetter(1)
        )
        if count > (_COMMON if query.limit is not None else _MANY):
            return None
        found: dict[tuple[str, str], None] = {}
        for low, high in rarest:
            for member in (yield from members_of(self.keys.tags, low, high)):
                session, agent = parted(member[NUMBER:])
                if query.agent_id in (None, agent) and session.startswith(
                    query.session_prefix or ""
                ):
                    found[agent, session] = None
        return [each for each in found if query.session_id in (None, each[1])]

    def _sessions(
        self,
        agent_id: str | None,
        session_id: str | None,
        prefix: str = "",
        limit: int | None = None,
    ) -> RedisPlan[list[tuple[str, str]]]:
        """Return sessions by their name or how it begins, of an agent or of all."""
        low = as_bytes(prefix) if session_id is None else as_bytes(session_id) + b"\0"
        if agent_id is not None:
            low = as_bytes(agent_id) + b"\0" + low
        key = self.keys.sessions if agent_id is None else self.keys.agents
        first, past = byte_bounds(low)
        members = yield from members_of(key, b"[" + first, b"(" + past, limit)
        pairs = map(parted, members)
        return [pair if agent_id is not None else pair[::-1] for pair in pairs]

    def _first_of(
        self,
        sets: list[Ordered],
        low: bytes,
        high: bytes,
        query: Query,
        limit: int,
        now: datetime,
    ) -> RedisPlan[list[CheckpointInfo]]:
        found: list[CheckpointInfo] = []
        more = bool(sets)
        page = limit
        while more and len(found) < limit:
            page = min(page, BATCH)
            pages = yield [each.page(low, high, page, query.oldest_first) for each in sets]
            places = sorted(
                (at for each, got in zip(sets, pages, strict=True) for at in each.places(got)),
                reverse=not query.oldest_first,
            )[:page]
            more = len(places) == page
            if more and query.oldest_first:
                low = places[-1] + b"\0"  # behind it
            elif more:
                high = places[-1]
            ids = list(map(id_at, places))
            infos = yield from self._infos(ids)
            found += [infos[i] for i in ids if i in infos and query.admits(infos[i], now)]
            page = max(limit - len(found), 4 * page, _SOME)  # much is left out, it seems
        return found[:limit]

    def _all_of(
        self, sets: list[Ordered], low: bytes, high: bytes
    ) -> RedisPlan[list[CheckpointInfo]]:
        """Return all records there were at one moment, and maybe some removed or added since.

        gc takes the chunks of what is not seen here. A record that is removed between the listing
        and its reading may have been the base of one committed since: then all is listed again.
        """
        placed: dict[str, PlacedRecord] = {}
        gone: set[str] = set()
        for page in chain((_LISTED, _LISTED), repeat(None)) if sets else ():
            ids, before = yield from self._listed(sets, low, high, page)
            unseen = ids - placed.keys()
            placed.update((yield from self._records(unseen)))
            missing = unseen - placed.keys()
            if missing <= gone and (before is None or before == (yield [self._removals])):
                break
            gone = missing
        return [info for _, info in sorted(placed.values(), reverse=True, key=_PLACE)]

    def _listed(
        self, sets: list[Ordered], low: bytes, high: bytes, page: int | None
    ) -> RedisPlan[tuple[set[str], list[Any] | None]]:
        """Return the ids in some sets, so many of each at a time.

        And how many records had been removed before; None if all was listed at one moment.
        """
        found: set[str] = set()
        before: list[Any] | None = None
        parts = list(batches(sets)) if page is not None else [sets]
        is_whole = len(parts) == 1
        for part in parts:
            left = [(each, high) for each in part]
            while left:
                asked = [each.page(low, below, page) for each, below in left]
                removed, *pages = yield [self._removals, *asked]
                before = before or [removed]
                following: list[tuple[Ordered, bytes]] = []
                for (each, _), got in zip(left, pages, strict=True):
                    places = list(each.places(got))
                    found.update(map(id_at, places))
                    if len(places) == page:
                        following.append((each, places[-1]))
                left = following
                is_whole = is_whole and not left
        return found, None if is_whole else before

    @property
    def _removals(self) -> RedisCommand:
        """Ask how many records were ever removed."""
        return ("HGET", self.keys.totals, "removed")

    def roots(
        self, include_expired: bool, take: Callable[[list[bytes]], object]
    ) -> RedisPlan[None]:
        """Hand over the root chunk of every record, listed in pages that hold nobody up.

        A record that is removed before its page may have been the base of one that was committed
        behind it: then all is listed again; and if that happens once more, at one moment.
        """
        gone: set[str] = set()
        for page in chain((_LISTED, _LISTED), repeat(-1)):
            before = yield [self._removals]
            missing = yield from self._roots_in(page, include_expired, take)
            after = yield [self._removals]
            if missing <= gone and (before == after or page < 0):
                return
            gone = missing

    def _roots_in(
        self, page: int, include_expired: bool, take: Callable[[list[bytes]], object]
    ) -> RedisPlan[set[str]]:
        """Hand them over as they are listed, so many at a time; return which were gone by then."""
        now, low, missing = datetime.now(UTC), b"-", set[str]()
        while True:
            (members,) = yield [("ZRANGEBYLEX", self.keys.all, low, "+", "LIMIT", 0, page)]
            for part in batches(list(map(id_at, members)), _LISTED):
                there = yield from self._records(part)
                missing |= {*part} - there.keys()
                infos = (placed.info for placed in there.values())
                take(
                    [
                        bytes.fromhex(info.content_id)
                        for info in infos
                        if include_expired or not info.is_expired(now)
                    ]
                )
            if len(members) != page:
                return missing
            low = b"(" + members[-1]

    def heads(
        self,
        agent_id: str | None,
        session_id: str | None,
        limit: int | None,
        before: str | None,
    ) -> RedisPlan[list[SessionInfo]]:
        """Return sessions, each with its newest checkpoint."""
        high = AFTER_ALL
        if before is not None:
            last = (yield from self._records([before])).get(before)
            if last is None:
                return []
            high = last.place
        if agent_id is not None and session_id is not None:
            sessions = [(agent_id, session_id)]
        else:
            asked = None if limit is None else max(_FEW, limit) + 1
            sessions = yield from self._sessions(agent_id, session_id, limit=asked)
            if asked is not None and len(sessions) == asked:
                return (yield from self._touched_last(agent_id, session_id, limit or 0, high))
        expired = yield from self.expired()
        found: list[tuple[bytes, SessionInfo]] = []
        for part in batches(sessions):
            found += yield from self._heads_of(part, expired)
        return _newest_of(found, high, limit)

    def _touched_last(
        self, agent_id: str | None, session_id: str | None, limit: int, high: bytes
    ) -> RedisPlan[list[SessionInfo]]:
        """Return the sessions that were touched last, of many; only what is shown is read.

        Where records have expired, the newest of a session may not be what it was touched by.
        """
        expired = yield from self.expired()
        apart = [
            each
            for each in expired
            if agent_id in (None, each[0]) and session_id in (None, each[1])
        ]
        found: list[tuple[bytes, SessionInfo]] = []
        for part in batches(apart):
            found += yield from self._heads_of(part, expired)
        below, left, page = b"(" + high, limit, max(limit, _SOME)
        while left > 0:
            asked = ("ZREVRANGEBYLEX", self.keys.touched, below, b"-", "LIMIT", 0, page)
            (members,) = yield [asked]
            pairs = [parted(touched_by(member)[1])[::-1] for member in members]
            some = [
                (agent, session)
                for agent, session in pairs
                if agent_id in (None, agent)
                and session_id in (None, session)
                and (agent, session) not in expired
            ]
            while some and left > 0:
                part, some = some[:left], some[left:]
                heads = yield from self._heads_of(part, expired)
                found += heads
                left -= len(heads)
            if len(members) < page:
                break
            below, page = b"(" + members[-1], min(4 * page, BATCH)  # much is left out, it seems
        return _newest_of(found, high, limit)

    def _heads_of(
        self, sessions: list[tuple[str, str]], expired: dict[tuple[str, str], list[IndexEntry]]
    ) -> RedisPlan[list[tuple[bytes, SessionInfo]]]:
        now = datetime.now(UTC)
        keys = [self.keys.session(*session) for session in sessions]
        newest = yield [Ordered(key).page(b"", AFTER_ALL, 1) for key in keys]
        counts = yield [("ZCARD", key) for key in keys]
        placed = yield from self._records([id_at(members[0]) for members in newest if members])
        found: list[tuple[bytes, SessionInfo]] = []
        for session, members, count in zip(sessions, newest, counts, strict=True):
            head = placed.get(id_at(members[0])) if members else None
            if head is None or head.info.is_expired(now):
                query = Query(agent_id=session[0], session_id=session[1], limit=1)
                ids = [info.checkpoint_id for info in (yield from self.query(query))]
                head = next(iter((yield from self._records(ids)).values()), None)
            if head is not None:
                left = max(1, count - len(expired.get(session, ())))
                found.append((head.place, SessionInfo(*session, head.info, left)))
        return found

    def expired(self) -> RedisPlan[dict[tuple[str, str], list[IndexEntry]]]:
        """Return records that have expired and were not swept yet, by session."""
        found: dict[tuple[str, str], list[IndexEntry]] = {}
        for member in (yield from self._expired()):
            if member.startswith(b"r"):
                filed = IndexEntry.expiring(member)
                found.setdefault(filed.session, []).append(filed)
        return found

    def expired_notes(self) -> RedisPlan[list[bytes]]:
        """Return the place, scope and key of notes that have expired and were not swept yet."""
        return [member[1:] for member in (yield from self._expired()) if member.startswith(b"n")]

    def _expired(self) -> RedisPlan[list[bytes]]:
        now = microseconds(datetime.now(UTC))
        return (yield from self._by_score(self.keys.expiry, "-inf", str(now)))

    def listed_chunks(self, low: str, high: str) -> RedisPlan[list[bytes]]:
        """Return the names of chunks that were last written between two times.

        One that is written again meanwhile may be left out: it is young.
        """
        return (yield from self._by_score(self.keys.chunks, low, high))

    def _by_score(self, key: bytes, low: str, high: str) -> RedisPlan[list[bytes]]:
        """Return the members of a sorted set between two scores, asked for in pages."""
        found: list[bytes] = []
        offset = 0
        while True:
            asked = ("ZRANGEBYSCORE", key, low, high, "WITHSCORES")
            (page,) = yield [(*asked, "LIMIT", offset, 10 * BATCH)]
            names, scores = page[::2], page[1::2]
            found += names
            if len(names) < 10 * BATCH:
                return found
            # Scores are exact: microseconds have fewer digits than a float does.
            last = scores[-1]
            same = scores.count(last)
            offset = offset + same if _as_bound(last) == low else same
            low = _as_bound(last)

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> RedisPlan[list[Note]]:
        """Return notes in the order of their places."""
        now = datetime.now(UTC)
        names = None if scopes is None else list(dict.fromkeys(scopes))
        low = b"[" + seq_digits(after + 1)
        found: list[Note] = []
        while limit is None or len(found) < limit:
            page = BATCH if limit is None else min(max(limit - len(found), _SOME), BATCH)
            entries = yield from self._noted(names, low, page)
            notes = yield from self._notes_at(entries)
            found += [note for note in notes if not note.is_expired(now)]
            if len(entries) < page:
                break
            low = b"(" + entries[-1][0] + AFTER_ALL
        return found[:limit]

    def last_notes(self, scopes: Collection[str], count: int) -> RedisPlan[list[Note]]:
        """Return the last notes of each of some scopes."""
        now = datetime.now(UTC)
        found: dict[str, list[Note]] = {scope: [] for scope in scopes}
        left, start, page = list(found), 0, count
        while left:
            asked = [
                ("ZREVRANGE", self.keys.order(scope), start, start + page - 1) for scope in left
            ]
            listed = dict(zip(left, (yield asked), strict=True))
            entries = [
                (each[:SEQ], scope, as_text(each[SEQ:]))
                for scope, members in listed.items()
                for each in members
            ]
            for part in batches(entries):
                for note in (yield from self._notes_at(part)):
                    if not note.is_expired(now):
                        found[note.scope].append(note)
            full = (scope for scope, members in listed.items() if len(members) == page)
            left = [scope for scope in full if len(found[scope]) < count]
            start, page = start + page, min(4 * page, BATCH)  # many have expired, it seems
        last = (note for notes in found.values() for note in notes[:count])
        return sorted(last, key=lambda note: note.seq)

    def targets(self) -> RedisPlan[list[str]]:
        """Return to whom checkpoints were handed off, from one to the next."""
        return [as_text(lead[:-1]) for lead in (yield from self._targets())]

    def _targets(self) -> RedisPlan[list[bytes]]:
        """Return how the entries of each target begin."""
        found: list[bytes] = []
        low = b"-"
        while True:
            (first,) = yield [("ZRANGEBYLEX", self.keys.targets, low, "+", "LIMIT", 0, 1)]
            if not first:
                return found
            found.append(first[0].partition(b"\0")[0] + b"\0")
            low = b"(" + byte_bounds(found[-1])[1]

    def wait(self, scope: str, after: int, timeout: float) -> RedisPlan[None]:
        """Return once the scope may have a note past that place, or the time is over."""
        (newest,) = yield [("XREVRANGE", self.keys.wake, "+", "-", "COUNT", 1)]
        # Asked for before the notes are: what comes in between is not missed.
        seen = newest[0][0] if newest else b"0-0"
        if not (yield from self.notes([scope], after, 1)):
            block = max(1, int(timeout * 1000))
            yield [("XREAD", "BLOCK", block, "COUNT", 1, "STREAMS", self.keys.wake, seen)]

    def _noted(
        self, scopes: list[str] | None, low: bytes, page: int
    ) -> RedisPlan[list[tuple[bytes, str, str]]]:
        """Return the next notes: the place, scope and key of each."""
        if scopes is None:
            (members,) = yield [("ZRANGEBYLEX", self.keys.notes, low, "+", "LIMIT", 0, page)]
            return [(member[:SEQ], *parted(member[SEQ:])) for member in members]
        found: list[tuple[bytes, str, str]] = []
        for part in batches(scopes):
            asked = [
                ("ZRANGEBYLEX", self.keys.order(scope), low, "+", "LIMIT", 0, page)
                for scope in part
            ]
            for scope, members in zip(part, (yield asked), strict=True):
                found += [(member[:SEQ], scope, as_text(member[SEQ:])) for member in members]
        return sorted(found)[:page]

    def _notes_at(self, entries: list[tuple[bytes, str, str]]) -> RedisPlan[list[Note]]:
        if not entries:
            return []
        (values,) = yield [("MGET", *(self.keys.note(scope, key) for _, scope, key in entries))]
        return [
            unpack_note(scope, key, value)
            for (seq, scope, key), value in zip(entries, values, strict=True)
            if value is not None and value[:SEQ] == seq
        ]

    def stats(self) -> RedisPlan[Stats]:
        """Return what there is; the size of every chunk is asked for."""
        keys = self.keys
        expired = yield from self.expired()
        all_expired = [filed for group in expired.values() for filed in group]
        checkpoints, sessions, size = yield [
            ("ZCARD", keys.all),
            ("ZCARD", keys.sessions),
            ("HGET", keys.totals, "size"),
        ]
        names = yield from self.listed_chunks("(0", "+inf")
        over = 0
        for part in batches(list(expired.items())):
            counts = yield [("ZCARD", keys.session(*session)) for session, _ in part]
            over += sum(n == len(group) for n, (_, group) in zip(counts, part, strict=True))
        sizes = yield from self._sizes(names)
        return Stats(
            checkpoints=checkpoints - len(all_expired),
            sessions=sessions - over,
            chunks=len(sizes),
            logical_bytes=_number(size) - sum(filed.size for filed in all_expired),
            stored_bytes=sum(sizes),
        )

    def _sizes(self, names: list[bytes]) -> RedisPlan[list[int]]:
        """Return how many bytes each of those chunks has that are there."""
        sizes: list[int] = []
        for part in batches(names, 10 * BATCH):
            lengths = yield [("STRLEN", self.keys.chunk(name)) for name in part]
            sizes += [length - WRITTEN for length in lengths if length]
        return sizes


def _newest_of(
    found: list[tuple[bytes, SessionInfo]], high: bytes, limit: int | None
) -> list[SessionInfo]:
    """Return sessions whose newest record is below a place, the newest first."""
    in_order = sorted(found, reverse=True, key=_PLACE)
    return [head for place, head in in_order if place < high][:limit]


def _from(number: bytes) -> tuple[bytes, bytes]:
    """Return the bounds of what begins with a number."""
    first, past = byte_bounds(number)
    return b"[" + first, b"(" + past


def _number(text: bytes | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        raise CheckpointIntegrityError(None, f"the size of all states is {text!r}") from None


def _as_bound(score: bytes) -> str:
    """Return a score as the least that is asked for."""
    return f"{float(score):.0f}"


def batches(items: list[Item], size: int = BATCH) -> Iterator[list[Item]]:
    """Yield the same, some at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def members_of(
    key: bytes, low: bytes = b"-", high: bytes = b"+", limit: int | None = None
) -> RedisPlan[list[bytes]]:
    """Return the members of a sorted set whose scores are equal, asked for in pages."""
    found: list[bytes] = []
    while limit is None or len(found) < limit:
        count = 10 * BATCH if limit is None else min(limit - len(found), 10 * BATCH)
        page = yield from page_of(key, low, count, high)
        found += page
        if len(page) < count:
            break
        low = b"(" + page[-1]
    return found


def page_of(
    key: bytes, low: bytes, count: int = 10 * BATCH, high: bytes = b"+"
) -> RedisPlan[list[bytes]]:
    """Return the next members of a sorted set whose scores are equal; none at its end."""
    (page,) = yield [("ZRANGEBYLEX", key, low, high, "LIMIT", 0, count)]
    return page  # type: ignore[no-any-return]
