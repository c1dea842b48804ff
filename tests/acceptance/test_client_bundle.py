"""export and import_: checkpoints move between any two stores in one file that proves itself."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    CheckpointBuilder,
    CheckpointConflictError,
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    HoldfastError,
    InvalidArgumentError,
    StoreFormatError,
    SyncClient,
)
from holdfast.core.chunk_encoder import encode
from holdfast.testing.samples import make_commit
from tests.acceptance.conftest import OpenClient
from tests.clients import STORES, url_of

NEVER_SAVED = "01900000-0000-7000-8000-000000000000"


@dataclass
class Point:
    x: int
    y: int


def state(step: int) -> dict[str, Any]:
    return {
        "messages": [f"message {i} " * 20 for i in range(50 + step)],
        "at": Point(step, 2),
        "kept": ({1, 2}, b"\x00", "\ud800"),
    }


def fill(client: SyncClient) -> list[str]:
    saved = [
        client.save(
            "coder", "langgraph", state(i), "s", context={"i": i}, step_index=i, tag=Point(i, i)
        )
        for i in range(6)
    ]
    fork = client.fork(saved[2], session_id="fork")
    offered = client.handoff(fork, "reviewer", contract="review/1")
    built = CheckpointBuilder("coder").tasks([{"n": 1}]).effects([{"e": 2}]).ttl(3600).build()
    return [*saved, fork, offered, client.put(built)]


def everything(client: SyncClient) -> list[Any]:
    return [client.restore(info.checkpoint_id) for info in client.find(limit=None)]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tmp_path / "agent.holdfast"


@pytest.fixture
def source(bundle: Path) -> bytes:
    """A bundle from elsewhere."""
    with SyncClient.memory() as client:
        fill(client)
        client.export(bundle)
    return bundle.read_bytes()


@pytest.mark.parametrize("to", STORES)
@pytest.mark.parametrize("store", STORES)
def test_a_bundle_moves_everything_from_any_store_to_any_other(
    store: str, to: str, open_client: OpenClient, bundle: Path, tmp_path: Path
) -> None:
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    here = open_client(url_of(store, tmp_path / "from"))
    there = open_client(url_of(to, tmp_path / "to"))
    saved = fill(here)

    exported = here.export(bundle)
    imported = there.import_(bundle)

    assert exported.path == bundle
    assert exported.checkpoints == imported.checkpoints == len(saved)
    assert exported.bytes == bundle.stat().st_size
    assert imported.skipped == 0
    assert everything(there) == everything(here)
    assert there.verify().ok
    assert [s.head.checkpoint_id for s in there.sessions()] == [
        s.head.checkpoint_id for s in here.sessions()
    ]


def test_importing_twice_changes_nothing(client: SyncClient, bundle: Path, source: bytes) -> None:
    first = client.import_(bundle)
    before = everything(client)

    second = client.import_(bundle)

    assert (second.checkpoints, second.skipped) == (0, first.checkpoints)
    assert everything(client) == before


def test_what_is_there_already_is_left_as_it_is(client: SyncClient, bundle: Path) -> None:
    saved = fill(client)
    client.export(bundle)
    client.expire(saved[3])

    imported = client.import_(bundle)

    assert (imported.checkpoints, imported.skipped) == (1, len(saved) - 1)
    assert client.restore(saved[3]).execution_state == state(3)


def test_a_session_goes_on_from_what_was_imported(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    client.import_(bundle)
    latest = client.latest("coder", "s")
    assert latest is not None

    after = client.save("coder", execution_state=state(9), session_id="s")

    assert client.restore(after).parent_id == latest.checkpoint_id
    assert client.restore(after).execution_state == state(9)


def test_another_checkpoint_of_the_same_id_is_a_conflict_and_nothing_is_imported(
    client: SyncClient, bundle: Path, source: bytes, tmp_path: Path
) -> None:
    with SyncClient.memory() as other:
        other.import_(bundle)
        (last,) = other.find(session_id="s", limit=1)
    impostor = same_id_other_content(last.checkpoint_id)
    client.put(impostor)

    with pytest.raises(CheckpointConflictError, match=last.checkpoint_id):
        client.import_(bundle)

    assert everything(client) == [impostor]


def same_id_other_content(checkpoint_id: str) -> Any:
    built = CheckpointBuilder("coder").execution_state({"an": "impostor"}).build()
    encoded = encode(built.payload())
    info = built.info(encoded.root.hex(), encoded.size).with_(checkpoint_id=checkpoint_id)
    return replace(built, checkpoint_id=checkpoint_id, checksum=info.checksum)


def test_a_part_may_be_exported(client: SyncClient, bundle: Path) -> None:
    saved = fill(client)

    def exported(**choice: Any) -> set[str]:
        client.export(bundle, **choice)
        with SyncClient.memory() as other:
            other.import_(bundle)
            return {info.checkpoint_id for info in other.find(limit=None)}

    assert exported(session_id="s") == set(saved[:6])
    assert exported(agent_id="coder", session_id="fork") == set(saved[6:8])
    assert exported(ids=[saved[2], saved[4][:30]]) == {saved[2], saved[4]}
    assert exported(agent_id="nobody") == set()


def test_a_checkpoint_exported_without_its_parent_is_whole(
    client: SyncClient, bundle: Path
) -> None:
    saved = fill(client)
    client.export(bundle, ids=[saved[5]])

    with SyncClient.memory() as other:
        other.import_(bundle)

        checkpoint = other.restore(saved[5])
        assert checkpoint.execution_state == state(5)
        assert checkpoint.parent_id == saved[4]
        assert other.ancestors(saved[5]) == []


def test_shared_content_is_exported_once(client: SyncClient, bundle: Path) -> None:
    saved = client.save("coder", execution_state=state(0))
    alone = client.export(bundle).bytes
    for _ in range(20):
        client.fork(saved)

    assert client.export(bundle).bytes < 4 * alone + 20 * 500


def test_expired_checkpoints_are_neither_exported_nor_imported(
    client: SyncClient, bundle: Path
) -> None:
    client.save("coder", ttl_seconds=0)
    kept = client.save("coder")

    assert client.export(bundle).checkpoints == 1
    client.expire(kept)
    assert client.import_(bundle).checkpoints == 1


def test_progress_is_told(client: SyncClient, bundle: Path) -> None:
    fill(client)
    seen: list[tuple[int, int | None]] = []

    client.export(bundle, progress=lambda *done: seen.append(done))
    assert seen == [(i, 9) for i in range(1, 10)]

    seen.clear()
    client.import_(bundle, progress=lambda *done: seen.append(done))
    assert seen == [(i, 9) for i in range(1, 10)]


def test_an_empty_store_makes_an_empty_bundle(client: SyncClient, bundle: Path) -> None:
    assert client.export(bundle).checkpoints == 0
    assert client.import_(bundle).checkpoints == 0


def test_a_bundle_says_what_it_is(source: bytes) -> None:
    header = json.loads(source.partition(b"\n")[0])

    assert header["format"] == "holdfast-bundle"
    assert header["version"] == 1
    assert header["checkpoints"] == 9


def refused(client: SyncClient, bundle: Path, data: bytes) -> HoldfastError:
    bundle.write_bytes(data)
    with pytest.raises((CheckpointIntegrityError, StoreFormatError)) as caught:
        client.import_(bundle)
    assert client.store.match("", 1) == []
    return caught.value


def test_a_bundle_cut_short_anywhere_is_refused_whole(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    for end in [*range(0, 200, 7), *range(200, len(source), 997), len(source) - 1]:
        refused(client, bundle, source[:end])


def test_a_bundle_with_any_byte_altered_is_refused_whole(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    header = source.index(b"\n")
    for at in [*range(0, header + 40, 3), *range(header, len(source), 499), len(source) - 1]:
        altered = bytearray(source)
        altered[at] ^= 0x10
        refused(client, bundle, bytes(altered))


def test_a_bundle_with_something_after_its_end_is_refused(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    refused(client, bundle, source + b"\x00")


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"hello\n", b"{}\n", b"[]\n", b"PK\x03\x04", b'{"format": "x"}\n', b"\xff" * 9999],
)
def test_a_file_of_another_kind_is_refused(client: SyncClient, bundle: Path, data: bytes) -> None:
    error = refused(client, bundle, data)

    assert isinstance(error, StoreFormatError)
    assert "is not a Holdfast bundle" in str(error)


def test_a_bundle_of_a_newer_version_is_refused_with_the_remedy(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    error = refused(client, bundle, source.replace(b'"version": 1', b'"version": 3', 1))

    assert isinstance(error, StoreFormatError)
    assert "upgrade" in str(error)


def resealed(source: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    """A bundle that somebody edited and gave a checksum that fits."""
    body = edit(source[:-32])
    return body + hashlib.sha256(body).digest()


def test_a_bundle_edited_by_hand_is_refused_record_by_record(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    for text in (b"coder", b"langgraph", b"review/1"):
        edited = source[:-32].replace(text, text[:-1] + b"x")
        refused(client, bundle, edited + hashlib.sha256(edited).digest())


def test_a_bundle_that_holds_a_checkpoint_twice_is_refused(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    def twice(body: bytes) -> bytes:
        at = body.index(b"\n") + 1
        return body[:at] + body[at:-5] + body[at:]

    assert "twice" in str(refused(client, bundle, resealed(source, twice)))


def test_a_bundle_without_a_chunk_it_needs_names_the_checkpoint(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    def without_first_chunk(body: bytes) -> bytes:
        at = body.index(b"\n") + 1
        assert body[at : at + 1] == b"c"
        length = int.from_bytes(body[at + 1 : at + 5], "big")
        return body[:at] + body[at + 5 + length :]

    error = refused(client, bundle, resealed(source, without_first_chunk))

    assert isinstance(error, CheckpointIntegrityError)
    assert error.checkpoint_id is not None


def test_a_bundle_that_is_not_there_is_refused(client: SyncClient, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path, tmp_path / "no" / "such"):
        with pytest.raises(InvalidArgumentError, match="no bundle can be read at"):
            client.import_(path)


def test_a_place_where_no_bundle_can_be_written_is_refused(
    client: SyncClient, tmp_path: Path
) -> None:
    client.save("coder")

    with pytest.raises(InvalidArgumentError, match="is a directory"):
        client.export(tmp_path)
    with pytest.raises(InvalidArgumentError, match="no bundle can be written at"):
        client.export(tmp_path / "no" / "such" / "bundle")
    for path in ("", 5, None):
        with pytest.raises(InvalidArgumentError, match="named by a path"):
            client.export(path)  # type: ignore[arg-type]


def test_an_export_that_fails_leaves_the_bundle_that_was_there(
    client: SyncClient, bundle: Path, source: bytes
) -> None:
    client.save("coder", execution_state=state(0))

    def stop(done: int, total: int | None) -> None:
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        client.export(bundle, progress=stop)

    assert bundle.read_bytes() == source
    assert [path.name for path in bundle.parent.glob(".agent*")] == []


def test_what_is_not_there_cannot_be_exported(client: SyncClient, bundle: Path) -> None:
    for unknown in (NEVER_SAVED, "nothing"):
        with pytest.raises(CheckpointNotFoundError, match=unknown):
            client.export(bundle, ids=[unknown])
    with pytest.raises(InvalidArgumentError, match="not one string"):
        client.export(bundle, ids=NEVER_SAVED)
    assert not bundle.exists()


def test_records_that_form_a_circle_end_in_a_clear_word(
    client: SyncClient, bundle: Path, tmp_path: Path
) -> None:
    first = make_commit(session_id="s")
    second = make_commit(session_id="t", parent_id=first.info.checkpoint_id)
    looped = make_commit(
        session_id="s",
        checkpoint_id=first.info.checkpoint_id,
        parent_id=second.info.checkpoint_id,
        needs_parent=False,
    )
    with SyncClient.memory() as other:
        other.store.commit(looped)
        other.store.commit(second)
        other.export(bundle)

    (problem,) = client.import_(bundle).problems

    assert "its parents lead in a circle" in problem
    with pytest.raises(CheckpointIntegrityError, match=first.info.checkpoint_id):
        client.ancestors(first.info.checkpoint_id)
    assert len(client.tree("agent", "s")) == 2
    assert {each.checkpoint_id for each in client.verify().damaged} == {
        first.info.checkpoint_id,
        second.info.checkpoint_id,
    }
    assert client.prune(last=0, dry_run=True).kept == 0


def test_a_bundle_is_written_through_a_link_and_replaces_nothing_special(
    open_client: OpenClient, tmp_path: Path
) -> None:
    client = open_client("memory://")
    client.save("a", execution_state={"n": 1})
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "fifo")

    client.export(tmp_path / "link")
    with pytest.raises(InvalidArgumentError, match="no regular file"):
        client.export(tmp_path / "fifo")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_size
    assert (tmp_path / "fifo").is_fifo()
    assert open_client("memory://").import_(tmp_path / "link").checkpoints == 1
