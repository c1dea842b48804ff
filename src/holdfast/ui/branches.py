"""A state in its chunks, opened branch by branch: what is not looked at is not read.

A list of a million messages says how many it has in the index of its pages, and one page of it is
fetched. No class is looked for: what a value consists of is said by its kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from holdfast.core.chunk_decoder import inner_index
from holdfast.core.chunk_format import (
    PAGED_BYTES,
    PAGED_DICT,
    PAGED_LIST,
    PAGED_STR,
    REF_LEAF,
    REF_NODE,
    checked,
    unpack_index,
)
from holdfast.core.kinds import Ready, shape_of
from holdfast.core.kinds.plain_shapes import Parts
from holdfast.core.kinds.standard import PAIRS
from holdfast.core.shallow_reader import Hole, shallow
from holdfast.errors import CheckpointIntegrityError
from holdfast.runtime import steps
from holdfast.ui.state_paths import Place

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo

_REFERENCES = (REF_LEAF, REF_NODE)
_PAGES_AT_ONCE = 16
_DEEPEST_INDEX = 17
_LONGEST_PLAIN = 64
"""The plain data of an object is its class, its fields and little more."""


@dataclass(frozen=True, slots=True)
class Group:
    """Children of one sort: elements by position, items by name, or keys and values in turn."""

    sort: Literal["list", "dict", "pairs"]
    value: Any

    @property
    def size(self) -> int:
        """How many children there are."""
        count = index_size(self.value) if type(self.value) is Hole else len(self.value)
        return count // 2 if self.sort == "pairs" else count

    @property
    def is_paged(self) -> bool:
        """Whether they are in chunks of their own."""
        return type(self.value) is Hole


class Missing:
    """What is not there, which a state has no value for."""


class Branches:
    """The chunks of one checkpoint, each fetched when it is needed."""

    def __init__(self, client: SyncClient, info: CheckpointInfo) -> None:
        self._store = client.store
        self._chunks: dict[bytes, bytes] = {}
        self.read = 0
        """How many bytes were opened."""
        self._root = bytes.fromhex(info.content_id)
        if not client.store.shares_chunks:
            record = client.runtime.run(steps.load(info.checkpoint_id))
            self._chunks.update({} if record is None else record.chunks)

    def part(self, name: str) -> Any:
        """Return a part of the checkpoint; Missing if it has none of that name."""
        payload = self.opened(Hole(REF_NODE, self._root))
        if type(payload) is Hole and payload.code == PAGED_DICT:
            payload = dict(self.slice(Group("dict", payload), 0, _LONGEST_PLAIN))
        if type(payload) is not dict:
            raise CheckpointIntegrityError(None, "it holds no state")
        return self.opened(payload.get(name, Missing))

    def fetch(self, names: Collection[bytes]) -> None:
        """Bring these chunks here, to be opened more than once."""
        self._chunks.update(self._fetched(names))

    def chunk(self, name: bytes) -> bytes:
        """Return a chunk."""
        self.fetch([name])
        return self._chunks[name]

    def _fetched(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        missing = [name for name in dict.fromkeys(names) if name not in self._chunks]
        stored = self._store.fetch(missing) if missing and self._store.shares_chunks else {}
        found = {name: self._chunks[name] for name in names if name in self._chunks}
        for name in missing:
            if name not in stored:
                raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
            found[name] = checked(name, stored[name])
            self.read += len(found[name])
        return found

    def opened(self, value: Any) -> Any:
        """Return what a reference leads to; an index of pages stays one."""
        while type(value) is Hole and value.code in _REFERENCES:
            value = shallow(self.chunk(value.data))
        return value

    def pages(
        self, index: bytes, start: int = 0, below: int = _DEEPEST_INDEX
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the pages of an index from a position on, each with where it begins.

        They are fetched some at once, ever more of them, and none is kept.
        """
        level, entries = unpack_index(index)
        if level >= below:
            raise CheckpointIntegrityError(None, "an index that does not end")
        at, wanted = 0, []
        for name, count, *_ in entries:
            if at + count > start:
                wanted.append((at, name))
            at += count
        many = 1
        while wanted:
            now, wanted = wanted[:many], wanted[many:]
            many = min(many * 2, _PAGES_AT_ONCE)
            found = self._fetched([name for _, name in now])
            for began, name in now:
                if not level:
                    yield began, found[name]
                    continue
                inner = inner_index(found[name])
                for within, page in self.pages(inner, max(start - began, 0), level):
                    yield began + within, page

    def bytes_at(self, value: Any, start: int, count: int) -> bytes:
        """Return some of the bytes of a text or of bytes."""
        if type(value) is not Hole:
            whole = value.encode() if isinstance(value, str) else bytes(value)
            return whole[start : start + count]
        found = bytearray()
        for began, raw in self.pages(value.data, start):
            found += raw[max(start - began, 0) :]
            if len(found) >= count:
                break
        return bytes(found[:count])

    def slice(self, group: Group, start: int, count: int) -> list[tuple[Any, Any]]:
        """Return some children, each with its key or position."""
        if group.sort == "pairs":
            flat = [part for _, part in self._elements(group.value, 2 * start, 2 * count)]
            return list(zip(flat[::2], flat[1::2], strict=True))
        return self._elements(group.value, start, count)

    def _elements(self, value: Any, start: int, count: int) -> list[tuple[Any, Any]]:
        if type(value) is not Hole:
            return _items(value, 0)[start : start + count]
        found: list[tuple[Any, Any]] = []
        cls = dict if value.code == PAGED_DICT else list
        for began, raw in self.pages(value.data, start):
            page = shallow(raw)
            if type(page) is not cls:
                raise CheckpointIntegrityError(None, f"a page that is no {cls.__name__}")
            found += _items(page, began)[max(start - began, 0) :]
            if len(found) >= count:
                break
        return found[:count]

    def groups(self, value: Any) -> list[Group]:
        """Return what an opened value consists of; nothing if it is not to be looked into."""
        return [group for group in self._groups(value) if group.size]

    def _groups(self, value: Any) -> Iterator[Group]:
        code = value.code if type(value) in (Hole, Ready) else None
        if type(value) is list or (type(value) is Hole and code == PAGED_LIST):
            yield Group("list", value)
        elif type(value) is dict or (type(value) is Hole and code == PAGED_DICT):
            yield Group("dict", value)
        elif type(value) is Ready and code == PAIRS:
            yield self._pairs(self.opened(value.plain))
        elif type(value) is Ready and (parts := self._parts(value)) is not None:
            for each in (*parts.ordered, *parts.lists, *parts.sets, *parts.places, *parts.mappings):
                yield from self._groups(self.opened(each))

    def _pairs(self, plain: Any) -> Group:
        is_list = type(plain) is list or (type(plain) is Hole and plain.code == PAGED_LIST)
        if not is_list or (index_size(plain) if type(plain) is Hole else len(plain)) % 2:
            raise CheckpointIntegrityError(None, "dict does not fit its data")
        return Group("pairs", plain)

    def _parts(self, value: Ready) -> Parts | None:
        """Return what an object consists of, opened as far as its kind needs it to say so."""
        shape, plain = shape_of(value.code), value.plain
        if shape.opened_for_parts:
            plain = self.short(plain)
        if shape.opened_for_parts == 2 and type(plain) is list and len(plain) > 1:
            plain = [plain[0], self.opened(plain[1]), *plain[2:]]
        return shape.parts(plain)

    def short(self, plain: Any) -> Any:
        """Return plain data as one list, if it is a list and no long one."""
        plain = self.opened(plain)
        if type(plain) is Hole and plain.code == PAGED_LIST:
            return [part for _, part in self._elements(plain, 0, _LONGEST_PLAIN)]
        return plain

    def member(self, groups: list[Group], step: str | int | Place) -> Any:
        """Return the child that a step leads to; Missing if there is none."""
        if isinstance(step, Place):
            return self._at(groups, step.at)
        for group in groups:
            if group.sort == "list" and type(step) is int:
                at = step + group.size if step < 0 else step
                return self._at([group], at) if at >= 0 else Missing
            found = self.find(group, step)
            if found is not Missing:
                return found
        if isinstance(step, str) and step.isascii() and step.isdecimal() and len(step) < 16:
            return self.member(groups, int(step))
        return Missing

    def _at(self, groups: list[Group], at: int) -> Any:
        for group in groups:
            if at < group.size:
                return self.slice(group, at, 1)[0][1]
            at -= group.size
        return Missing

    def find(self, group: Group, key: str | int) -> Any:
        """Return the value of a key, of that very type; Missing if there is none."""
        if group.sort == "list" or (group.sort == "dict" and type(key) is not str):
            return Missing
        if type(group.value) is dict:
            return group.value.get(key, Missing)
        if not group.is_paged:
            return _among(self.slice(group, 0, group.size), key)
        start = 0
        while start < group.size:
            some = self.slice(group, start, 1000)
            if (found := _among(some, key)) is not Missing:
                return found
            start += len(some)
        return Missing


class Bounded(Mapping[bytes, bytes]):
    """The chunks of a checkpoint, up to so many bytes of them."""

    class TooLarge(Exception):
        """More was asked for than there may be."""

    def __init__(self, branches: Branches, most: int) -> None:
        self._branches = branches
        self._left = most

    def __getitem__(self, name: bytes) -> bytes:
        raw = self._branches.chunk(name)
        self._left -= len(raw)
        if self._left < 0:
            raise self.TooLarge
        return raw

    def __iter__(self) -> Iterator[bytes]:
        raise TypeError("chunks are asked for by name")

    def __len__(self) -> int:
        raise TypeError("chunks are asked for by name")


def index_size(value: Hole) -> int:
    """Return how many elements, items or bytes an index of pages has."""
    return sum(entry[1] for entry in unpack_index(value.data)[1])


def is_text(value: Any) -> bool:
    """Return whether a value is a text or bytes, wherever they are kept."""
    return type(value) in (str, bytes) or (
        type(value) is Hole and value.code in (PAGED_STR, PAGED_BYTES)
    )


def _items(value: Any, began: int) -> list[tuple[Any, Any]]:
    return list(value.items() if type(value) is dict else enumerate(value, began))


def _among(items: list[tuple[Any, Any]], key: Any) -> Any:
    same = (part for each, part in items if type(each) is type(key) and each == key)
    return next(same, Missing)
