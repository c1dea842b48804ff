"""Notes and the verbs that look after a store: gc, verify, export and import_."""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    CheckpointIntegrityError,
    HoldfastError,
    InvalidArgumentError,
    StoreFormatError,
    SyncClient,
)
from holdfast.core.codec import pack
from holdfast.errors import NoteExistsError
from holdfast.stores.base import Note
from holdfast.testing.samples import make_commit, make_note
from holdfast.verbs import notes
from tests.acceptance.conftest import OpenClient
from tests.clients import STORES, url_of

NEVER_SAVED = "01900000-0000-7000-8000-000000000000"


def large(seed: int) -> dict[str, Any]:
    return {"words": [f"{seed} {i} " + "said and done " * 20 for i in range(200)], "kept": (seed,)}


def write(client: SyncClient, scope: str, key: str, value: Any, **options: Any) -> None:
    written = notes.NoteBatch()
    written.add(client.runtime.engine, scope, key, value, **options)
    client.runtime.run(written.write())


def read(client: SyncClient, *scopes: str) -> list[tuple[str, str, Any]]:
    found = client.runtime.run(notes.read(client.runtime.engine, scopes or None))
    return [(note.scope, note.key, value) for note, value in found]


def put_away(client: SyncClient, *kept: Note) -> None:
    """Write notes as they are, past the verb that makes them."""
    client.store.commit(replace(make_commit(session_id="hidden"), notes=kept))


def test_a_note_is_read_as_it_was_written(client: SyncClient) -> None:
    saved = client.save("coder")

    write(client, saved, "small", {"at": (1, 2)})
    write(client, "/events", "large", large(1))

    assert read(client) == [(saved, "small", {"at": (1, 2)}), ("/events", "large", large(1))]
    with pytest.raises(NoteExistsError):
        write(client, saved, "small", "again")


@pytest.mark.parametrize("name", ["", " ", "\ud800", "a\x00b", "x" * 1025, 5])
def test_a_name_that_no_store_could_keep_is_refused(client: SyncClient, name: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="scope"):
        write(client, name, "key", 1)
    with pytest.raises(InvalidArgumentError, match="key"):
        write(client, "/scope", name, 1)
    assert read(client) == []


def test_collecting_never_touches_what_notes_need(client: SyncClient) -> None:
    saved = client.save("coder", execution_state=large(1))
    write(client, saved, "large", large(1))
    write(client, "/events", "large", large(2))
    client.expire(client.save("coder", execution_state=large(3)))

    client.gc(grace_seconds=0)

    assert read(client) == [(saved, "large", large(1)), ("/events", "large", large(2))]
    assert client.verify().ok


def test_collecting_takes_what_only_removed_notes_needed(client: SyncClient) -> None:
    saved = client.save("coder", execution_state={"small": 1})
    before = client.stats().chunks
    write(client, saved, "large", large(1))
    write(client, "/events", "gone", large(2), expires_at=datetime.now(UTC))
    client.store.delete([saved])

    client.gc(grace_seconds=0)

    assert read(client) == []
    assert client.stats().chunks == 0
    assert before or not client.store.shares_chunks


def test_collecting_removes_notes_whose_checkpoint_is_not_there(client: SyncClient) -> None:
    saved = client.save("coder")
    write(client, saved, "kept", 1)
    write(client, NEVER_SAVED, "lost", large(1))
    write(client, "/events", "kept", 2)

    assert client.gc(grace_seconds=60).chunks == 0
    assert len(read(client)) == 3
    planned = client.gc(grace_seconds=0, dry_run=True)
    assert len(read(client)) == 3
    assert client.gc(grace_seconds=0) == planned

    assert read(client) == [(saved, "kept", 1), ("/events", "kept", 2)]
    assert bool(planned.chunks) == client.store.shares_chunks


def test_notes_of_a_checkpoint_that_is_not_there_stay_while_more_are_written(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(client, NEVER_SAVED, "old", 1)
    (old,) = client.store.notes(None)
    write(client, NEVER_SAVED, "young", 2)
    (young,) = client.store.notes(None, old.seq)
    # A grace that ends between the two.
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=young.seq // 1024)
    monkeypatch.setattr("holdfast.verbs.upkeep.datetime", clock_at(moment))

    client.gc(grace_seconds=0)
    assert len(read(client)) == 2
    monkeypatch.setattr("holdfast.verbs.upkeep.datetime", clock_at(moment + timedelta(seconds=1)))
    client.gc(grace_seconds=0)
    assert read(client) == []


def clock_at(moment: datetime) -> Any:
    class Clock:
        @staticmethod
        def now(zone: Any) -> datetime:
            return moment

    return Clock


def test_a_leaf_is_opened_by_collecting_if_another_calls_it_a_node(client: SyncClient) -> None:
    """Otherwise a note that lies about a chunk would lose what others keep in it."""
    if not client.store.shares_chunks:
        return
    saved = client.save("coder", execution_state=large(1))
    root = bytes.fromhex(client.find()[0].content_id)
    lie = b"\x00" + b"\xc7" + bytes((len(root), 64)) + root
    put_away(client, Note.of("/lies", "leaf", lie))

    client.gc(grace_seconds=0)

    assert client.restore(saved).execution_state == large(1)


def test_notes_in_order_verify(client: SyncClient) -> None:
    saved = client.save("coder")
    for n in range(3):
        write(client, saved, str(n), large(n))
    write(client, "/events", "small", 1)

    assert client.verify().ok


def test_any_altered_byte_of_a_note_is_noticed_in_a_document(
    open_client: OpenClient, tmp_path: Path
) -> None:
    client = open_client(f"file://{tmp_path}")
    saved = client.save("coder")
    until = datetime.now(UTC) + timedelta(days=1)
    write(client, saved, "text", {"said": "what was said", "n": (1, 2.5)}, expires_at=until)
    write(client, "/other", "whole", 1)
    (document,) = (tmp_path / ".notes" / saved).iterdir()
    whole = document.read_bytes()

    for at, mask in product(range(len(whole)), (0x01, 0x04, 0x20)):
        document.write_bytes(whole[:at] + bytes((whole[at] ^ mask,)) + whole[at + 1 :])
        with pytest.raises((CheckpointIntegrityError, StoreFormatError)) as caught:
            read(client, saved)
        if isinstance(caught.value, CheckpointIntegrityError):
            assert caught.value.checkpoint_id == saved
            assert [damage.checkpoint_id for damage in client.verify().damaged] == [saved]
    document.write_bytes(whole)

    assert client.verify().ok
    assert read(client, "/other") == [("/other", "whole", 1)]


@pytest.mark.parametrize("column", ["scope", "key", "expires", "body", "sum"])
@pytest.mark.parametrize("value", [5, 1.5, "text", b"", b"\xc1" * 16, None])
def test_an_altered_row_of_a_note_is_noticed(
    open_client: OpenClient, tmp_path: Path, column: str, value: Any
) -> None:
    path = tmp_path / "holdfast.db"
    client = open_client(f"sqlite:///{path}")
    until = datetime.now(UTC) + timedelta(days=1)
    write(client, "/events", "altered", {"a": 1}, expires_at=until)
    write(client, "/events", "whole", {"b": 2})
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        row = f"UPDATE notes SET {column} = ? WHERE key = 'altered'"
        if value is None and column != "expires":
            with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
                db.execute(row, (value,))
            return
        db.execute(row, (value,))

    shown = client.store.notes(None)
    damaged = client.verify().damaged

    if column == "expires" and type(value) in (int, float):
        assert [note.key for note in shown] == ["whole"]  # it has expired
        return
    assert len(damaged) == 1
    assert [note.is_intact() for note in shown] == [False, True]
    with pytest.raises(CheckpointIntegrityError):
        read(client)
    with pytest.raises(CheckpointIntegrityError):
        client.gc(grace_seconds=0)


@pytest.mark.parametrize("damage", ["DELETE FROM chunks", "UPDATE chunks SET data = x'00'"])
def test_a_note_with_a_damaged_chunk_is_named(
    open_client: OpenClient, tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "holdfast.db"
    client = open_client(f"sqlite:///{path}")
    write(client, "/events", "needs it", large(1))
    write(client, "/other", "needs it too", large(1))
    write(client, "/small", "does not", 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(damage)

    damaged = client.verify().damaged

    assert [one.checkpoint_id for one in damaged] == ["/events", "/other"]
    assert "chunk" in damaged[0].reason


def fill(client: SyncClient) -> list[str]:
    saved = [client.save("coder", execution_state=large(i), session_id="s") for i in range(3)]
    write(client, saved[0], "large", large(1))
    write(client, saved[2], "small", {"at": (1, b"\x00", "\ud800")})
    write(client, saved[0], "larger", [large(2), large(3)])
    write(client, saved[0], "lives", 1, expires_at=datetime.now(UTC) + timedelta(hours=1))
    write(client, saved[0], "expired", 1, expires_at=datetime.now(UTC))
    write(client, "/events", "stays here", large(4))
    return saved


def of_checkpoints(client: SyncClient) -> list[tuple[str, str, Any]]:
    return sorted((n for n in read(client) if n[0] != "/events"), key=lambda note: note[:2])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tmp_path / "agent.holdfast"


@pytest.mark.parametrize("to", STORES)
@pytest.mark.parametrize("store", STORES)
def test_a_bundle_moves_the_notes_of_its_checkpoints(
    store: str, to: str, open_client: OpenClient, bundle: Path, tmp_path: Path
) -> None:
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    here = open_client(url_of(store, tmp_path / "from"))
    there = open_client(url_of(to, tmp_path / "to"))
    fill(here)

    exported = here.export(bundle)
    imported = there.import_(bundle)

    assert (exported.notes, imported.notes) == (4, 4)
    assert of_checkpoints(there) == of_checkpoints(here)
    assert len(read(there)) == 4
    assert there.verify().ok
    there.gc(grace_seconds=0)
    assert of_checkpoints(there) == of_checkpoints(here)


def test_importing_twice_brings_each_note_once(client: SyncClient, bundle: Path) -> None:
    with SyncClient.memory() as other:
        fill(other)
        other.export(bundle)
    client.import_(bundle)
    before = read(client)

    again = client.import_(bundle)

    assert (again.checkpoints, again.skipped, again.notes) == (0, 3, 0)
    assert read(client) == before


def test_notes_are_brought_to_checkpoints_that_are_there(client: SyncClient, bundle: Path) -> None:
    saved = fill(client)
    client.export(bundle)
    state = client.restore(saved[0]).execution_state
    before = of_checkpoints(client)
    client.store.delete(["/events"])
    with SyncClient.memory() as other:
        other.import_(bundle)
        client.expire(saved[0])
        plain = bundle.with_name("plain")
        bare(other, plain)
    client.import_(plain)
    assert client.restore(saved[0]).execution_state == state
    write(client, saved[0], "large", "another one was written meanwhile")

    imported = client.import_(bundle)

    assert (imported.checkpoints, imported.notes) == (0, 2)
    changed = [
        (s, k, "another one was written meanwhile" if k == "large" else v) for s, k, v in before
    ]
    assert of_checkpoints(client) == changed


def bare(client: SyncClient, path: Path) -> None:
    """Export all checkpoints without their notes."""
    with SyncClient.memory() as without:
        for info in reversed(client.find(limit=None)):
            without.put(client.restore(info.checkpoint_id))
        without.export(path)


def test_a_key_that_an_expired_note_holds_does_not_stop_an_import(
    client: SyncClient, bundle: Path
) -> None:
    with SyncClient.memory() as other:
        saved = other.save("coder")
        write(other, saved, "key", 1)
        write(other, saved, "second", 2)
        other.export(bundle)
    write(client, saved, "key", 0, expires_at=datetime.now(UTC))

    imported = client.import_(bundle)

    assert imported.checkpoints == 1
    assert (saved, "second", 2) in read(client)


def header_of(bundle: Path) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(bundle.read_bytes().partition(b"\n")[0])
    return header


def test_a_bundle_without_notes_can_be_read_by_the_first_release(
    client: SyncClient, bundle: Path
) -> None:
    saved = client.save("coder")
    write(client, "/events", "of no checkpoint", 1)
    write(client, NEVER_SAVED, "of another", 1)

    client.export(bundle)
    assert header_of(bundle)["version"] == 1
    assert b"of another" not in bundle.read_bytes()

    write(client, saved, "own", 1)
    client.export(bundle)
    assert header_of(bundle)["version"] == 2


@pytest.fixture
def source(bundle: Path) -> bytes:
    """A bundle with notes from elsewhere."""
    with SyncClient.memory() as client:
        fill(client)
        client.export(bundle)
    return bundle.read_bytes()


def refused(client: SyncClient, bundle: Path, data: bytes) -> HoldfastError:
    bundle.write_bytes(data)
    with pytest.raises((CheckpointIntegrityError, StoreFormatError)) as caught:
        client.import_(bundle)
    assert client.store.match("", 1) == []
    assert client.store.notes(None) == []
    return caught.value


def test_a_bundle_with_notes_that_was_damaged_is_refused_whole(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    for at in [*range(0, 150, 9), *range(150, len(source), 499), len(source) - 1]:
        altered = bytearray(source)
        altered[at] ^= 0x10
        refused(client, bundle, bytes(altered))
        refused(client, bundle, source[:at])


def resealed(source: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    """A bundle that somebody edited and gave a checksum that fits."""
    body = edit(source[:-32])
    return body + hashlib.sha256(body).digest()


def frame(kind: bytes, data: bytes) -> bytes:
    return kind + len(data).to_bytes(4, "big") + data


def plain(note: Note) -> list[Any]:
    return [note.scope, note.key, None, note.body, note.checksum]


def test_notes_that_somebody_put_into_a_bundle_are_refused(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    with SyncClient.memory() as other:
        other.import_(bundle)
        last = other.find(limit=1)[0].checkpoint_id
    good = plain(make_note(last, "new"))
    huge = make_note(last, "new", b"\x00" * 1000)
    bad: list[Any] = [
        plain(make_note(last, "small")),  # it has that key already
        plain(make_note(NEVER_SAVED)),
        plain(make_note("/events")),
        plain(make_note(last, "\ud800")),
        plain(make_note(last, "")),
        plain(Note.of(last, "new", b"")),
        plain(Note.of(last, "new", b"\x07")),
        plain(Note.of(last, "new", b"\x00\xc1")),
        plain(Note.of(last, "new", huge.body[:-4])),
        plain(Note.of(last, "new", b"\x00\xc7\x14\x41" + b"\x01" * 20)),  # a chunk it has not
        [*good[:4], b"\x00" * 20],
        [*good[:2], 10**30, *good[3:]],
        [*good[:2], "soon", *good[3:]],
        [*good[:3], "text", good[4]],
        [*good, 1],
        good[:4],
        [5, *good[1:]],
        {},
        None,
    ]

    for data in bad:
        refused(client, bundle, resealed(source, with_frames(frame(b"n", pack(data)))))
    for data in (b"", b"\xc1", pack(good)[:-1]):
        refused(client, bundle, resealed(source, with_frames(frame(b"n", data))))
    bundle.write_bytes(resealed(source, with_frames(frame(b"n", pack(good)))))
    assert client.import_(bundle).notes == 5


def with_frames(added: bytes) -> Callable[[bytes], bytes]:
    def edit(body: bytes) -> bytes:
        end = frame(b"e", b"")
        return body.removesuffix(end) + added + end

    return edit


def test_notes_in_a_bundle_that_claims_to_have_none_are_refused(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    older = resealed(source, lambda body: body.replace(b'"version": 2', b'"version": 1', 1))

    refused(client, bundle, older)
