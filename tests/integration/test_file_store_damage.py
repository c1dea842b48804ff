"""Damage to documents of the file store: every changed byte is found and named."""

import os
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.chunk_decoder import decode
from holdfast.errors import (
    CheckpointIntegrityError,
    StoreFormatError,
)
from holdfast.stores.base import Query
from holdfast.stores.file.store import FileStore
from tests.integration.file_store_kit import document_of, make_commit, save, state_of


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


def changes(byte: int) -> set[int]:
    """A byte changed in every bit, and into what a lenient reader may take for the same."""
    return {byte ^ (1 << bit) for bit in range(8)} | {0, 9, 10, 13, 32} - {byte}


@pytest.mark.parametrize("fmt", ["json", "pickle"])
def test_any_changed_byte_is_found(tmp_path: Path, fmt: Any) -> None:
    store = FileStore(tmp_path, fmt)
    state = ["text", 1e22, 5, b"\xff", b"\xfe\xff", None, "\x1f"]
    checkpoint_id = save(store, state, metadata={"a": 1.5e300})
    path = document_of(tmp_path, checkpoint_id)
    whole = path.read_bytes()

    missed = []
    with path.open("r+b", buffering=0) as file:
        for at, byte in enumerate(whole):
            for changed in changes(byte):
                os.pwrite(file.fileno(), bytes([changed]), at)
                try:
                    store.load(checkpoint_id)
                    missed.append((at, changed))
                except (CheckpointIntegrityError, StoreFormatError):
                    pass
            os.pwrite(file.fileno(), bytes([byte]), at)

    assert not missed
    assert state_of(store, checkpoint_id) == state


@pytest.mark.parametrize("fmt", ["json", "pickle"])
def test_a_cut_off_document_is_found(tmp_path: Path, fmt: Any) -> None:
    store = FileStore(tmp_path, fmt)
    checkpoint_id = save(store, {"a": "state"})
    path = document_of(tmp_path, checkpoint_id)

    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        for read in (lambda: store.load(checkpoint_id), lambda: store.query(Query())):
            with pytest.raises(CheckpointIntegrityError, match=checkpoint_id):
                read()


def test_a_damaged_document_is_matched_and_can_be_deleted(store: FileStore, tmp_path: Path) -> None:
    checkpoint_id = save(store)
    document_of(tmp_path, checkpoint_id).write_bytes(b"\x00" * 100)

    assert store.match(checkpoint_id[:8], 10) == [checkpoint_id]
    assert store.sweep(datetime.now(UTC)) == 0
    assert store.delete([checkpoint_id]) == 1
    assert store.query(Query()) == []


def test_a_document_may_be_edited_by_hand_and_read_unverified(
    store: FileStore, tmp_path: Path
) -> None:
    checkpoint_id = save(store, {"retries": 3})
    path = document_of(tmp_path, checkpoint_id)
    path.write_text(path.read_text().replace('"retries": 3', '"retries":   15'))

    record = store.load(checkpoint_id, verify=False)

    assert record is not None
    state = decode(bytes.fromhex(record.info.content_id), record.chunks)["execution_state"]
    assert state == {"retries": 15}


def test_a_document_under_another_id_is_found(store: FileStore, tmp_path: Path) -> None:
    first, second = save(store, 1), save(store, 2)
    document_of(tmp_path, first).replace(document_of(tmp_path, second))

    with pytest.raises(CheckpointIntegrityError, match=second):
        store.load(second)


def test_a_document_in_another_session_is_found(store: FileStore, tmp_path: Path) -> None:
    checkpoint_id = save(store, 1, session_id="a")
    save(store, 2, session_id="b")
    document_of(tmp_path, checkpoint_id).rename(tmp_path / "coder" / "b" / f"{checkpoint_id}.json")

    with pytest.raises(CheckpointIntegrityError, match=checkpoint_id):
        store.load(checkpoint_id)
    with pytest.raises(CheckpointIntegrityError, match=checkpoint_id):
        store.query(Query(session_id="b"))


def test_a_payload_with_a_right_hash_but_of_another_state_is_found(
    store: FileStore, tmp_path: Path
) -> None:
    first, second = make_commit("one"), make_commit("two")
    store.commit(first)
    store.commit(second)
    one, two = (document_of(tmp_path, c.info.checkpoint_id) for c in (first, second))
    tail = re.compile(rb'"bytes": .*', re.DOTALL)
    two.write_bytes(tail.sub(b"", two.read_bytes()) + tail.findall(one.read_bytes())[0])

    with pytest.raises(CheckpointIntegrityError, match="not that of its content id"):
        store.load(second.info.checkpoint_id)


@pytest.mark.parametrize(
    "info",
    ["5", "{}", "null", '{"$type": "tuple", "value": []}', "[" * 5000 + "]" * 5000],
    ids=lambda info: info[:20],
)
def test_a_record_of_another_shape_is_found(store: FileStore, tmp_path: Path, info: str) -> None:
    checkpoint_id = save(store)
    head = f'{{"holdfast": 1, "info": {info}, "bytes": 4, "sha256": "",\n'
    document_of(tmp_path, checkpoint_id).write_text(head + "1}\n\n")

    with pytest.raises(CheckpointIntegrityError, match=checkpoint_id):
        store.query(Query())


@pytest.mark.parametrize("field", ["agent_id", "step_index", "created_at", "metadata", "framework"])
def test_a_field_of_another_type_is_found(store: FileStore, tmp_path: Path, field: str) -> None:
    checkpoint_id = save(store)
    path = document_of(tmp_path, checkpoint_id)
    text = re.sub(rf'"{field}": ("[^"]*"|\d+|{{}})', f'"{field}": [[]]', path.read_text(), count=1)
    path.write_text(text)

    with pytest.raises(CheckpointIntegrityError, match=checkpoint_id):
        store.load(checkpoint_id, verify=False)


def test_a_document_that_says_its_place_is_guarded_as_well(
    store: FileStore, tmp_path: Path
) -> None:
    first = save(store)
    commit = make_commit()
    info = commit.info.with_(created_at=datetime(2020, 1, 1, tzinfo=UTC))
    store.commit(replace(commit, info=info))
    moved = info.checkpoint_id
    path = document_of(tmp_path, moved)
    whole = path.read_text()
    place = whole[whole.index('"seq": ') + 7 :].partition("}")[0].partition(",")[0]
    assert [info.checkpoint_id for info in store.query(Query())] == [moved, first]

    for at, digit in enumerate(place):
        other = f"{place[:at]}{(int(digit) + 1) % 10}{place[at + 1 :]}"
        path.write_text(whole.replace(f'"seq": {place}', f'"seq": {other}', 1))
        with pytest.raises(CheckpointIntegrityError):
            store.load(moved)


def test_a_document_of_a_newer_format_is_told_apart(store: FileStore, tmp_path: Path) -> None:
    checkpoint_id = save(store)
    path = document_of(tmp_path, checkpoint_id)
    path.write_text(path.read_text().replace('"holdfast": 1', '"holdfast": 3', 1))

    with pytest.raises(StoreFormatError, match=r"format 3.*upgrade Holdfast"):
        store.load(checkpoint_id)
