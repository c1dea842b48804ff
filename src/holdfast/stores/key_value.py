"""A store on anything that keeps bytes under keys in order: four methods, and the rest is here.

Keys
    ========================  =====================================================================
    ``r id``                  a record, and its place among others
    ``s agent session place`` the records of a session, in the order of their places
    ``t place``               all records, in the order of their places
    ``k scope key``           the place of a note in its scope
    ``n scope seq``           a note
    ``c name``                a chunk, and when it was last written
    ``m``                     the last ``seq`` that was given to a note
    ========================  =====================================================================
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from holdfast.core.codec import pack, unpack
from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    FencedError,
    MissingBaseError,
    MissingParentError,
    NoteExistsError,
    NotTheHeadError,
    StoreClosedError,
)
from holdfast.model import CheckpointInfo, microseconds, moment
from holdfast.model.decoding import info_of_plain
from holdfast.model.record import plain_of
from holdfast.stores.base import (
    NOTE_TIES,
    Collected,
    Commit,
    Note,
    NotesOnly,
    Query,
    Record,
    Stats,
    Store,
    gather,
    place_after,
)
from holdfast.system.crash_points import reach

Pairs = Iterable[tuple[bytes, bytes]]
_PART = 100
_ZERO = 2**79
"""Added to places, so that those before 1970 come first as text too."""


class _Placed(NamedTuple):
    """A record, and its place among others."""

    place: int
    info: CheckpointInfo

    @property
    def end(self) -> bytes:
        return b"%020x" % (self.place + _ZERO) + _text(self.info.checkpoint_id)


class KeyValueStore(Store):
    """A store on bytes under ordered keys. A subclass writes four methods, ``name`` and ``close``.

    Many threads may call them at once, and other processes may have the same place open.
    """

    _is_closed = False

    @abstractmethod
    def _get(self, keys: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Return the values of those of the keys that there are."""

    @abstractmethod
    def _scan(self, start: bytes, stop: bytes, reverse: bool = False) -> Pairs:
        """Return keys from ``start`` on and below ``stop`` in order, with their values."""

    @abstractmethod
    def _write(self, puts: Mapping[bytes, bytes], removes: Collection[bytes]) -> None:
        """Set and remove keys: all of it or nothing, and durably."""

    @abstractmethod
    def _alone(self) -> AbstractContextManager[Any]:
        """Keep all others from writing, in this process and in others, for a while."""

    def close(self) -> None:
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError(self.name)

    def commit(self, commit: Commit | NotesOnly) -> None:
        self._check_open()
        with self._alone():
            self._check(commit)
            now = microseconds(datetime.now(UTC))
            puts = {
                _chunk(name): now.to_bytes(8, "big") + stored
                for name, stored in commit.chunks.items()
            }
            puts |= self._noted(commit.notes, now)
            if isinstance(commit, Commit):
                puts |= self._recorded(commit)
            self._write(puts, self._replaced(commit))

    def _replaced(self, commit: Commit | NotesOnly) -> list[bytes]:
        """Return the keys of the notes that mean nothing any more."""
        named = {_note_key(scope, key): scope for scope, key in commit.instead_of}
        places = self._get(list(named))
        return [*places, *(_scope(named[key]) + place for key, place in places.items())]

    def _check(self, commit: Commit | NotesOnly) -> None:
        if commit.unless is not None and self._get([_note_key(*commit.unless)]):
            raise FencedError(commit.unless)
        if isinstance(commit, Commit):
            self._check_record(commit)
        seen: set[bytes] = set()
        for note in commit.notes:
            key = _note_key(note.scope, note.key)
            if key in seen or self._get([key]):
                raise NoteExistsError(note)
            seen.add(key)

    def _check_record(self, commit: Commit) -> None:
        info = commit.info
        asked = {
            _record(each) for each in (info.checkpoint_id, commit.base, info.parent_id) if each
        }
        there = self._get(asked)
        if _record(info.checkpoint_id) in there:
            raise CheckpointConflictError(info.checkpoint_id)
        if commit.base is not None and _record(commit.base) not in there:
            raise MissingBaseError
        if commit.needs_parent and info.parent_id and _record(info.parent_id) not in there:
            raise MissingParentError
        if commit.follows is not None:
            last = self._last(info)
            if commit.follows != ("" if last is None else last.info.checkpoint_id):
                raise NotTheHeadError

    def _last(self, info: CheckpointInfo) -> _Placed | None:
        """Return the last record of the session of a record."""
        prefix = _session(info.agent_id, info.session_id)
        for _, checkpoint_id in self._scan(*_within(prefix), reverse=True):
            return self._placed([checkpoint_id.decode()])[0]
        return None

    def _recorded(self, commit: Commit) -> dict[bytes, bytes]:
        info = commit.info
        if commit.behind is None:
            last = self._last(info)
            before = [] if last is None else [last.place]
        else:
            before = [each.place for each in self._placed(commit.behind)]
        placed = _Placed(place_after(info.created_at, max(before, default=None)), info)
        value = pack([placed.place, plain_of(info.__dict__)])
        named = _text(info.checkpoint_id)
        session = _session(info.agent_id, info.session_id)
        return {
            _record(info.checkpoint_id): value,
            session + placed.end: named,
            b"t" + placed.end: named,
        }

    def _noted(self, notes: Collection[Note], now: int) -> dict[bytes, bytes]:
        last = int(self._get([b"m"]).get(b"m", b"0"))
        puts: dict[bytes, bytes] = {}
        for note in notes:
            last = max(now * NOTE_TIES, last + 1)
            until = None if note.expires_at is None else microseconds(note.expires_at)
            place = b"%020d" % last
            puts[_note_key(note.scope, note.key)] = place
            puts[_scope(note.scope) + place] = pack(
                [note.scope, note.key, note.body, note.checksum, until, last]
            )
        return {**puts, b"m": b"%d" % last} if notes else {}

    def _placed(self, checkpoint_ids: Iterable[str]) -> list[_Placed]:
        """Return those of the records that there are; a damaged one is an error."""
        keys = [_record(each) for each in checkpoint_ids]
        there = self._get(keys)
        return [_read_record(key, there[key]) for key in keys if key in there]

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        self._check_open()
        placed = self._placed([checkpoint_id])
        if not placed or placed[0].info.is_expired():
            return None
        info = placed[0].info
        try:
            return Record(info, gather(bytes.fromhex(info.content_id), self.fetch, verify))
        except CheckpointIntegrityError as error:
            raise CheckpointIntegrityError(checkpoint_id, error.reason) from None

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        self._check_open()
        there = self._get([_chunk(name) for name in names])
        return {key[1:]: value[8:] for key, value in there.items()}

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        self._check_open()
        now = datetime.now(UTC)
        if scopes is None:
            ranges = [_within(b"n")]
        else:
            ranges = [_past(scope, after) for scope in sorted(set(scopes))]
        found: list[Note] = []
        for bounds in ranges:
            notes = (_read_note(value) for _, value in self._scan(*bounds))
            wanted = (note for note in notes if note.seq > after and not note.is_expired(now))
            found += wanted if scopes is None else islice(wanted, limit)
        return sorted(found, key=lambda note: note.seq)[:limit]

    def last_notes(self, scopes: Collection[str], count: int) -> list[Note]:
        """Return of each of these scopes the last notes that have not expired, in their order."""
        self._check_open()
        now = datetime.now(UTC)
        found: list[Note] = []
        for scope in set(scopes):
            newest = self._scan(*_within(_scope(scope)), reverse=True)
            notes = (_read_note(value) for _, value in newest)
            found += islice((note for note in notes if not note.is_expired(now)), count)
        return sorted(found, key=lambda note: note.seq)

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        self._check_open()
        start, stop = _within(_record(prefix))
        found = (key[1:].decode() for key, _ in self._scan(max(start, _record(after)), stop))
        return list(islice((each for each in found if each > after), limit))

    def query(self, query: Query) -> list[CheckpointInfo]:
        self._check_open()
        now = datetime.now(UTC)
        found = (each.info for each in self._candidates(query) if query.admits(each.info, now))
        return list(islice(found, query.limit))

    def _candidates(self, query: Query) -> Iterator[_Placed]:
        """Give the records that may be asked for, in their order."""
        bound = None
        if query.before is not None:
            before = self._placed([query.before])
            if not before:
                return
            bound = before[0].end
        if query.ids is not None:
            placed = sorted(self._placed(set(query.ids)), key=lambda each: each.end)
            older = (each for each in placed if bound is None or each.end < bound)
            yield from older if query.oldest_first else reversed(list(older))
            return
        prefix = b"t"
        if query.agent_id is not None and query.session_id is not None:
            prefix = _session(query.agent_id, query.session_id)
        start, stop = _within(prefix)
        if bound is not None:
            stop = prefix + bound
        for _, checkpoint_id in self._scan(start, stop, reverse=not query.oldest_first):
            yield from self._placed([checkpoint_id.decode()])

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        self._check_open()
        ids, removed = list(dict.fromkeys(checkpoint_ids)), 0
        for start in range(0, len(ids), _PART):  # whoever saves comes in between
            with self._alone():
                removed += self._delete(ids[start : start + _PART])
            reach("upkeep:part")
        return removed

    def _delete(self, checkpoint_ids: Collection[str]) -> int:
        gone = self._placed(checkpoint_ids)
        keys = [key for each in gone for key in _keys_of(each)]
        for scope in checkpoint_ids:
            for key, value in self._scan(*_within(_scope(scope))):
                keys += [key, _note_key(scope, _read_note(value).key)]
        self._write({}, keys)
        return len(gone)

    def sweep(self, now: datetime) -> int:
        self._check_open()
        expired = [each.info.checkpoint_id for each in self._all() if each.info.is_expired(now)]
        with self._alone():
            keys = []
            for key, value in self._scan(*_within(b"n")):
                note = _read_note(value)
                if note.is_expired(now):
                    keys += [key, _note_key(note.scope, note.key)]
            self._write({}, keys)
        return self.delete(expired)

    def _all(self) -> list[_Placed]:
        return [_read_record(*pair) for pair in self._scan(*_within(b"r"))]

    def collect(self, live: Container[bytes], before: datetime, dry_run: bool) -> Collected:
        self._check_open()
        until, sizes = microseconds(before), list[int]()
        for first in range(256):  # names are hashes: each part is as large as any other
            with self._alone():
                dead = {
                    key: len(value) - 8
                    for key, value in self._scan(*_within(_chunk(bytes([first]))))
                    if int.from_bytes(value[:8], "big") < until and key[1:] not in live
                }
                if dead and not dry_run:
                    self._write({}, dead.keys())
            sizes += dead.values()
            reach("upkeep:part")
        return Collected(len(sizes), sum(sizes))

    def stats(self) -> Stats:
        self._check_open()
        infos = [each.info for each in self._all() if not each.info.is_expired()]
        chunks = [len(value) - 8 for _, value in self._scan(*_within(b"c"))]
        return Stats.of(infos, chunks)


def _text(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _past(scope: str, after: int) -> tuple[bytes, bytes]:
    """Return where the notes of a scope past a place begin, and where those of the scope end."""
    start, stop = _within(_scope(scope))
    return start + b"%020d" % max(after + 1, 0), stop


def _within(prefix: bytes) -> tuple[bytes, bytes]:
    """Return where the keys that begin so begin and end."""
    head = prefix.rstrip(b"\xff")
    return prefix, head[:-1] + bytes([head[-1] + 1])


def _record(checkpoint_id: str) -> bytes:
    return b"r" + _text(checkpoint_id)


def _chunk(name: bytes) -> bytes:
    return b"c" + name


def _session(agent_id: str, session_id: str) -> bytes:
    return b"s%b\0%b\0" % (_text(agent_id), _text(session_id))


def _scope(scope: str) -> bytes:
    return b"n%b\0" % _text(scope)


def _note_key(scope: str, key: str) -> bytes:
    return b"k%b\0%b" % (_text(scope), _text(key))


def _keys_of(placed: _Placed) -> tuple[bytes, ...]:
    info = placed.info
    session = _session(info.agent_id, info.session_id)
    return _record(info.checkpoint_id), session + placed.end, b"t" + placed.end


def _read_record(key: bytes, value: bytes) -> _Placed:
    try:
        place, plain = unpack(value, "raw")
        return _Placed(int(place), info_of_plain(plain))
    except (TypeError, ValueError, CheckpointIntegrityError) as error:
        shown = key[1:].decode("utf-8", "replace")
        raise CheckpointIntegrityError(shown, f"unreadable record ({error})") from None


def _read_note(value: bytes) -> Note:
    try:
        scope, key, body, checksum, until, seq = unpack(value, "raw")
        end = None if until is None else moment(until)
        return replace(Note(scope, key, body, checksum, end), seq=seq)
    except (TypeError, ValueError) as error:
        raise CheckpointIntegrityError(None, f"unreadable note ({error})") from None
