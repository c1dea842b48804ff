"""The file store: readable documents, any name, nothing overwritten."""

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.chunk_decoder import decode
from holdfast.core.raw import Raw
from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    InvalidArgumentError,
    MissingBaseError,
    MissingParentError,
    SerializationError,
)
from holdfast.stores.base import Query
from holdfast.stores.file.store import FileStore
from tests.integration.file_store_kit import (
    document_of,
    expired,
    files_below,
    make_commit,
    save,
    state_of,
)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


@dataclass
class Tool:
    name: str
    uses: int = 0


def test_a_checkpoint_is_one_json_document(store: FileStore, tmp_path: Path) -> None:
    state = {"messages": [{"role": "user", "content": "schön"}], "size": (3, 4)}
    checkpoint_id = save(store, state, step_index=7, metadata={"branch": "main"})

    text = (tmp_path / "coder" / "s" / f"{checkpoint_id}.json").read_text("utf-8")

    document = json.loads(text)
    assert document["info"]["step_index"] == 7
    assert document["info"]["metadata"] == {"branch": "main"}
    assert document["payload"]["execution_state"] == {
        "messages": [{"role": "user", "content": "schön"}],
        "size": {"$type": "tuple", "value": [3, 4]},
    }
    assert "schön" in text


def test_a_saved_state_is_loaded_with_the_chunks_it_had(store: FileStore) -> None:
    state = {
        "long": [{"i": i, "at": (i, b"\xff")} for i in range(3000)],
        "text": "line\n" * 5000,
        "keys": {1: {2, 3}, None: Tool("x" * 5000)},
    }
    commit = make_commit(state, metadata={"when": datetime(2024, 1, 1, tzinfo=UTC), "n": 1})
    store.commit(commit)

    record = store.load(commit.info.checkpoint_id)

    assert record is not None
    assert record.info == commit.info
    assert record.chunks.keys() == commit.chunks.keys()
    assert state_of(store, commit.info.checkpoint_id) == state


def test_listings_read_no_payload(store: FileStore, tmp_path: Path) -> None:
    checkpoint_id = save(store, "a state")
    path = document_of(tmp_path, checkpoint_id)
    path.write_bytes(path.read_bytes().replace(b"a state", b"\xff" * 7))

    assert [info.checkpoint_id for info in store.query(Query())] == [checkpoint_id]
    assert store.heads()[0].head.checkpoint_id == checkpoint_id
    with pytest.raises(CheckpointIntegrityError):
        store.load(checkpoint_id)


def test_a_state_of_unknown_classes_is_loaded_all_the_same(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint_id = save(store, Tool("grep"), metadata={"by": Tool("x")})
    monkeypatch.delitem(globals(), "Tool")

    state = state_of(store, checkpoint_id, on_unknown="raw")

    assert isinstance(state, Raw)
    assert state == {"name": "grep", "uses": 0}
    assert isinstance(store.query(Query())[0].metadata["by"], Raw)


def test_a_class_that_has_changed_since_does_not_hinder_loading(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = make_commit(Tool("grep", 3))
    store.commit(commit)
    monkeypatch.setattr(Tool, "_checkpoint_fields", lambda self: ["name"], raising=False)

    record = store.load(commit.info.checkpoint_id)

    assert record is not None
    assert record.chunks.keys() == commit.chunks.keys()


NAMES = [
    "..",
    ".",
    "../../../../tmp/outside",
    "/etc/passwd",
    "a/b",
    "a%2Fb",
    "a\\b",
    ".hidden",
    ".tmp-0",
    "~",
    "~" * 90,
    "x.json",
    "two\nlines",
    "ünïcödé",
    "名" * 1024,
    "x" * 1024,
    "x" * 1023 + "y",
    " spaces ",
    "CON",
    "%",
    "*?",
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:30])
def test_any_name_stays_within_the_directory(tmp_path: Path, name: str) -> None:
    root = tmp_path / "above" / "root"
    store = FileStore(root)

    checkpoint_id = save(store, "s", agent_id=name, session_id=name)

    (path,) = files_below(tmp_path)
    assert path.parent.parent.parent == root
    assert state_of(FileStore(root), checkpoint_id) == "s"
    found = store.query(Query(agent_id=name, session_id=name))
    assert [(info.agent_id, info.session_id) for info in found] == [(name, name)]


def test_no_two_names_are_taken_for_each_other(store: FileStore) -> None:
    saved = {name: save(store, agent_id=name, session_id=name) for name in NAMES}

    for name, checkpoint_id in saved.items():
        assert [i.checkpoint_id for i in store.query(Query(agent_id=name))] == [checkpoint_id]
    assert {(s.agent_id, s.session_id) for s in store.heads()} == {(n, n) for n in NAMES}


@pytest.mark.parametrize("name", ["..", "../../x", "/etc/x", ".tmp-1", "a b", "é", "%2E"])
def test_an_odd_checkpoint_id_stays_within_the_directory(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    store = FileStore(root)

    save(store, "s", checkpoint_id=name)

    assert [path.parent for path in files_below(tmp_path)] == [root / "coder" / "s"]
    assert store.match(name[:2], 5) == [name]
    assert state_of(store, name) == "s"


def test_a_checkpoint_id_too_long_for_a_file_is_refused(store: FileStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="an id of 300 characters"):
        save(store, checkpoint_id="x" * 300)

    assert store.load("x" * 300) is None
    assert files_below(tmp_path) == []


def test_files_that_are_not_documents_are_left_alone(store: FileStore, tmp_path: Path) -> None:
    checkpoint_id = save(store)
    for path in (tmp_path / "README.txt", tmp_path / "coder" / "x", tmp_path / "coder/s/notes.txt"):
        path.write_text("mine")

    assert [info.checkpoint_id for info in store.query(Query())] == [checkpoint_id]
    store.sweep(datetime.now(UTC))
    store.delete([checkpoint_id])
    assert len(files_below(tmp_path)) == 3


def test_an_id_is_never_overwritten(store: FileStore) -> None:
    commit = make_commit("first")
    store.commit(commit)
    second = make_commit("second", checkpoint_id=commit.info.checkpoint_id)

    with pytest.raises(CheckpointConflictError, match=commit.info.checkpoint_id):
        store.commit(second)

    assert state_of(store, commit.info.checkpoint_id) == "first"


@pytest.mark.parametrize(("fmt", "session_id"), [("pickle", "s"), ("json", "other")])
def test_an_id_is_taken_in_every_session_and_form(
    tmp_path: Path, fmt: Any, session_id: str
) -> None:
    checkpoint_id = save(FileStore(tmp_path), "first")

    with pytest.raises(CheckpointConflictError):
        save(FileStore(tmp_path, fmt), checkpoint_id=checkpoint_id, session_id=session_id)

    assert len(files_below(tmp_path)) == 1
    assert not (tmp_path / "coder" / "other").exists()


def test_a_parent_that_is_not_there_is_missed(store: FileStore) -> None:
    commit = make_commit(parent_id="no-such-parent")

    with pytest.raises(MissingParentError):
        store.commit(commit)
    store.commit(replace(commit, needs_parent=False))


def test_a_parent_may_be_in_another_session(store: FileStore) -> None:
    parent = save(store, session_id="a")

    save(store, session_id="b", parent_id=parent)

    assert len(store.query(Query(parent_id=parent))) == 1


def test_a_commit_without_all_its_chunks_is_refused(store: FileStore, tmp_path: Path) -> None:
    commit = make_commit(["x" * 2000, "y" * 2000])

    with pytest.raises(MissingBaseError):
        store.commit(replace(commit, base=save(store), chunks={}))
    with pytest.raises(CheckpointIntegrityError, match=commit.info.checkpoint_id):
        store.commit(replace(commit, chunks={}))

    assert len(files_below(tmp_path)) == 1


def test_a_record_that_does_not_fit_its_checksum_is_refused(store: FileStore) -> None:
    commit = make_commit()

    with pytest.raises(CheckpointIntegrityError, match="checksum"):
        store.commit(replace(commit, info=replace(commit.info, step_index=5)))


def test_an_expired_checkpoint_is_not_shown_and_swept(store: FileStore, tmp_path: Path) -> None:
    old, kept = expired(make_commit(session_id="old")), save(store)
    store.commit(old)

    assert store.load(old.info.checkpoint_id) is None
    assert [info.checkpoint_id for info in store.query(Query())] == [kept]
    assert store.match(old.info.checkpoint_id, 5) == [old.info.checkpoint_id]
    assert store.stats().checkpoints == 1
    assert store.sweep(datetime.now(UTC)) == 1
    assert store.match("", 5) == [kept]
    assert not (tmp_path / "coder" / "old").exists()


def test_deleting_the_last_checkpoint_leaves_no_directory(store: FileStore, tmp_path: Path) -> None:
    checkpoint_id = save(store)

    assert store.delete([checkpoint_id, "no-such-id"]) == 1
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    assert save(store)


def test_pages_and_tags_are_those_asked_for(store: FileStore) -> None:
    ids = [save(store, i, metadata={"n": i, "even": i % 2 == 0}) for i in range(5)]

    first = [i.checkpoint_id for i in store.query(Query(limit=2))]
    second = [i.checkpoint_id for i in store.query(Query(limit=2, before=first[-1]))]

    assert first + second == ids[:0:-1]
    assert [i.metadata["n"] for i in store.query(Query(tags={"even": True}))] == [4, 2, 0]
    assert [i.metadata["n"] for i in store.query(Query(tags={"n": 1}))] == [1]
    assert store.query(Query(ids=[ids[2], "x"]))[0].checkpoint_id == ids[2]
    assert store.match("", 2, after=ids[1]) == ids[2:4]


def test_stats_count_the_bytes_of_the_files(store: FileStore, tmp_path: Path) -> None:
    save(store, "a")
    save(store, "b", session_id="t")

    stats = store.stats()

    assert (stats.checkpoints, stats.sessions, stats.chunks) == (2, 2, 0)
    assert stats.stored_bytes == sum(path.stat().st_size for path in files_below(tmp_path))
    assert store.collect([], datetime.now(UTC), dry_run=False).chunks == 0
    assert store.fetch([b"x" * 20]) == {}


unpickled: list[str] = []


class Loud:
    """Says so when it is unpickled; only pickle keeps it, for data must not trigger a __del__."""

    def __init__(self) -> None:
        self.name = "loud"

    def __setstate__(self, state: dict[str, Any]) -> None:
        unpickled.append(state["name"])
        self.__dict__.update(state)

    def __del__(self) -> None:
        pass


@pytest.mark.parametrize("fmt", ["json", "pickle"])
def test_a_store_that_may_keep_pickled_values_does(tmp_path: Path, fmt: Any) -> None:
    store = FileStore(tmp_path, fmt, allow_pickle=True)

    checkpoint_id = save(store, {"pattern": re.compile("x")})

    state = state_of(store, checkpoint_id, allow_pickle=True)
    assert state["pattern"] == re.compile("x")


@pytest.mark.parametrize("fmt", ["json", "pickle"])
def test_a_store_unpickles_nothing(tmp_path: Path, fmt: Any) -> None:
    store = FileStore(tmp_path, fmt, allow_pickle=True)
    commit = make_commit({"bad": Loud()}, allow_pickle=True)
    unpickled.clear()

    store.commit(commit)
    record = store.load(commit.info.checkpoint_id)

    assert record is not None
    assert unpickled == []
    decode(bytes.fromhex(record.info.content_id), record.chunks, allow_pickle=True)
    assert unpickled == ["loud"]


def test_a_store_without_leave_lists_pickled_documents_but_does_not_load_them(
    tmp_path: Path,
) -> None:
    checkpoint_id = save(FileStore(tmp_path, "pickle"), {"a": 1})
    store = FileStore(tmp_path)

    assert document_of(tmp_path, checkpoint_id).suffix == ".pkl"
    assert [info.checkpoint_id for info in store.query(Query())] == [checkpoint_id]
    with pytest.raises(SerializationError, match=f"{checkpoint_id}.*allow_pickle=True"):
        store.load(checkpoint_id)
    assert state_of(FileStore(tmp_path, allow_pickle=True), checkpoint_id) == {"a": 1}


def test_a_store_for_pickle_reads_json_documents(tmp_path: Path) -> None:
    checkpoint_id = save(FileStore(tmp_path), {"a": 1})

    assert state_of(FileStore(tmp_path, "pickle"), checkpoint_id) == {"a": 1}


def test_the_first_line_of_a_pickled_document_is_readable(tmp_path: Path) -> None:
    checkpoint_id = save(FileStore(tmp_path, "pickle"), {"a": 1}, step_name="test")

    line = document_of(tmp_path, checkpoint_id).read_bytes().split(b"\n")[0]

    assert json.loads(line)["info"]["step_name"] == "test"
