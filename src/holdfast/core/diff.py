"""What changed between two states, by path; only the chunks that differ are asked for."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, TypeVar

import ormsgpack

from holdfast.core.codec import BYTES_KINDS, Ready
from holdfast.core.format import (
    PAGED_DICT,
    PAGED_LIST,
    REF_LEAF,
    REF_NODE,
    unpack_index,
)
from holdfast.core.kinds import by_code
from holdfast.core.rewrite import child_path
from holdfast.core.shallow import Hole, shallow
from holdfast.core.tree import decode, inner_index, references
from holdfast.errors import CheckpointIntegrityError

T = TypeVar("T")
Chunks = Mapping[bytes, bytes]
Asking = Generator[Iterable[bytes], Chunks, T]

_ALIGN_AT_MOST = 1000
_LINES_SHOWN = 60

_ROOT_PATHS = {
    "execution_state": "$",
    "agent_context": "context",
    "tasks": "tasks",
    "effects": "effects",
    "workspace": "workspace",
}


class ByPath(dict[str, Any]):
    """Values by path; a path of the state may be written without its leading ``$.``."""

    def _found(self, path: str) -> str:
        whole = f"${path}" if path.startswith("[") else f"$.{path}"
        return whole if not super().__contains__(path) and super().__contains__(whole) else path

    def __getitem__(self, path: str) -> Any:
        return super().__getitem__(self._found(path))

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and super().__contains__(self._found(path))


@dataclass(slots=True)
class Diff:
    """What was added, removed, changed (old, new) and moved (old path, new path), by path.

    A value of the state is at ``$.name[3]``, one of the context at ``context.name``.
    """

    added: ByPath = field(default_factory=ByPath)
    removed: ByPath = field(default_factory=ByPath)
    changed: ByPath = field(default_factory=ByPath)
    moved: ByPath = field(default_factory=ByPath)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.moved)

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed) + len(self.moved)

    def __str__(self) -> str:
        if not self:
            return "no changes"
        lines = [
            *(
                f"~ {path}: {_short(old)} -> {_short(new)}"
                for path, (old, new) in self.changed.items()
            ),
            *(f"- {path}: {_short(value)}" for path, value in self.removed.items()),
            *(f"+ {path}: {_short(value)}" for path, value in self.added.items()),
            *(f"> {old}: moved to {new}" for old, new in self.moved.items()),
        ]
        if len(lines) > _LINES_SHOWN:
            lines[_LINES_SHOWN:] = [f"… and {len(lines) - _LINES_SHOWN} more"]
        return "\n".join(lines)

    def part(self, root: str) -> Diff:
        """Only what is below a root: ``$`` for the state, ``context``, ``tasks``, ``effects``."""
        kept = Diff()
        for name in ("added", "removed", "changed", "moved"):
            mine = getattr(kept, name)
            for path, value in getattr(self, name).items():
                if path == root or path.startswith((f"{root}.", f"{root}[")):
                    mine[path] = value
        return kept

    def as_dict(self) -> dict[str, Any]:
        """Plain data: four dicts by path."""
        return {
            name: dict(getattr(self, name)) for name in ("added", "removed", "changed", "moved")
        }


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 70 else f"{text[:60]}… ({len(text)} characters)"


def diff_values(old: Any, new: Any) -> Diff:
    """What changed between two values in memory.

    >>> from holdfast.core.diff import diff_values
    >>> print(diff_values({"step": 1, "log": ["a"]}, {"step": 2, "log": ["a", "b"]}))
    ~ $.step: 1 -> 2
    + $.log[1]: 'b'
    """
    from holdfast.core.chunks import encode

    a, b = encode({"execution_state": old}), encode({"execution_state": new})
    chunks = {**a.chunks, **b.chunks}
    work = diff_roots(a.root, b.root)
    try:
        next(work)
        while True:
            work.send(chunks)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def diff_roots(old: bytes, new: bytes, allow_pickle: bool = False) -> Asking[Diff]:
    """What changed between two states, given chunks as it asks for them."""
    differ = _Differ(allow_pickle)
    yield from differ.payloads(old, new)
    differ.find_moves()
    return differ.diff


class _Differ:
    def __init__(self, allow_pickle: bool) -> None:
        self.diff = Diff()
        self.allow_pickle = allow_pickle
        self.chunks: dict[bytes, bytes] = {}
        self._keys: dict[str, tuple[str, bytes]] = {}  # of list items that came or went

    def payloads(self, old: bytes, new: bytes) -> Asking[None]:
        if old == new:
            return
        yield from self._need((old, new))
        a, b = shallow(self.chunks[old]), shallow(self.chunks[new])
        a = yield from self._opened(a)
        b = yield from self._opened(b)
        for part in sorted({*a, *b}, key=list(_ROOT_PATHS).index):
            path = _ROOT_PATHS[part]
            yield from self._member(part in a, a.get(part), part in b, b.get(part), path)

    def _need(self, names: Iterable[bytes]) -> Asking[None]:
        missing = [name for name in names if name not in self.chunks]
        if missing:
            given = yield missing
            for name in missing:
                if name not in given:
                    raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
                self.chunks[name] = given[name]

    def _member(self, in_a: bool, a: Any, in_b: bool, b: Any, path: str) -> Asking[None]:
        if in_a and in_b:
            yield from self._compare(a, b, path)
        elif in_a:
            self.diff.removed[path] = yield from self._full(a)
        else:
            self.diff.added[path] = yield from self._full(b)

    def _compare(self, a: Any, b: Any, path: str) -> Asking[None]:
        if _bytes(a) == _bytes(b):
            return
        if _is_paged(a, b, PAGED_LIST):
            yield from self._paged_lists(a, b, path)
            return
        if _is_paged(a, b, PAGED_DICT):
            a, b = yield from self._paged_dicts(a, b)
        else:
            a = yield from self._opened(a)
            b = yield from self._opened(b)
        if type(a) is dict and type(b) is dict:
            yield from self._dicts(a, b, path)
        elif type(a) is list and type(b) is list:
            yield from self._lists(a, b, path, 0, 0)
        elif type(a) is Ready and type(b) is Ready and _comparable(a, b):
            yield from self._objects(a, b, path)
        else:
            old = yield from self._full(a)
            new = yield from self._full(b)
            self.diff.changed[path] = (old, new)

    def _opened(self, value: Any) -> Asking[Any]:
        """What a reference leads to; a paged list or dict as a whole, its elements shallow."""
        while type(value) is Hole and value.code in (REF_LEAF, REF_NODE):
            yield from self._need((value.data,))
            value = shallow(self.chunks[value.data])
        if type(value) is Hole and value.code in (PAGED_LIST, PAGED_DICT):
            names = yield from self._flat([(value.data, None)])
            return (yield from self._joined(names, value.code))
        return value

    def _flat(self, indexes: list[tuple[bytes, Any]]) -> Asking[list[tuple[bytes, int]]]:
        """The pages of indexes, in order, each with its count."""
        pages: list[tuple[bytes, int]] = []
        for index, _ in indexes:
            level, entries = unpack_index(index)
            if level == 0:
                pages += [(name, count) for name, count, _, _ in entries]
                continue
            yield from self._need(entry[0] for entry in entries)
            inner = [(inner_index(self.chunks[entry[0]]), None) for entry in entries]
            pages += yield from self._flat(inner)
        return pages

    def _joined(self, pages: list[tuple[bytes, int]], code: int) -> Asking[Any]:
        yield from self._need(name for name, _ in pages)
        parts = [shallow(self.chunks[name]) for name, _ in pages]
        if code == PAGED_LIST:
            return [element for part in parts for element in part]
        return {key: value for part in parts for key, value in part.items()}

    def _unlike_pages(self, a: Hole, b: Hole) -> Asking[tuple[Any, Any, int]]:
        """The pages of two indexes without those that both begin or end with, and how many
        positions the common beginning covers. Common parts of an upper level are not opened.
        """
        levels = [unpack_index(a.data), unpack_index(b.data)]
        skipped = 0
        while True:
            (level_a, left), (level_b, right) = levels
            if level_a == level_b:
                left, right, before = _trimmed(left, right)
                skipped += sum(entry[1] for entry in before)
            if level_a == level_b == 0:
                return [e[:2] for e in left], [e[:2] for e in right], skipped
            deepest = max(level_a, level_b)
            levels = []
            for level, entries in ((level_a, left), (level_b, right)):
                if level == deepest:
                    yield from self._need(entry[0] for entry in entries)
                    opened = [unpack_index(inner_index(self.chunks[e[0]])) for e in entries]
                    if any(inner != level - 1 for inner, _ in opened):
                        raise CheckpointIntegrityError(None, "an index of uneven depth")
                    levels.append((level - 1, [e for _, inner in opened for e in inner]))
                else:
                    levels.append((level, entries))

    def _paged_lists(self, a: Hole, b: Hole, path: str) -> Asking[None]:
        left, right, skipped = yield from self._unlike_pages(a, b)
        old = yield from self._joined(left, PAGED_LIST)
        new = yield from self._joined(right, PAGED_LIST)
        yield from self._lists(old, new, path, skipped, skipped)

    def _paged_dicts(self, a: Hole, b: Hole) -> Asking[tuple[Any, Any]]:
        left, right, _ = yield from self._unlike_pages(a, b)
        common = set(left) & set(right)
        old = yield from self._joined([page for page in left if page not in common], PAGED_DICT)
        new = yield from self._joined([page for page in right if page not in common], PAGED_DICT)
        return old, new

    def _dicts(self, a: dict[str, Any], b: dict[str, Any], path: str) -> Asking[None]:
        for key in [*a, *(key for key in b if key not in a)]:
            inner = child_path(path, key)
            yield from self._member(key in a, a.get(key), key in b, b.get(key), inner)

    def _objects(self, a: Ready, b: Ready, path: str) -> Asking[None]:
        old = yield from self._opened(a.plain)
        new = yield from self._opened(b.plain)
        if type(old) is list and type(new) is list and old and new and isinstance(old[0], str):
            # [class name, main part, ...]: its fields are shown as attributes of the object
            for one, other in zip(old[1:], new[1:], strict=False):
                yield from self._compare(one, other, path)
        else:
            yield from self._compare(old, new, path)

    def _lists(
        self, a: list[Any], b: list[Any], path: str, from_a: int, from_b: int
    ) -> Asking[None]:
        keys_a, keys_b = [_bytes(e) for e in a], [_bytes(e) for e in b]
        for tag, i1, i2, j1, j2 in _aligned(keys_a, keys_b):
            if tag == "equal":
                continue
            paired = min(i2 - i1, j2 - j1)
            for k in range(paired):
                yield from self._compare(a[i1 + k], b[j1 + k], f"{path}[{from_b + j1 + k}]")
            for i in range(i1 + paired, i2):
                place = f"{path}[{from_a + i}]"
                self.diff.removed[place] = yield from self._full(a[i])
                self._keys[f"-{place}"] = (path, keys_a[i])
            for j in range(j1 + paired, j2):
                place = f"{path}[{from_b + j}]"
                self.diff.added[place] = yield from self._full(b[j])
                self._keys[f"+{place}"] = (path, keys_b[j])

    def find_moves(self) -> None:
        """An element that went from one place of a list and came to another has moved."""
        came: dict[tuple[str, bytes], list[str]] = {}
        for place, key in self._keys.items():
            if place[0] == "+":
                came.setdefault(key, []).append(place[1:])
        for place, key in self._keys.items():
            if place[0] == "-" and came.get(key):
                new = came[key].pop(0)
                self.diff.moved[place[1:]] = new
                del self.diff.removed[place[1:]], self.diff.added[new]

    def _full(self, value: Any) -> Asking[Any]:
        """A shallow value with everything it refers to."""
        raw = _bytes(value)
        level = references(raw)
        while level:
            yield from self._need(name for name, _ in level)
            level = [r for name, refers in level if refers for r in references(self.chunks[name])]
        name = b"\x00"
        return decode(
            name, {**self.chunks, name: raw}, on_unknown="raw", allow_pickle=self.allow_pickle
        )


def _is_paged(a: Any, b: Any, code: int) -> bool:
    return type(a) is Hole and type(b) is Hole and a.code == b.code == code


def _comparable(a: Ready, b: Ready) -> bool:
    """Whether two objects are of one kind and class, so that their parts can be compared."""
    if a.code != b.code or a.code in BYTES_KINDS or a.code not in by_code:
        return False
    if type(a.plain) is list and type(b.plain) is list:
        names = (a.plain[:1], b.plain[:1])
        named = any(n and isinstance(n[0], str) and ":" in n[0] for n in names)
        return not named or (names[0] == names[1] and type(a.plain[1]) is dict)
    return type(a.plain) is type(b.plain) and type(a.plain) in (dict, Hole)


def _bytes(value: Any) -> bytes:
    """The bytes that a shallow value came from."""
    return ormsgpack.packb(value, _extension)


def _extension(value: Any) -> ormsgpack.Ext:
    if type(value) is Hole:
        return ormsgpack.Ext(value.code, value.data)
    if type(value) is Ready:
        data = value.plain if value.code in BYTES_KINDS else _bytes(value.plain)
        return ormsgpack.Ext(value.code, data)
    raise TypeError


def _trimmed(left: list[T], right: list[T]) -> tuple[list[T], list[T], list[T]]:
    """Two lists without their common beginning and end, and the beginning."""
    start, end = _common(left, right)
    return left[start : len(left) - end], right[start : len(right) - end], left[:start]


def _common(left: list[Any], right: list[Any]) -> tuple[int, int]:
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return start, end


def _aligned(a: list[bytes], b: list[bytes]) -> list[tuple[str, int, int, int, int]]:
    """How to get from one list of elements to the other, as difflib says it."""
    start, end = _common(a, b)
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(middle_a) * len(middle_b) > _ALIGN_AT_MOST**2:
        return [("replace", start, len(a) - end, start, len(b) - end)]
    codes = SequenceMatcher(None, middle_a, middle_b, autojunk=False).get_opcodes()
    return [(tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in codes]
