"""What every store does, and the words it is asked in.

A store moves bytes: it keeps records (CheckpointInfo), chunks (named, compressed, opaque) and notes
(small, ordered, attached to a checkpoint or a name). Of what is in a chunk it reads nothing but
the names of other chunks (``gather``). Twelve methods; ``holdfast.testing`` has the suite that
proves them, and ``holdfast.stores.capabilities`` what some stores do beyond them.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import (
    Callable,
    Collection,
    Container,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

from holdfast._lazy import renamed
from holdfast.core.chunk_decoder import DEFAULT_LIMITS, check_unfolded, references
from holdfast.core.chunk_format import chunk_id
from holdfast.core.codec import pack
from holdfast.errors import CheckpointIntegrityError, InvalidArgumentError
from holdfast.model import CheckpointInfo, microseconds
from holdfast.stores.async_base import AsyncStore, in_threads
from holdfast.stores.shared.held_chunks import HeldChunks
from holdfast.stores.shared.unpacking import unpacked

if TYPE_CHECKING:
    from holdfast.system.threads import Threads

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Note:
    """What was written down about a checkpoint after it was made, or about a name; never changed.

    A write of a LangGraph task that finished before its step did is one, and so is an event.
    """

    scope: str
    """The id of the checkpoint it belongs to and is removed with, or a name that begins with /."""
    key: str
    """Its own name, there once in a scope."""
    body: bytes
    """The root chunk of its value, compressed; what it refers to is kept as chunks."""
    checksum: bytes
    expires_at: datetime | None = None
    seq: int = 0
    """Given by the store, greater than that of every earlier note of the scope.

    Microseconds since 1970 when it was written, times 1024, and then counting up.
    """

    @classmethod
    def of(cls, scope: str, key: str, body: bytes, expires_at: datetime | None = None) -> Note:
        """Return a note with the checksum that fits."""
        return cls(scope, key, body, note_checksum(scope, key, body, expires_at), expires_at)

    def is_intact(self) -> bool:
        """Return whether it is as it was when it was written."""
        return self.checksum == note_checksum(self.scope, self.key, self.body, self.expires_at)

    def is_expired(self, now: datetime) -> bool:
        """Return whether its time has passed."""
        return self.expires_at is not None and now >= self.expires_at


def note_checksum(scope: str, key: str, body: bytes, expires_at: datetime | None) -> bytes:
    """SHA-256 over a note, cut to the length of chunk names."""
    until = None if expires_at is None else microseconds(expires_at)
    return chunk_id(pack([scope, key, body, until]))


def end_of_page(page: Sequence[Note], after: int) -> int:
    """Return the place behind which the next page of notes begins; a circle of them is damage."""
    last = page[-1]
    if last.seq <= after:
        raise CheckpointIntegrityError(last.scope, "its notes come again behind themselves")
    return last.seq


NOTE_TIES = 1024
"""The places that a microsecond has in ``Note.seq``."""


Fence = tuple[str, str]
"""The scope and key of a note, as that which whoever takes something over writes first."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A record to be kept, with the chunks that the store may not have yet."""

    info: CheckpointInfo
    chunks: Mapping[bytes, bytes]
    base: str | None = None
    """The checkpoint whose chunks were left out because the store has them."""
    needs_parent: bool = True
    """Whether a parent that is not in the store is an error."""
    notes: tuple[Note, ...] = ()
    """To be kept together with the record; the checkpoint a note belongs to may come later."""
    unless: Fence | None = None
    """The scope and key of a note; FencedError if that is there when this is written."""
    follows: str | None = None
    """What has to be the last record of its session, "" for none at all; else NotTheHeadError."""
    behind: tuple[str, ...] | None = None
    """For a record that was written before, elsewhere: those of its session it comes behind.

    Its place among others is then that of its time. One that is written now comes behind all of
    its session.
    """
    instead_of: tuple[Fence, ...] = ()
    """The scopes and keys of notes that mean nothing beside these: a store may remove them."""


@dataclass(frozen=True, slots=True)
class NotesOnly:
    """Notes to be kept without a record, with the chunks they need."""

    notes: tuple[Note, ...]
    chunks: Mapping[bytes, bytes]
    removals: Any = None
    """What ``Store.removals`` said; MissingBaseError if it says something else by now."""
    unless: Fence | None = None
    """As that of a commit."""
    instead_of: tuple[Fence, ...] = ()
    """As those of a commit."""
    is_quiet: bool = False
    """Whether nobody waits for them: a store that wakes who waits need not."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as loaded: all chunks it needs, unpacked; those damaged or lost are missing."""

    info: CheckpointInfo
    chunks: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which records to list, the newest first; what is None does not matter."""

    ids: Collection[str] | None = None
    agent_id: str | None = None
    session_id: str | None = None
    session_prefix: str | None = None
    """Only sessions whose names begin so."""
    parent_id: str | None = None
    parent_ids: Collection[str] | None = None
    """Only children of these; for many at once."""
    handoff_target: str | None = None
    is_offered: bool = False
    """Only those that were handed off, to whomever."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    before: str | None = None
    """Only records older than this one, the last of the page before; none if it is gone."""
    oldest_first: bool = False
    """The other way round: with a limit, the oldest of them."""
    limit: int | None = None
    include_expired: bool = False

    def admits(self, info: CheckpointInfo, now: datetime) -> bool:
        """Return whether a record is asked for (``before``, order and limit left aside)."""
        return (
            (self.ids is None or info.checkpoint_id in self.ids)
            and (self.agent_id is None or info.agent_id == self.agent_id)
            and (self.session_id is None or info.session_id == self.session_id)
            and (self.session_prefix is None or info.session_id.startswith(self.session_prefix))
            and (self.parent_id is None or info.parent_id == self.parent_id)
            and (self.parent_ids is None or info.parent_id in self.parent_ids)
            and (self.handoff_target is None or info.handoff_target == self.handoff_target)
            and (not self.is_offered or info.handoff_target is not None)
            and (self.since is None or info.created_at >= self.since)
            and (self.until is None or info.created_at < self.until)
            and (self.include_expired or not info.is_expired(now))
            and self.tagged(info)
        )

    def tagged(self, info: CheckpointInfo) -> bool:
        """Return whether a record has all tags that are asked for, of the same type and value."""
        return all(
            name in info.metadata
            and type(info.metadata[name]) is type(value)
            and info.metadata[name] == value
            for name, value in self.tags.items()
        )


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session: its newest checkpoint and how many it has."""

    agent_id: str
    session_id: str
    head: CheckpointInfo
    checkpoints: int

    @classmethod
    def all_of(cls, infos: Iterable[CheckpointInfo]) -> list[Self]:
        """Return the sessions of records that come newest first."""
        sessions: dict[tuple[str, str], list[CheckpointInfo]] = {}
        for info in infos:
            sessions.setdefault((info.agent_id, info.session_id), []).append(info)
        return [cls(*session, found[0], len(found)) for session, found in sessions.items()]


@dataclass(frozen=True, slots=True)
class Collected:
    """What garbage collection removed, or would remove."""

    chunks: int
    bytes: int
    unfinished: tuple[str, ...] = ()
    """Forks and exports that processes left behind when they died."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What a store holds."""

    checkpoints: int
    sessions: int
    chunks: int
    logical_bytes: int
    """Bytes of all states, each counted whole."""
    stored_bytes: int
    """Bytes of the chunks as they are kept: shared and compressed."""

    @classmethod
    def of(cls, infos: Collection[CheckpointInfo], chunks: Collection[int]) -> Self:
        """Return what there is, given the records that have not expired and the sizes of chunks."""
        return cls(
            checkpoints=len(infos),
            sessions=len({(info.agent_id, info.session_id) for info in infos}),
            chunks=len(chunks),
            logical_bytes=sum(info.size for info in infos),
            stored_bytes=sum(chunks),
        )

    @property
    def sharing(self) -> float:
        """How many times larger the states are than what is stored of them."""
        return self.logical_bytes / self.stored_bytes if self.stored_bytes else 1.0


def given(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the arguments that were given: a store of one's own may know no others."""
    return {name: value for name, value in asked.items() if value is not None}


class Store(ABC):
    """A place for checkpoints. Safe for many threads; a closed one raises StoreClosedError.

    Some do more: see ``holdfast.stores.capabilities``.
    """

    shares_chunks = True
    """Whether chunks already kept need not be sent again."""
    allow_pickle = False
    """Whether pickled values may be written and loaded."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is and where, for messages; never with a password."""

    @abstractmethod
    def commit(self, commit: Commit | NotesOnly) -> None:
        """Keep a record, its chunks and notes, all or nothing, durably.

        A record comes behind all that its session has, whatever the clocks of who wrote them said.
        Raises CheckpointConflictError for an id it has, and a RefusedError: MissingBaseError,
        MissingParentError, NoteExistsError, FencedError or NotTheHeadError. All that is looked at
        for these is looked at in the moment of writing: no other commit comes between.
        """

    @abstractmethod
    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        """Return a record with everything it needs, or None; expired ones are not there.

        A chunk that does not match its name is CheckpointIntegrityError unless ``verify`` is off.
        """

    @abstractmethod
    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        """Return those of the chunks that it has, as they were committed."""

    @abstractmethod
    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        """Notes of these scopes (of all for None) past that place, by ``seq``; no expired ones.

        A damaged one is given in its place too, with a checksum that does not fit it.
        """

    @abstractmethod
    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        """Ids that begin so, in order, past ``after``; damaged and expired records too."""

    @abstractmethod
    def query(self, query: Query) -> list[CheckpointInfo]:
        """Return the records asked for, in the order asked for; no payload is read.

        The newest of a session is what was written last on it. Between sessions time decides.
        """

    def heads(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> list[SessionInfo]:
        """Return every session, the one touched last first; of one agent, or of one name.

        With ``before`` only those whose newest record is older than this one, which is the head of
        the last of the page before; none if it is gone. All records are looked at for that, unless
        a store knows better.
        """
        asked = Query(agent_id=agent_id, session_id=session_id)
        found = SessionInfo.all_of(self.query(asked))
        if before is not None:
            older = {info.checkpoint_id for info in self.query(replace(asked, before=before))}
            found = [each for each in found if each.head.checkpoint_id in older]
        return found[:limit]

    @abstractmethod
    def delete(self, checkpoint_ids: Collection[str]) -> int:
        """Remove records and all notes of these scopes; returns how many records there were.

        Their chunks wait for ``collect``.
        """

    @abstractmethod
    def sweep(self, now: datetime) -> int:
        """Remove expired records with their notes, and expired notes; returns how many records."""

    @abstractmethod
    def collect(self, live: Container[bytes], before: datetime, dry_run: bool) -> Collected:
        """Remove chunks that are not live and were last written before then.

        In parts, so that nobody who saves waits long. ``live`` says of a name whether it is needed;
        it may hold more names than memory does, and one that was saved again meanwhile is spared.
        """

    @abstractmethod
    def stats(self) -> Stats:
        """Return what it holds."""

    @abstractmethod
    def close(self) -> None:
        """Release everything; a second call does nothing."""

    def capability(self, kind: type[C]) -> C | None:
        """Return what speaks for a capability, which is the store itself; None if it has not."""
        return self if isinstance(self, kind) else None

    def async_store(self, threads: Threads) -> AsyncStore:
        """Return the store as event loops ask it: in threads, unless it knows better."""
        return in_threads(self, threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def checked_path(path: object) -> str:
    """Return where a store lives; anything but the path of a file or directory is refused."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\x00" in text:
        raise InvalidArgumentError(f"a store lives at a path, not {path!r}")
    return text


Y = TypeVar("Y")
S = TypeVar("S")
Fetch = Callable[[Collection[bytes]], Mapping[bytes, bytes]]
_AT_A_TIME = 512
"""Chunks that are asked for in one go; together some 8 MB."""


def gather(root: bytes, fetch: Fetch, verify: bool = True) -> Mapping[bytes, bytes]:
    """Return all chunks that a root needs, unpacked and checked, fetched level by level."""

    def at_once(names: Collection[bytes]) -> Generator[None, None, Mapping[bytes, bytes]]:
        return fetch(names)
        yield  # never reached: it makes this the kind of fetch that may have to wait

    try:
        next(unfold({root: True}, {}, at_once, verify))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("nothing was waited for")


def unfold(
    level: Mapping[bytes, bool],
    at_hand: Mapping[bytes, bytes],
    fetch: Callable[[Collection[bytes]], Generator[Y, S, Mapping[bytes, bytes]]],
    verify: bool = True,
) -> Generator[Y, S, Mapping[bytes, bytes]]:
    """Yield all chunks that some need, given which of them may refer to more.

    ``fetch`` is asked for those that are not at hand, as they are stored, some at a time; it yields
    what it waits for, and so does this.
    """
    found = HeldChunks()
    inner: dict[bytes, list[bytes]] = {}
    room = DEFAULT_LIMITS.bytes
    while level:
        following: dict[bytes, bool] = {}
        for some in _parts(level):
            wanted = [name for name in some if name not in at_hand]
            stored = (yield from fetch(wanted)) if wanted else {}
            for name in wanted:
                if name not in stored:
                    raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
            fresh = unpacked({name: stored[name] for name in wanted}, verify, room)
            room -= sum(map(len, fresh.values()))
            for name in some:
                raw = fresh[name] if name in fresh else at_hand[name]
                if level[name]:
                    below = references(raw)
                    following.update(below)
                    inner[name] = [each for each, _ in below]
                found.hold(name, raw)
        level = {name: refers for name, refers in following.items() if name not in found}
    check_unfolded(found.sizes, inner)
    return found.chunks


def _parts(level: Collection[bytes]) -> Iterator[list[bytes]]:
    """Yield the names of a level, some at a time: few are there both stored and unpacked."""
    names = list(level)
    for start in range(0, len(names), _AT_A_TIME):
        yield names[start : start + _AT_A_TIME]


TIES = 1024
"""How many places for records a microsecond has."""


def seq_of(created_at: datetime) -> int:
    """Return the first place for a time."""
    return microseconds(created_at) * TIES


def place_after(created_at: datetime, last: int | None) -> int:
    """Return the place of a record: that of its time, or the next one behind the last."""
    natural = seq_of(created_at)
    return natural if last is None or last < natural else last + 1


if TYPE_CHECKING:
    pass
else:
    _REFUSALS = ("Fenced", "MissingBase", "MissingParent", "NoteExists", "NotTheHead", "Refused")
    __getattr__ = renamed(__name__, {name: f"{name}Error" for name in _REFUSALS}, "holdfast.stores")
