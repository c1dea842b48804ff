"""The state of a checkpoint as a tree that is opened branch by branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.exits import NotFound
from holdfast.cli.output.json_schemas import TEXT, TRUTH, TYPED, WHOLE, maybe, record, several
from holdfast.core.chunk_decoder import references
from holdfast.core.chunk_format import PAGED_STR, REF_LEAF, REF_NODE
from holdfast.core.json_form import part_to_json
from holdfast.core.shallow_reader import Hole, packed
from holdfast.core.short_repr import brief
from holdfast.errors import CheckpointIntegrityError, SerializationError
from holdfast.model import check_known
from holdfast.ui.branches import Bounded, Branches, Group, Missing, index_size, is_text
from holdfast.ui.numbers import LARGEST, exact
from holdfast.ui.routes import Parameters, Route
from holdfast.ui.shapes import with_optional
from holdfast.ui.state_paths import Place, key_step, place_step, steps_of
from holdfast.ui.state_words import preview_of, type_of
from holdfast.verbs.read import verify_record

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo

SMALL = 2000
"""A value of a child is given with it if it has no more bytes."""
TEXT_PAGE = 20_000
LARGEST_VALUE = 2**20
"""A value that is no list, dict or object is given whole if it has no more bytes."""
_LARGEST_PAGE = 32 * 2**20
"""What children of a page say of themselves is read up to so many bytes."""
_MOST_NAMED = 5000
"""In a larger dict a child goes by its place, as looking for its key would read all before it."""
_LONGEST_KEY = 300
_PARTS: dict[str, tuple[str, Any]] = {
    "state": ("execution_state", None),
    "context": ("agent_context", {}),
}


def state(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return what stands at a path of a state: its children a page at a time, or its value."""
    info = Names(client).checkpoint(given.needed("id"))
    part = given.choice("part", tuple(_PARTS), "state")
    path = given.text("path") or "$"
    try:
        return _Reader(client, info).told(part, path, given.number("cursor") or 0, given.limit)
    except CheckpointIntegrityError as error:
        raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None


class _Reader:
    """Answers one question about one state."""

    def __init__(self, client: SyncClient, info: CheckpointInfo) -> None:
        verify_record(info)
        check_known(info)
        self._branches = Branches(client, info)

    def told(self, part: str, path: str, at: int, limit: int) -> dict[str, Any]:
        """Return what stands at a path."""
        node, where = self._walked(part, path)
        groups = self._branches.groups(node)
        told = {"path": where, **self._described(node, groups), "children": [], "next": None}
        if groups:
            size = sum(group.size for group in groups)
            told["children"] = self._children(groups, where, at, limit)
            told["next"] = str(at + limit) if at + limit < size else None
            return told
        if is_text(node) and told["size"] > TEXT_PAGE:
            told["value"], told["next"] = self._text(node, at, told["size"])
            return told
        value = self._value(node)
        return {**told, "cut": True} if value is Missing else {**told, "value": value}

    def _walked(self, part: str, path: str) -> tuple[Any, str]:
        name, default = _PARTS[part]
        node, where = self._branches.part(name), "$"
        node = default if node is Missing else node
        for step in steps_of(path):
            groups = self._branches.groups(node)
            node = self._branches.opened(self._branches.member(groups, step))
            if node is Missing:
                said = f"place {step.at}" if isinstance(step, Place) else brief(step)
                raise NotFound(f"{where[-100:]} has no {said}")
            named = place_step(step.at) if isinstance(step, Place) else key_step(step)
            where += named or f"[{brief(step)}]"
        return node, where

    def _described(self, node: Any, groups: list[Group]) -> dict[str, Any]:
        size = sum(group.size for group in groups) if groups else _size_of(node)
        return {
            "type": type_of(self._branches, node),
            "size": size,
            "preview": preview_of(self._branches, node),
        }

    def _text(self, node: Any, at: int, size: int) -> tuple[Any, str | None]:
        """Return a page of a long text or of bytes; one ends between two characters."""
        data = self._branches.bytes_at(node, at, TEXT_PAGE)
        if type(node) is str or (type(node) is Hole and node.code == PAGED_STR):
            value = data.decode("utf-8", "ignore")
            data = data if at + len(data) >= size else value.encode()
        else:
            value = part_to_json(data, {})
        end = at + max(len(data), 1)
        return value, str(end) if end < size else None

    def _value(self, node: Any) -> Any:
        """Return a value in the typed form; Missing if it is too large for a page."""
        try:
            if len(packed(node)) > LARGEST_VALUE:
                return Missing
            return exact(part_to_json(node, Bounded(self._branches, LARGEST_VALUE)))
        except (Bounded.TooLarge, SerializationError):
            return Missing

    def _children(
        self, groups: list[Group], where: str, at: int, limit: int
    ) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        before = 0
        for number, group in enumerate(groups):
            start = max(at - before, 0)
            items = self._branches.slice(group, start, limit - len(rows))
            wanted = [part.data for _, part in items if _is_reference(part)]
            self._branches.fetch(wanted[:100])
            for place, (key, part) in enumerate(items, start):
                step = self._step(groups[:number], group, key, place) or place_step(before + place)
                rows.append({**_named(key), "path": where + step, **self._row(part)})
            before += group.size
            if len(rows) >= limit:
                break
        return rows

    def _step(self, before: list[Group], group: Group, key: Any, place: int) -> str | None:
        """Return the step to a child by its name; None if only its place is sure to lead to it."""
        if group.sort == "list":
            return None if any(each.sort == "list" for each in before) else f"[{place}]"
        step = None if group.size > _MOST_NAMED else key_step(key)
        is_taken = any(
            each.is_paged
            or (each.sort == "list" and type(key) is int)
            or self._branches.find(each, key) is not Missing
            for each in before
            if step is not None
        )
        return None if is_taken else step

    def _row(self, part: Any) -> dict[str, Any]:
        if self._branches.read > _LARGEST_PAGE:
            return {"type": "unread", "size": None, "preview": "…", "leaf": False}
        node = self._branches.opened(part)
        groups = self._branches.groups(node)
        row = {**self._described(node, groups), "leaf": not groups}
        if not groups and type(node) is not Hole:
            data = packed(node)
            if len(data) <= SMALL and not references(data):
                row["value"] = exact(part_to_json(node, {}))
        return row


def _is_reference(part: Any) -> bool:
    return type(part) is Hole and part.code in (REF_LEAF, REF_NODE)


def _size_of(node: Any) -> int | None:
    """Return how many bytes a text has, or bytes have."""
    if type(node) is Hole:
        return index_size(node)
    if type(node) in (list, dict):
        return 0
    return len(node.encode() if type(node) is str else node) if is_text(node) else None


def _named(key: Any) -> dict[str, Any]:
    """Return a key as people read it, and in the typed form where that says more."""
    if type(key) is str and len(key) <= _LONGEST_KEY:
        return {"key": key}
    if type(key) is int and -LARGEST <= key <= LARGEST:
        return {"key": key}
    shown = key if type(key) is str else brief(key)
    said = {"key": f"{shown[:_LONGEST_KEY]}…" if len(shown) > _LONGEST_KEY else shown}
    data = packed(key)
    if len(data) <= SMALL and not references(data):
        said["typed_key"] = exact(part_to_json(key, {}))
    return said


_KEY = {"anyOf": [TEXT, WHOLE], "description": "for people: a position, a name, or how it reads"}
_SIZE = {**maybe(WHOLE), "description": "how many children, or how many bytes of a text"}
_SAID = {"path": TEXT, "type": TEXT, "size": _SIZE, "preview": TEXT}
_CHILD = with_optional(record(key=_KEY, **_SAID, leaf=TRUTH), typed_key=TYPED, value=TYPED)
STATE = with_optional(
    record(**_SAID, children=several(_CHILD), next=maybe(TEXT)),
    value=TYPED,
    cut={**TRUTH, "description": "the value is too large to be given"},
)
ROUTES: tuple[Route, ...] = (
    Route(
        "state",
        state,
        "What stands at a path of a state",
        {
            "id": "the checkpoint, as the command line takes it",
            "part": "state or context",
            "path": "such as $.plan[0].name; each child says its own",
            "limit": "children of a page",
            "cursor": "the page; of a long text, which bytes",
        },
        STATE,
    ),
)
