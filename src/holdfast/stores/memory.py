"""A store in memory: real in every respect, gone with the process."""

from __future__ import annotations

import threading
from bisect import insort
from collections.abc import Collection, Container, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, takewhile

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
from holdfast.model import CheckpointInfo, microseconds
from holdfast.model.fields import RICH
from holdfast.stores.async_base import AsyncStore, at_once
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
from holdfast.system.forks import Locked
from holdfast.system.threads import Threads

_PART = 1000


class MemoryStore(Locked, Store):
    """Keeps checkpoints in this process; every value that goes in or out is a copy."""

    is_volatile = True

    def __init__(self) -> None:
        super().__init__()
        self._infos: dict[str, CheckpointInfo] = {}
        self._places: dict[str, int] = {}
        self._sessions: dict[tuple[str, str], list[tuple[int, str]]] = {}
        """The records of each session, in the order of their places."""
        self._chunks: dict[bytes, tuple[bytes, datetime]] = {}
        self._notes: dict[str, dict[str, Note]] = {}
        self._last_seq = 0
        self._commits = 0
        self._removals = 0
        self._closed = False

    @property
    def name(self) -> str:
        return "the memory store"

    def _open(self) -> threading.Lock:
        if self._closed:
            raise StoreClosedError(self.name)
        return self._lock

    def async_store(self, threads: Threads) -> AsyncStore:
        return at_once(self)

    def commit(self, commit: Commit | NotesOnly) -> None:
        with self._open():
            if commit.unless is not None and commit.unless[1] in self._keys(commit.unless[0]):
                raise FencedError(commit.unless)
            if isinstance(commit, Commit):
                self._check(commit)
            elif commit.removals not in (None, self._removals):
                raise MissingBaseError
            self._check_keys(commit.notes)
            self._commits += 1
            now = datetime.now(UTC)
            for name, stored in commit.chunks.items():
                self._chunks[name] = (stored, now)
            for note in commit.notes:
                self._last_seq = max(microseconds(now) * NOTE_TIES, self._last_seq + 1)
                self._notes.setdefault(note.scope, {})[note.key] = replace(note, seq=self._last_seq)
            for scope, key in commit.instead_of:
                self._notes.get(scope, {}).pop(key, None)
            if isinstance(commit, Commit):
                self._place(commit)

    def _place(self, commit: Commit) -> None:
        info = commit.info
        session = self._sessions.setdefault((info.agent_id, info.session_id), [])
        if commit.behind is None:
            last = session[-1][0] if session else None
        else:
            before = [self._places[each] for each in commit.behind if each in self._places]
            last = max(before, default=None)
        seq = place_after(info.created_at, last)
        insort(session, (seq, info.checkpoint_id))
        self._places[info.checkpoint_id] = seq
        self._infos[info.checkpoint_id] = _copy(info)

    def _check(self, commit: Commit) -> None:
        info = commit.info
        if info.checkpoint_id in self._infos:
            raise CheckpointConflictError(info.checkpoint_id)
        if commit.base is not None and commit.base not in self._infos:
            raise MissingBaseError
        if commit.needs_parent and info.parent_id and info.parent_id not in self._infos:
            raise MissingParentError
        session = self._sessions.get((info.agent_id, info.session_id))
        if commit.follows is not None and commit.follows != (session[-1][1] if session else ""):
            raise NotTheHeadError

    def _keys(self, scope: str) -> Collection[str]:
        return self._notes.get(scope, {}).keys()

    def _check_keys(self, notes: Collection[Note]) -> None:
        seen: set[tuple[str, str]] = set()
        for note in notes:
            if note.key in self._keys(note.scope) or (note.scope, note.key) in seen:
                raise NoteExistsError(note)
            seen.add((note.scope, note.key))

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        with self._open():
            info = self._infos.get(checkpoint_id)
            if info is None or info.is_expired():
                return None
            root = bytes.fromhex(info.content_id)
            try:
                return Record(_copy(info), gather(root, self._stored, verify))
            except CheckpointIntegrityError as error:
                raise CheckpointIntegrityError(checkpoint_id, error.reason) from None

    def _stored(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        return {name: self._chunks[name][0] for name in names if name in self._chunks}

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        with self._open():
            return self._stored(names)

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        now = datetime.now(UTC)
        with self._open():
            wanted = self._notes if scopes is None else set(scopes)
            found = [note for scope in wanted for note in self._newest(scope, now, after)]
        return sorted(found, key=lambda note: note.seq)[:limit]

    def last_notes(self, scopes: Collection[str], count: int) -> list[Note]:
        now = datetime.now(UTC)
        with self._open():
            parts = [islice(self._newest(scope, now), count) for scope in set(scopes)]
            found = [note for part in parts for note in part]
        return sorted(found, key=lambda note: note.seq)

    def _newest(self, scope: str, now: datetime, after: int = 0) -> Iterator[Note]:
        """Give the notes of a scope past a place that have not expired, the last first."""
        newest = reversed(self._notes.get(scope, {}).values())
        past = takewhile(lambda note: note.seq > after, newest)
        return (note for note in past if not note.is_expired(now))

    def tick(self) -> int:
        with self._open():
            return self._commits + self._removals

    def removals(self) -> int:
        with self._open():
            return self._removals

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        with self._open():
            found = sorted(i for i in self._infos if i.startswith(prefix) and i > after)
        return found[:limit]

    def query(self, query: Query) -> list[CheckpointInfo]:
        now = datetime.now(UTC)
        with self._open():
            named = self._infos if query.ids is None else self._infos.keys() & set(query.ids)
            asked = (self._infos[each] for each in named)
            admitted = [info for info in asked if query.admits(info, now)]
            places = {info.checkpoint_id: self._place_of(info.checkpoint_id) for info in admitted}
            bound = self._place_of(query.before) if query.before in self._places else None
        is_reversed = not query.oldest_first
        found = sorted(admitted, key=lambda info: places[info.checkpoint_id], reverse=is_reversed)
        if query.before is not None:
            found = [i for i in found if bound is not None and places[i.checkpoint_id] < bound]
        return [_copy(info) for info in found[: query.limit]]

    def _place_of(self, checkpoint_id: str) -> tuple[int, str]:
        return self._places[checkpoint_id], checkpoint_id

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        with self._open():
            self._removals += 1
            for scope in checkpoint_ids:
                self._notes.pop(scope, None)
            return sum(self._remove(each) for each in checkpoint_ids)

    def _remove(self, checkpoint_id: str) -> bool:
        info = self._infos.pop(checkpoint_id, None)
        if info is not None:
            session = self._sessions[info.agent_id, info.session_id]
            session.remove((self._places.pop(checkpoint_id), checkpoint_id))
            if not session:
                del self._sessions[info.agent_id, info.session_id]
        return info is not None

    def sweep(self, now: datetime) -> int:
        with self._open():
            self._removals += 1
            expired = [i for i, info in self._infos.items() if info.is_expired(now)]
            for scope, notes in list(self._notes.items()):
                left = {key: note for key, note in notes.items() if not note.is_expired(now)}
                self._notes[scope] = left
                if not left:
                    del self._notes[scope]
        return self.delete(expired)

    def collect(self, live: Container[bytes], before: datetime, dry_run: bool) -> Collected:
        with self._open():
            names = list(self._chunks)
        sizes: list[int] = []
        for start in range(0, len(names), _PART):  # whoever saves comes in between
            with self._open():
                sizes += self._collect(names[start : start + _PART], live, before, dry_run)
            reach("upkeep:part")
        return Collected(len(sizes), sum(sizes))

    def _collect(
        self, names: list[bytes], live: Container[bytes], before: datetime, dry_run: bool
    ) -> list[int]:
        there = {name: self._chunks[name] for name in names if name in self._chunks}
        dead = [name for name, (_, at) in there.items() if at < before and name not in live]
        if not dry_run:
            self._removals += 1
            for name in dead:
                del self._chunks[name]
        return [len(there[name][0]) for name in dead]

    def stats(self) -> Stats:
        with self._open():
            infos = [info for info in self._infos.values() if not info.is_expired()]
            return Stats.of(infos, [len(stored) for stored, _ in self._chunks.values()])

    def close(self) -> None:
        self._closed = True


def _copy(info: CheckpointInfo) -> CheckpointInfo:
    """Return the same record with values of its own, so that no caller can reach into the store."""
    own = unpack(pack({name: info.__dict__[name] for name in RICH}), "raw")
    return CheckpointInfo.of({**info.__dict__, **own})
