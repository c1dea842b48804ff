"""Notes: values written down about a checkpoint, or under a name, that never change it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.core.chunk_decoder import decode, references
from holdfast.core.chunk_encoder import encode
from holdfast.core.chunk_format import chunk_id, decompress, uncompressed
from holdfast.core.codec import OnUnknown, Trusts, pack
from holdfast.errors import CheckpointIntegrityError, StoreError
from holdfast.model import checked_name
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Fence, Note, NotesOnly, unfold
from holdfast.stores.capabilities import FindsLastNotes
from holdfast.verbs.links import copy_linked


class NoteBatch:
    """Notes to be written, alone or with a checkpoint, and the chunks they need."""

    def __init__(self) -> None:
        self.notes: tuple[Note, ...] = ()
        self.chunks: dict[bytes, bytes] = {}
        self.linked: Mapping[bytes, bool] = {}
        """Chunks that what is written links to, each with whether it refers to more: they are
        there as long as a checkpoint is that links to them too."""
        self.instead_of: tuple[Fence, ...] = ()
        """The scopes and keys of notes that mean nothing beside these."""

    def take_linked(self) -> Plan[None]:
        """Write all that is linked once more: the checkpoint that had it may have been removed."""
        linked, self.linked = self.linked, {}
        try:
            yield from copy_linked(linked, set(), self.chunks.update)
        except CheckpointIntegrityError as error:
            raise StoreError(
                "what this save links to was removed, with the checkpoints that held it "
                f"({error.reason}): nothing was saved, open the session again"
            ) from error

    def add(
        self, engine: Engine, scope: str, key: str, value: Any, expires_at: datetime | None = None
    ) -> None:
        """Add a value, under a key that its scope must not have yet."""
        checked_name("the scope of a note", scope)
        checked_name("the key of a note", key)
        if engine.shares_chunks:
            encoded = encode(
                value, seed=engine.seed, allow_pickle=engine.allow_pickle, as_stored=True
            )
            chunks = {**encoded.chunks}
            body = chunks.pop(encoded.root)
            self.chunks.update(chunks)
        else:
            body = uncompressed(pack(value, engine.allow_pickle))
        self.notes += (Note.of(scope, key, body, expires_at),)

    def write(self, unless: Fence | None = None, is_quiet: bool = False) -> Plan[None]:
        """Write them, all or none; NoteExistsError if a scope has one of the keys.

        FencedError if the note that is given is there. Nobody is woken by those that are quiet.
        """
        written = NotesOnly(
            self.notes, self.chunks, unless=unless, instead_of=self.instead_of, is_quiet=is_quiet
        )
        yield from steps.commit(written)


def read(
    engine: Engine,
    scopes: Collection[str] | None,
    after: int = 0,
    limit: int | None = None,
    on_unknown: OnUnknown = "raise",
    trusts: Trusts | None = None,
) -> Plan[list[tuple[Note, Any]]]:
    """Return notes in the order they were written, each with its value."""
    found = yield from steps.notes(scopes, after, limit)
    return (yield from with_values(engine, found, on_unknown, trusts))


def last(engine: Engine, scopes: Collection[str], count: int) -> Plan[list[Note]]:
    """Return the last notes of each of some scopes; or more of them, if the store cannot tell."""
    if engine.can(FindsLastNotes):
        return (yield from steps.last_notes(scopes, count))
    return (yield from steps.notes(scopes))


def read_last(
    engine: Engine, scopes: Collection[str], count: int, on_unknown: OnUnknown = "raise"
) -> Plan[list[tuple[Note, Any]]]:
    """Return the last notes of each of some scopes, each with its value; or more of them."""
    found = yield from last(engine, scopes, count)
    return (yield from with_values(engine, found, on_unknown))


def with_values(
    engine: Engine,
    notes: Sequence[Note],
    on_unknown: OnUnknown = "raise",
    trusts: Trusts | None = None,
) -> Plan[list[tuple[Note, Any]]]:
    """Return notes that were read, each with its value."""
    roots: list[bytes] = []
    whole: dict[bytes, bytes] = {}
    for note in notes:
        check(note)
        raw = decompress(note.body)
        roots.append(chunk_id(raw))
        whole[roots[-1]] = raw
    beneath_them = yield from beneath(whole.values())
    chunks = {**beneath_them, **whole}
    pickles = engine.allow_pickle
    values = [
        decode(root, chunks, on_unknown=on_unknown, allow_pickle=pickles, trusts=trusts)
        for root in roots
    ]
    return list(zip(notes, values, strict=True))


def check(note: Note) -> None:
    """Refuse a note that does not fit its checksum."""
    if not note.is_intact():
        raise CheckpointIntegrityError(
            note.scope, f"its note {note.key!r} was altered after it was written"
        )


def needs_of(note: Note) -> list[tuple[bytes, bool]]:
    """Return the chunks a note needs beside its body, each with whether it may refer to more."""
    check(note)
    try:
        return references(decompress(note.body), links=True)
    except CheckpointIntegrityError as error:
        reason = f"its note {note.key!r} cannot be read ({error.reason})"
        raise CheckpointIntegrityError(note.scope, reason) from None


def beneath(roots: Iterable[bytes]) -> Plan[Mapping[bytes, bytes]]:
    """Return all chunks that these unpacked ones refer to, proven."""
    level: dict[bytes, bool] = {}
    for raw in roots:
        level.update(references(raw))
    return (yield from unfold(level, {}, steps.fetch))
