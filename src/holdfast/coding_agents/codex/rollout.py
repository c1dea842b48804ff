"""The records of a rollout, in which Codex keeps a thread: ``{"type", "payload", "ordinal"…}``.

Items that the model is sent are ``response_item``; what became of a call (its exit code, too) is an
``event_msg``; a turn begins with ``task_started``. What is not known is kept as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.core.short_repr import brief
from holdfast.errors import TranscriptError

Record = Mapping[str, Any]

FORKED = ("forked_from_id", "forked_from_ordinal_exclusive", "history_base")
"""What a thread that Codex forked says of the one whose beginning it shares."""
_NONE: Record = {}


def readable(entries: Iterable[Any]) -> list[Record]:
    """Return the records among the entries of a file.

    A line that is no JSON was cut short when Codex was killed, and Codex itself passes it over.
    """
    found: list[Record] = []
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, str):
            continue
        if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
            raise TranscriptError(
                f"record {number} of the rollout is not as Codex writes it: {brief(entry, 100)}"
            )
        found.append(entry)
    return found


def payload(record: Any) -> Record:
    """Return what a record is about; nothing if it does not say."""
    about = record.get("payload") if isinstance(record, Mapping) else None
    return about if isinstance(about, Mapping) else _NONE


def thread_of(records: Sequence[Record]) -> str:
    """Return the id of a thread, which its first record tells."""
    first = records[0] if records else None
    thread = payload(first).get("id")
    if first is None or first["type"] != "session_meta" or not isinstance(thread, str):
        found = "nothing" if first is None else brief(first["type"], 60)
        raise TranscriptError(
            f"a rollout of Codex begins with a session_meta that has an id; found {found}"
        )
    return thread


def call_of(record: Record) -> str | None:
    """Return the id of a call that the model makes with a record."""
    return _id_of_item(record, "_call")


def output_of(record: Record) -> str | None:
    """Return the id of the call whose output a record is."""
    return _id_of_item(record, "_output")


def _id_of_item(record: Record, end: str) -> str | None:
    item = payload(record)
    kind, call = item.get("type"), item.get("call_id")
    if record["type"] != "response_item" or not isinstance(kind, str) or not kind.endswith(end):
        return None
    return call if isinstance(call, str) else None


def event(record: Record) -> str | None:
    """Return which event a record tells of."""
    kind = payload(record).get("type")
    return kind if record["type"] == "event_msg" and isinstance(kind, str) else None


def turn_of(record: Record) -> str | None:
    """Return the turn that a record belongs to."""
    about = payload(record)
    within = about.get("internal_chat_message_metadata_passthrough")
    turn = about.get("turn_id") or (within.get("turn_id") if isinstance(within, Mapping) else None)
    return turn if isinstance(turn, str) else None


def item_of(record: Record) -> Record:
    """Return the item that a record says is completed; nothing if it says no such thing."""
    item = payload(record).get("item") if event(record) == "item_completed" else None
    return item if isinstance(item, Mapping) else _NONE


def completed_item(entries: Sequence[Any], call_id: str) -> Record | None:
    """Return what became of a call; None if it had not ended."""
    for entry in reversed(entries):
        if isinstance(entry, Mapping) and isinstance(entry.get("type"), str):
            item = item_of(entry)
            if item.get("id") == call_id:
                return item
    return None


def failure(item: Record) -> dict[str, Any] | None:
    """Return how a call failed; None if it did not."""
    code = item.get("exit_code")
    has_code = isinstance(code, int) and code != 0
    if not has_code and item.get("status") not in ("failed", "declined"):
        return None
    return {"status": item.get("status"), **({"exit_code": code} if has_code else {})}


def prompt_text(record: Record) -> str | None:
    """Return what a user says with a record; None if it is none of a user's."""
    item = payload(record)
    if record["type"] != "response_item" or (item.get("type"), item.get("role")) != (
        "message",
        "user",
    ):
        return None
    parts = item.get("content")
    texts = (
        [each.get("text") for each in parts if isinstance(each, Mapping)]
        if (isinstance(parts, list))
        else []
    )
    return "\n".join(each for each in texts if isinstance(each, str))


def base_of(records: Sequence[Any]) -> tuple[str, int] | None:
    """Return the thread that a forked one shares its beginning with, and how many of its records.

    Codex writes only what is new into the rollout of a fork.
    """
    meta = payload(records[0]) if records else _NONE
    base = meta.get("history_base")
    if not isinstance(base, Mapping):
        return None
    thread, end = base.get("thread_id"), base.get("end_ordinal_exclusive")
    if not isinstance(thread, str) or not isinstance(end, int):
        raise TranscriptError(f"the history_base of a rollout is not as known: {brief(base, 100)}")
    return thread, end


def joined(base: Sequence[Record], end: int, fork: Sequence[Record]) -> list[Record]:
    """Return a forked thread as a whole: the beginning it shares, and what is its own."""
    meta = {name: value for name, value in payload(fork[0]).items() if name not in FORKED}
    shared = [
        record for number, record in enumerate(base) if number and _ordinal(record, number) < end
    ]
    return [{**fork[0], "payload": meta}, *shared, *fork[1:]]


def _ordinal(record: Record, number: int) -> int:
    ordinal = record.get("ordinal")
    return ordinal if isinstance(ordinal, int) else number
