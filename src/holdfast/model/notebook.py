"""Records as notebooks show them: one as a card, a list of them as a table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, SupportsIndex, TypeVar, overload

from holdfast.core.html_form import Literally, Row, escaped, facts, field_of, table
from holdfast.core.value_paths import child_path
from holdfast.model.fields import Header

T = TypeVar("T")
_ROWS = 50
_PARTS = 20
_DONE = ("completed", "done")


class Timeline(list[T]):
    """Checkpoints, the newest first: a list that notebooks show as a table."""

    __slots__ = ()

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> Timeline[T]: ...

    def __getitem__(self, at: SupportsIndex | slice) -> T | Timeline[T]:
        found = super().__getitem__(at)
        return Timeline(found) if isinstance(at, slice) else found  # type: ignore[arg-type,return-value]

    def _repr_html_(self) -> str:
        shown = self[:_ROWS]
        places = {
            _place(each): (field_of(each, "agent_id"), field_of(each, "session_id"))
            for each in shown
        }
        several = len(places) > 1
        heads = ["step", "name", *(["agent", "session"] if several else [])]
        heads += ["time", "tags", "size", "checkpoint"]
        counted = f"{len(self):,} checkpoint{'' if len(self) == 1 else 's'}"
        about = [counted, *([] if several else next(iter(places.values()), ()))]
        rows = (Row(_cells(each, several)) for each in shown)
        return table("Timeline", about, heads, rows, _ROWS, len(self))


def _place(info: Any) -> tuple[str, str]:
    return escaped(field_of(info, "agent_id")), escaped(field_of(info, "session_id"))


def _cells(info: Any, several: bool) -> list[Any]:
    if not isinstance(info, Header):  # the list is the user's to change
        return ["", Literally(info)]
    names = ["agent_id", "session_id"] if several else []
    return [
        *(field_of(info, each) for each in ("step_index", "step_name", *names, "created_at")),
        _tags(info),
        _size(info),
        field_of(info, "checkpoint_id"),
    ]


def _tags(info: Header) -> Any:
    tags = field_of(info, "metadata")
    return None if type(tags) is dict and not tags else tags


def card(info: Header) -> str:
    """Return what is known of a checkpoint as HTML, with its state where it has one."""
    pairs = [
        ("checkpoint", field_of(info, "checkpoint_id")),
        ("parent", field_of(info, "parent_id")),
        ("step", field_of(info, "step_index")),
        ("name", field_of(info, "step_name")),
        ("time", field_of(info, "created_at")),
        ("expires", field_of(info, "expires_at")),
        ("framework", field_of(info, "framework")),
        ("tags", _tags(info)),
        ("offered to", field_of(info, "handoff_target")),
        ("size", _size(info)),
        *_parts("$", field_of(info, "execution_state")),
        *_parts("context", field_of(info, "agent_context")),
        ("tasks", _counted(field_of(info, "tasks"))),
        ("effects", _counted(field_of(info, "effects"))),
        ("files", None if field_of(info, "workspace") is None else "kept"),
    ]
    about = (field_of(info, "agent_id"), field_of(info, "session_id"))
    return facts("Checkpoint", about, (pair for pair in pairs if pair[1] is not None))


def _parts(root: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Give a value by its first level of paths, where it is a dict."""
    if type(value) is not dict:
        if value is not None:
            yield root, Literally(value)
        return
    for key, part in islice(value.items(), _PARTS):
        yield child_path(root, key), Literally(part)
    if len(value) > _PARTS:
        yield root, f"… and {len(value) - _PARTS:,} more"


def _size(info: Header) -> str | None:
    size = field_of(info, "size")
    return f"{size:,} B" if type(size) is int and abs(size) < 2**63 else None


def _counted(parts: Any) -> str | None:
    """Return how many tasks or effects there are, and how many of them are done."""
    if type(parts) not in (list, tuple) or not parts:
        return None
    has_older = type(parts[0]) is list  # calls that are so old that a link stands for them
    done = sum(type(each) is dict and each.get("status") in _DONE for each in parts)
    older = ", and older ones" if has_older else ""
    return f"{done:,} of {len(parts) - has_older:,} done{older}"
