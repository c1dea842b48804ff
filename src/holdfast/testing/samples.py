"""Records and chunks as clients make them, for tests that speak to a store directly."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.core.chunk_decoder import decode
from holdfast.core.chunk_encoder import encode
from holdfast.core.chunk_format import compress, decompress
from holdfast.core.codec import pack, unpack
from holdfast.model import CheckpointInfo, new_info
from holdfast.stores.base import Commit, Note, NotesOnly, Record, Store

STEP = {"step": 1}
NEVER_SAVED = "01900000-0000-7000-8000-000000000000"


def large_state(seed: int = 0) -> dict[str, Any]:
    """Return a state of several chunks; those of different seeds share some of them."""
    return {
        "messages": [f"message {i}: " + "words of a talk " * 20 for i in range(200)],
        "notes": f"{seed} " + "something to remember " * 200,
    }


def make_commit(
    state: Any = STEP, *, base: Commit | None = None, needs_parent: bool = True, **fields: Any
) -> Commit:
    """Return a commit as a client would make it: whole, or without the chunks of another one."""
    encoded = encode({"execution_state": state, "agent_context": {}})
    info = new_info(agent_id="agent", session_id="session")
    return Commit(
        info.with_(content_id=encoded.root.hex(), size=encoded.size, **fields),
        {
            name: compress(raw)
            for name, raw in encoded.chunks.items()
            if base is None or name not in base.chunks
        },
        None if base is None else base.info.checkpoint_id,
        needs_parent,
    )


def state_of(record: Record | None) -> Any:
    """Return the state that a loaded record holds."""
    assert record is not None, "the record is not there"
    return decode(bytes.fromhex(record.info.content_id), record.chunks)["execution_state"]


def make_note(
    scope: str = "/log", key: str = "note", value: Any = None, expires_at: datetime | None = None
) -> Note:
    """Return a note that needs no chunks."""
    return Note.of(scope, key, compress(pack(value)), expires_at)


def keep_notes(store: Store, *notes: Note) -> list[Note]:
    """Commit each of these alone, and give them back."""
    for note in notes:
        store.commit(NotesOnly((note,), {}))
    return list(notes)


def value_of(note: Note) -> Any:
    """Return the value of a note that needs no chunks."""
    return unpack(decompress(note.body))


def expired() -> dict[str, Any]:
    """Fields of a record whose time has passed."""
    return {"created_at": datetime.now(UTC) - timedelta(seconds=60), "ttl_seconds": 30}


def keep(store: Store, *commits: Commit) -> list[Commit]:
    """Commit all of these, and give them back."""
    for commit in commits:
        store.commit(commit)
    return list(commits)


def ids(things: Iterable[Commit | CheckpointInfo]) -> list[str]:
    """Return the ids of commits or records, in their order."""
    infos = (thing.info if isinstance(thing, Commit) else thing for thing in things)
    return [info.checkpoint_id for info in infos]
