"""verify and restore find every damage, name what is affected, and leave the rest usable."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    HoldfastError,
    SyncClient,
)
from tests.acceptance.conftest import OpenClient


def state(step: int) -> dict[str, Any]:
    return {"step": step, "messages": [f"message {i} " * 20 for i in range(60 + step)]}


def test_a_store_in_order_verifies(client: SyncClient) -> None:
    saved = [client.save("coder", execution_state=state(i), session_id="s") for i in range(5)]
    client.fork(saved[0])
    client.save("coder", ttl_seconds=0)
    seen: list[tuple[int, int | None]] = []

    verified = client.verify(progress=lambda done, total: seen.append((done, total)))

    assert verified.ok
    assert verified.damaged == []
    assert verified.checkpoints == 7
    assert [done for done, _ in seen] == [1, 2, 3, 4, 5, 6, 7]


def test_an_empty_store_verifies(client: SyncClient) -> None:
    verified = client.verify()

    assert (verified.ok, verified.checkpoints) == (True, 0)


def test_a_document_with_an_altered_byte_is_named(open_client: OpenClient, tmp_path: Path) -> None:
    client = open_client(f"file://{tmp_path}")
    saved = [client.save("coder", execution_state=state(i), session_id="s") for i in range(3)]
    document = tmp_path / "coder" / "s" / f"{saved[1]}.json"
    document.write_bytes(document.read_bytes().replace(b"message 7 ", b"message 8 ", 1))

    assert [damage.checkpoint_id for damage in client.verify().damaged] == [saved[1]]
    with pytest.raises(CheckpointIntegrityError, match=saved[1]):
        client.restore(saved[1])
    assert client.restore(saved[2]).execution_state == state(2)


class Damaged:
    """A store in an SQLite file that somebody writes into."""

    def __init__(self, client: SyncClient, path: Path) -> None:
        self.client = client
        self.saved = [
            client.save(
                "coder",
                execution_state=state(i),
                session_id="s",
                step_index=i,
                step_name="named",
                ttl_seconds=3600,
                tag="t",
            )
            for i in range(4)
        ]
        self.other = client.save("reviewer", execution_state={"other": True}, session_id="t")
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA synchronous = OFF")

    def key(self, number: int) -> bytes:
        return bytes.fromhex(self.saved[number].replace("-", ""))

    def alter(self, column: str, value: Any, number: int = 1) -> None:
        statement = f"UPDATE checkpoints SET {column} = ? WHERE id = ?"
        self.db.execute(statement, (value, self.key(number)))

    def value(self, column: str, number: int = 1) -> Any:
        row = self.db.execute(f"SELECT {column} FROM checkpoints WHERE id = ?", (self.key(number),))
        return row.fetchone()[0]

    def named(self) -> list[str]:
        return [damage.checkpoint_id for damage in self.client.verify().damaged]


@pytest.fixture
def damaged(open_client: OpenClient, tmp_path: Path) -> Iterator[Damaged]:
    path = tmp_path / "holdfast.db"
    damaged = Damaged(open_client(f"sqlite:///{path}"), path)
    yield damaged
    damaged.db.close()


def flipped(value: Any) -> Iterator[Any]:
    """The value with each of its bytes altered, one at a time."""
    if isinstance(value, int):
        for byte in range(7):
            yield value ^ (1 << (byte * 8))
    else:
        data = value.encode() if isinstance(value, str) else value
        for at in range(len(data)):
            for mask in (0x01, 0x80, 0xFF):
                altered = data[:at] + bytes((data[at] ^ mask,)) + data[at + 1 :]
                yield altered if isinstance(value, bytes) else altered.decode("latin-1")


@pytest.mark.parametrize(
    "column", ["id", "session", "parent", "expires", "root", "size", "body", "sum"]
)
def test_any_altered_byte_of_a_record_is_noticed(damaged: Damaged, column: str) -> None:
    client, checkpoint_id = damaged.client, damaged.saved[1]
    original, seq = damaged.value(column), damaged.value("seq")

    for altered in flipped(original):
        damaged.db.execute(f"UPDATE checkpoints SET {column} = ? WHERE seq = ?", (altered, seq))
        with pytest.raises((CheckpointIntegrityError, CheckpointNotFoundError)):
            client.restore(checkpoint_id)
        assert len(damaged.named()) == 1, altered
    damaged.db.execute(f"UPDATE checkpoints SET {column} = ? WHERE seq = ?", (original, seq))

    assert client.verify().ok
    assert client.restore(checkpoint_id).execution_state == state(1)


def test_an_altered_time_of_a_record_is_noticed(damaged: Damaged) -> None:
    for byte in range(2, 7):
        seq = damaged.value("seq")
        damaged.alter("seq", seq ^ (1 << (byte * 8)))
        with pytest.raises(CheckpointIntegrityError, match=damaged.saved[1]):
            damaged.client.restore(damaged.saved[1])
        assert damaged.named() == [damaged.saved[1]]
        damaged.alter("seq", seq)

    assert damaged.client.verify().ok


@pytest.mark.parametrize("column", ["agent", "session"])
def test_an_altered_name_of_a_session_is_noticed(damaged: Damaged, column: str) -> None:
    damaged.db.execute(f"UPDATE sessions SET {column} = 'x' WHERE session = 's'")

    assert sorted(damaged.named()) == sorted(damaged.saved)
    with pytest.raises(CheckpointIntegrityError, match=damaged.saved[0]):
        damaged.client.restore(damaged.saved[0])


def test_a_lost_session_is_noticed(damaged: Damaged) -> None:
    damaged.db.execute("DELETE FROM sessions WHERE session = 's'")

    assert sorted(damaged.named()) == sorted(damaged.saved)


@pytest.mark.parametrize("value", [None, 5, 1.5, "text", b"", b"\xc1"])
@pytest.mark.parametrize("column", ["root", "size", "body", "sum", "parent", "expires"])
def test_a_value_of_another_type_is_noticed(damaged: Damaged, column: str, value: Any) -> None:
    if value is None and column not in ("parent", "expires"):
        value = b"\x00"  # the file itself refuses to hold none there
    damaged.alter(column, value)

    with pytest.raises((CheckpointIntegrityError, CheckpointNotFoundError)):
        damaged.client.restore(damaged.saved[1])
    assert damaged.named() == [damaged.saved[1]]
    assert damaged.client.restore(damaged.saved[2]).execution_state == state(2)


def test_two_records_that_were_swapped_are_noticed(damaged: Damaged) -> None:
    for column in ("body", "root", "sum"):
        first, second = damaged.value(column, 1), damaged.value(column, 2)
        damaged.alter(column, second, 1)
        damaged.alter(column, first, 2)

        assert sorted(damaged.named()) == sorted(damaged.saved[1:3])
        damaged.alter(column, first, 1)
        damaged.alter(column, second, 2)


def test_any_altered_byte_of_a_chunk_is_noticed(damaged: Damaged) -> None:
    client, checkpoint_id = damaged.client, damaged.saved[1]
    root = damaged.value("root")
    (original,) = damaged.db.execute("SELECT data FROM chunks WHERE name = ?", (root,)).fetchone()
    assert len(original) > 50

    for altered in flipped(original):
        damaged.db.execute("UPDATE chunks SET data = ? WHERE name = ?", (altered, root))
        with pytest.raises(CheckpointIntegrityError, match=checkpoint_id):
            client.restore(checkpoint_id)
    assert damaged.named() == [checkpoint_id]
    damaged.db.execute("UPDATE chunks SET data = ? WHERE name = ?", (original, root))

    assert client.restore(checkpoint_id).execution_state == state(1)


@pytest.mark.parametrize("damage", ["deleted", "altered", "cut", "emptied", "of another type"])
def test_every_checkpoint_that_needs_a_damaged_chunk_is_named_and_no_other(
    damaged: Damaged, damage: str
) -> None:
    shared = next(
        name
        for (name,) in damaged.db.execute("SELECT name FROM chunks ORDER BY seq").fetchall()
        if all(name in needed_by(damaged, number) for number in range(4))
    )
    damaged.db.execute(
        {
            "deleted": "DELETE FROM chunks WHERE name = ?",
            "altered": "UPDATE chunks SET data = zeroblob(length(data)) WHERE name = ?",
            "cut": "UPDATE chunks SET data = substr(data, 1, 20) WHERE name = ?",
            "emptied": "UPDATE chunks SET data = x'' WHERE name = ?",
            "of another type": "UPDATE chunks SET data = 'text' WHERE name = ?",
        }[damage],
        (shared,),
    )

    assert sorted(damaged.named()) == sorted(damaged.saved)
    for checkpoint_id in damaged.saved:
        with pytest.raises(CheckpointIntegrityError, match=checkpoint_id):
            damaged.client.restore(checkpoint_id)
    assert damaged.client.restore(damaged.other).execution_state == {"other": True}


def needed_by(damaged: Damaged, number: int) -> set[bytes]:
    record = damaged.client.store.load(damaged.saved[number])
    assert record is not None
    return set(record.chunks)


def test_a_chunk_under_another_name_is_noticed(damaged: Damaged) -> None:
    root = damaged.value("root")
    damaged.db.execute("UPDATE chunks SET name = zeroblob(20) WHERE name = ?", (root,))

    assert damaged.named() == [damaged.saved[1]]


def test_listings_name_a_damaged_record_rather_than_leave_it_out(damaged: Damaged) -> None:
    damaged.alter("body", b"\xc1")

    for listing in (
        lambda: damaged.client.timeline("coder", "s"),
        lambda: damaged.client.find(),
        lambda: damaged.client.tree("coder", "s"),
        lambda: damaged.client.prune(last=1),
    ):
        with pytest.raises(CheckpointIntegrityError, match=damaged.saved[1]):
            listing()


def test_a_damaged_checkpoint_can_be_removed_and_all_is_well_again(damaged: Damaged) -> None:
    damaged.alter("body", b"\xc1")

    assert damaged.client.expire(damaged.saved[1])

    assert damaged.client.verify().ok
    assert len(damaged.client.timeline("coder", "s")) == 3


def test_collecting_in_a_damaged_store_takes_nothing_that_is_needed(damaged: Damaged) -> None:
    root = damaged.value("root")
    damaged.db.execute("UPDATE chunks SET data = x'00' WHERE name = ?", (root,))

    with pytest.raises(CheckpointIntegrityError):
        damaged.client.gc(grace_seconds=0)

    for number in (0, 2, 3):
        restored = damaged.client.restore(damaged.saved[number])
        assert restored.execution_state == state(number)


def test_saving_a_state_again_mends_its_damaged_chunks(damaged: Damaged, tmp_path: Path) -> None:
    damaged.db.execute("UPDATE chunks SET data = zeroblob(length(data))")

    with SyncClient.sqlite(tmp_path / "holdfast.db") as another:
        saved = another.save("coder", execution_state=state(1))

        assert another.restore(saved).execution_state == state(1)
        assert another.restore(damaged.saved[1]).execution_state == state(1)


def test_without_verifying_a_record_with_a_wrong_checksum_is_restored(damaged: Damaged) -> None:
    damaged.alter("sum", bytes(32))

    with pytest.raises(CheckpointIntegrityError, match="its checksum does not fit"):
        damaged.client.restore(damaged.saved[1])
    assert damaged.client.restore(damaged.saved[1], verify=False).execution_state == state(1)


@pytest.mark.parametrize("part", range(4))
def test_no_altered_byte_of_the_whole_file_gives_a_wrong_state(tmp_path: Path, part: int) -> None:
    path = tmp_path / "holdfast.db"
    saved = save_steps(path)
    whole = path.read_bytes()
    chance = random.Random(part)

    for at in chance.sample(range(len(whole)), 60):
        altered = bytearray(whole)
        altered[at] ^= 1 << chance.randrange(8)
        path.write_bytes(altered)
        try:
            with SyncClient.sqlite(path) as client:
                for checkpoint_id, step in saved.items():
                    assert restored_or_refused(client, checkpoint_id) in (None, state(step))
        except HoldfastError:
            pass  # it cannot even be opened, and says so


def save_steps(path: Path, steps: int = 4) -> dict[str, int]:
    with SyncClient.sqlite(path) as client:
        return {
            client.save("coder", execution_state=state(i), session_id="s"): i for i in range(steps)
        }


def restored_or_refused(client: SyncClient, checkpoint_id: str) -> Any:
    try:
        return client.restore(checkpoint_id).execution_state
    except HoldfastError:
        return None


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_file_is_noticed(tmp_path: Path, fraction: float) -> None:
    path = tmp_path / "holdfast.db"
    saved = save_steps(path, steps=40)  # so many that the end of the file is not an empty index
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * fraction)])

    with pytest.raises(HoldfastError), SyncClient.sqlite(path) as client:
        assert [client.restore(i).execution_state["step"] for i in saved] == [*range(40)]


def test_notes_that_lead_to_what_was_removed_are_loose_and_no_damage() -> None:
    with SyncClient.memory() as client:
        with client.session("coder", session_id="s") as run:
            run.checkpoint("one")
        newest, before = client.timeline("coder", "s")[:2]
        client.expire(newest.checkpoint_id)

        verified = client.verify()

    assert verified.ok
    for each in verified.loose:
        assert each.checkpoint_id == before.checkpoint_id
        assert newest.checkpoint_id in each.reason


ODD_TAGS: list[Any] = [1, True, 1.0, "1", b"1", None, [1], {"a": 1}, (1, 2)]


def test_whatever_is_tagged_forked_pruned_and_brought_in_is_filed(
    client: SyncClient, tmp_path: Path
) -> None:
    saved = [
        client.save("coder", execution_state=state(0), session_id="s", odd=tag, turn=number)
        for number, tag in enumerate(ODD_TAGS * 2)
    ]
    client.fork(saved[3])
    client.export(tmp_path / "bundle")
    client.prune(last=2, tags={"odd": True})
    client.expire(saved[-1])
    client.import_(tmp_path / "bundle")

    assert client.verify().damaged == []


def test_a_session_that_is_filed_as_touched_too_early_is_named(damaged: Damaged) -> None:
    damaged.db.execute("UPDATE sessions SET touched = touched - 1 WHERE session = 't'")

    (found,) = damaged.client.verify().damaged

    assert found.checkpoint_id == damaged.other
    assert "touched before it" in found.reason


def test_a_session_that_is_filed_as_touched_later_does_no_harm(damaged: Damaged) -> None:
    damaged.db.execute("UPDATE sessions SET touched = touched + 1")

    assert damaged.client.verify().ok


def test_a_tag_by_which_its_session_is_not_filed_is_named(damaged: Damaged) -> None:
    damaged.db.execute("DELETE FROM tags")
    assert damaged.client.find(tags={"tag": "t"}) == []

    found = damaged.client.verify().damaged

    assert [each.checkpoint_id for each in found] == damaged.saved
    assert {each.reason for each in found} == {
        "its session is not filed by its tags, so find misses it: 'tag'"
    }
