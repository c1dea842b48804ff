"""Finds what changed between two states; only the chunks that differ are asked for.

Both states are walked as their chunks have them, without reviving anything: equal bytes are equal
values. One value may be kept in two ways, whole here and in pages there, when what stands beside it
has grown; so bytes that differ are opened before two values are called different. What is told of a
difference is the value itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import Any, TypeVar

from xxhash import xxh3_64_hexdigest

from holdfast.core.chunk_decoder import DEFAULT_LIMITS, decode, inner_index, references
from holdfast.core.chunk_format import (
    PAGED_BYTES,
    PAGED_DICT,
    PAGED_LIST,
    PAGED_STR,
    REF_LEAF,
    REF_NODE,
    unpack_index,
)
from holdfast.core.diff import ByPath, Diff
from holdfast.core.kinds import Ready, bytes_codes, shape_of
from holdfast.core.kinds.plain_shapes import Parts
from holdfast.core.kinds.standard import PAIRS
from holdfast.core.list_alignment import aligned, trimmed
from holdfast.core.safe_repr import shown
from holdfast.core.shallow_reader import Hole, packed, shallow
from holdfast.errors import CheckpointIntegrityError
from holdfast.system.drive import drive

T = TypeVar("T")
Asking = Generator[Any, Any, T]
Fetch = Callable[[Collection[bytes]], Asking[Mapping[bytes, bytes]]]
"""Gives chunks by name, and may have to wait for them."""

_ROOT_PATHS = {
    "execution_state": "$",
    "agent_context": "context",
    "tasks": "tasks",
    "effects": "effects",
    "workspace": "workspace",
}
_KEY_WIDTH = 200


def diff_roots(old: bytes, new: bytes, fetch: Fetch, allow_pickle: bool = False) -> Asking[Diff]:
    """Return what changed between two states, of which only the chunks that differ are fetched."""
    differ = _Differ(fetch, allow_pickle)
    try:
        yield from differ.payloads(old, new)
    except RecursionError:
        raise CheckpointIntegrityError(None, "values nest too deep") from None
    differ.find_moves()
    return differ.diff


class _Chunks(dict[bytes, bytes]):
    """The chunks at hand. Opening them is counted: shared ones must not multiply without end."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = DEFAULT_LIMITS.bytes
        self._count = DEFAULT_LIMITS.chunks

    def opened(self, name: bytes) -> bytes:
        raw = self[name]
        self._bytes -= len(raw)
        self._count -= 1
        if self._bytes < 0 or self._count < 0:
            raise CheckpointIntegrityError(None, "it holds more data than the limits allow")
        return raw

    def get(self, name: bytes, default: Any = None) -> Any:
        """Return a chunk as the decoder asks for it."""
        return self.opened(name) if name in self else default


class _Differ:
    def __init__(self, fetch: Fetch, allow_pickle: bool) -> None:
        self._fetch = fetch
        self.diff = Diff()
        self.allow_pickle = allow_pickle
        self.chunks = _Chunks()
        self._keys: dict[tuple[str, str], tuple[str, bytes]] = {}  # of items that came or went

    def payloads(self, old: bytes, new: bytes) -> Asking[None]:
        if old == new:
            return
        yield from self._need((old, new))
        a = yield from self._opened(shallow(self.chunks.opened(old)))
        b = yield from self._opened(shallow(self.chunks.opened(new)))
        if type(a) is not dict or type(b) is not dict or not _ROOT_PATHS.keys() >= {*a, *b}:
            raise CheckpointIntegrityError(None, "it holds no state")
        for part, path in _ROOT_PATHS.items():
            if part in a or part in b:
                yield from self._member(part in a, a.get(part), part in b, b.get(part), path)

    def _need(self, names: Iterable[bytes]) -> Asking[None]:
        missing = [name for name in names if name not in self.chunks]
        if missing:
            given = yield from self._fetch(missing)
            for name in missing:
                if name not in given:
                    raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
                self.chunks[name] = given[name]

    def _member(self, in_a: bool, a: Any, in_b: bool, b: Any, path: str) -> Asking[None]:
        if in_a and in_b:
            yield from self._compare(a, b, path)
        elif in_a:
            _put(self.diff.removed, path, (yield from self._full(a)))
        else:
            _put(self.diff.added, path, (yield from self._full(b)))

    def _compare(self, a: Any, b: Any, path: str) -> Asking[None]:
        if packed(a) == packed(b):
            return
        a = yield from self._resolved(a)
        b = yield from self._resolved(b)
        if type(a) is Hole and type(b) is Hole and a.code == b.code == PAGED_LIST:
            yield from self._paged_lists(a, b, path)
            return
        if type(a) is Hole and type(b) is Hole and a.code == b.code == PAGED_DICT:
            a, b = yield from self._paged_dicts(a, b)
        else:
            a = yield from self._opened(a)
            b = yield from self._opened(b)
        if type(a) is list and type(b) is list:
            yield from self._lists(a, b, path, 0, 0)
        elif _is_mapping(a) and _is_mapping(b):
            yield from self._mappings(a, b, path)
        elif type(a) is Ready and type(b) is Ready and a.code == b.code:
            yield from self._objects(a, b, path)
        else:
            yield from self._replaced(a, b, path)

    def _replaced(self, a: Any, b: Any, path: str) -> Asking[None]:
        """Tell that one value took another's place, unless they are the same, kept in two ways."""
        yield from self._need_all(a)
        yield from self._need_all(b)
        if packed(self._whole(a)) != packed(self._whole(b)):
            _put(self.diff.changed, path, (self._value(a), self._value(b)))

    # Following references.

    def _resolved(self, value: Any) -> Asking[Any]:
        """Return what a reference leads to; pages stay closed."""
        while type(value) is Hole and value.code in (REF_LEAF, REF_NODE):
            yield from self._need((value.data,))
            value = shallow(self.chunks.opened(value.data))
        return value

    def _opened(self, value: Any) -> Asking[Any]:
        """Resolve, and return a paged list or dict as a whole, its elements shallow."""
        value = yield from self._resolved(value)
        if type(value) is Hole and value.code in (PAGED_LIST, PAGED_DICT):
            pages = yield from self._flat(value.data)
            return (yield from self._joined(pages, value.code))
        return value

    def _flat(self, index: bytes, below: int = 17) -> Asking[list[bytes]]:
        """Return the pages of an index, in order."""
        level, entries = unpack_index(index)
        if level >= below:
            raise CheckpointIntegrityError(None, "an index that does not end")
        names = [entry[0] for entry in entries]
        if level == 0:
            return names
        yield from self._need(names)
        pages: list[bytes] = []
        for name in names:
            pages += yield from self._flat(inner_index(self.chunks.opened(name)), level)
        return pages

    def _joined(self, pages: list[bytes], code: int) -> Asking[Any]:
        yield from self._need(pages)
        return self._together(pages, code)

    def _together(self, pages: list[bytes], code: int) -> Any:
        raws = map(self.chunks.opened, pages)
        if code == PAGED_BYTES:
            return b"".join(raws)
        if code == PAGED_STR:
            try:
                return b"".join(raws).decode()
            except UnicodeDecodeError as error:
                raise CheckpointIntegrityError(None, f"text that is not UTF-8 ({error})") from None
        cls = list if code == PAGED_LIST else dict
        parts = [shallow(raw) for raw in raws]
        if any(type(part) is not cls for part in parts):
            raise CheckpointIntegrityError(None, f"a page that is no {cls.__name__}")
        if cls is list:
            return [element for part in parts for element in part]
        return {key: value for part in parts for key, value in part.items()}

    def _unlike_pages(
        self, a: Hole, b: Hole, keep: int = 0, keep_at_end: int = 0
    ) -> Asking[tuple[list[Any], list[Any], int]]:
        """Return the pages of two indexes without those that both begin or end with, and how many
        positions the common beginning covers. Common parts of an upper level are not opened.
        """
        levels = [unpack_index(a.data), unpack_index(b.data)]
        skipped = 0
        while True:
            (level_a, left), (level_b, right) = levels
            if level_a == level_b:
                left, right, before = trimmed(left, right, keep, keep_at_end)
                skipped += sum(entry[1] for entry in before)
            if level_a == level_b == 0:
                return [e[:2] for e in left], [e[:2] for e in right], skipped
            deepest = max(level_a, level_b)
            levels = []
            for level, entries in ((level_a, left), (level_b, right)):
                if level == deepest:
                    yield from self._need(entry[0] for entry in entries)
                    opened = [unpack_index(inner_index(self.chunks.opened(e[0]))) for e in entries]
                    if any(inner != level - 1 for inner, _ in opened):
                        raise CheckpointIntegrityError(None, "an index of uneven depth")
                    levels.append((level - 1, [e for _, inner in opened for e in inner]))
                else:
                    levels.append((level, entries))

    def _paged_lists(self, a: Hole, b: Hole, path: str) -> Asking[None]:
        old, new, skipped = yield from self._unlike_elements(a, b)
        kept = 0
        while _begins_with(old, new):
            # Where contents repeat, what both end with may hide how far they begin alike.
            kept = kept * 2 or 1
            more = yield from self._unlike_elements(a, b, keep_at_end=kept)
            if len(more[0]) == len(old):
                break
            old, new, skipped = more
        yield from self._lists(old, new, path, skipped, skipped)

    def _unlike_elements(
        self, a: Hole, b: Hole, keep: int = 0, keep_at_end: int = 0
    ) -> Asking[tuple[list[Any], list[Any], int]]:
        left, right, skipped = yield from self._unlike_pages(a, b, keep, keep_at_end)
        old = yield from self._joined([name for name, _ in left], PAGED_LIST)
        new = yield from self._joined([name for name, _ in right], PAGED_LIST)
        return old, new, skipped

    def _paged_dicts(self, a: Hole, b: Hole) -> Asking[tuple[Any, Any]]:
        left, right, _ = yield from self._unlike_pages(a, b)
        shared = set(left) & set(right)
        old = [page[0] for page in left if page not in shared]
        new = [page[0] for page in right if page not in shared]
        return (
            (yield from self._joined(old, PAGED_DICT)),
            (yield from self._joined(new, PAGED_DICT)),
        )

    # Dicts, sets and objects.

    def _mappings(self, a: Any, b: Any, path: str, ordered: bool = False) -> Asking[bool]:
        """Compare two dicts; where order counts and differs, tell nothing and return False."""
        left, right = yield from self._unlike_items(a, b)
        if ordered and [k for k in left if k in right] != [k for k in right if k in left]:
            return False
        for key in [*left, *(key for key in right if key not in left)]:
            (name, old), (_, new) = left.get(key, _NOTHING), right.get(key, _NOTHING)
            in_a, in_b = key in left, key in right
            if in_a and in_b and packed(old) == packed(new):
                continue
            place = yield from self._place(path, name if in_a else right[key][0])
            yield from self._member(in_a, old, in_b, new, place)
        return True

    def _unlike_items(self, a: Any, b: Any) -> Asking[tuple[dict[Any, Any], dict[Any, Any]]]:
        """Return the items of two dicts, each key with itself and its value; no common pages."""
        if type(a) is Ready and type(b) is Ready:
            old = yield from self._resolved(a.plain)
            new = yield from self._resolved(b.plain)
            if _is_paged_list(old) and _is_paged_list(new):
                # A page may end between a key and its value: one more page tells which it is.
                left, right, skipped = yield from self._unlike_elements(old, new, keep=1)
                return _pairs(left, skipped), _pairs(right, skipped)
            a, b = Ready(PAIRS, old), Ready(PAIRS, new)
        return (yield from self._items(a)), (yield from self._items(b))

    def _items(self, value: Any) -> Asking[dict[Any, Any]]:
        if type(value) is dict:
            return {key: (key, part) for key, part in value.items()}
        plain = yield from self._opened(value.plain)
        if type(plain) is not list or len(plain) % 2:
            raise CheckpointIntegrityError(None, "dict does not fit its data")
        return _pairs(plain, 0)

    def _place(self, path: str, key: Any) -> Asking[str]:
        """Return the path of a dict's value."""
        if type(key) is str and key.isidentifier():
            return f"{path}.{key}"
        text = yield from self._text(key)
        return f"{path}[{text}]"

    def _text(self, key: Any) -> Asking[str]:
        """Return a key or element as a path shows it; a long one by its beginning and a hash."""
        text = shown((yield from self._full(key)))
        if len(text) <= _KEY_WIDTH:
            return text
        return f"{text[: _KEY_WIDTH - 20]}… #{xxh3_64_hexdigest(text.encode('utf-8', 'replace'))}"

    def _sets(self, a: Any, b: Any, path: str) -> Asking[None]:
        a = yield from self._resolved(a)
        b = yield from self._resolved(b)
        if _is_paged_list(a) and _is_paged_list(b):
            a, b, _ = yield from self._unlike_elements(a, b)
        else:
            a = yield from self._opened(a)
            b = yield from self._opened(b)
        if type(a) is not list or type(b) is not list:
            raise CheckpointIntegrityError(None, "set does not fit its data")
        old, new = {packed(part): part for part in a}, {packed(part): part for part in b}
        for mine, other, table in ((old, new, self.diff.removed), (new, old, self.diff.added)):
            for key, part in mine.items():
                if key not in other:
                    text = yield from self._text(part)
                    _put(table, f"{path}{{{text}}}", (yield from self._full(part)))

    def _objects(self, a: Ready, b: Ready, path: str) -> Asking[None]:
        """Compare two objects of one kind by what their kind says they consist of."""
        old = yield from self._parts(a)
        new = yield from self._parts(b)
        if old is None or new is None or packed(old.same) != packed(new.same):
            yield from self._replaced(a, b, path)
            return
        told = len(self.diff)
        for one, other in zip(old.ordered, new.ordered, strict=True):
            one = yield from self._opened(one)
            other = yield from self._opened(other)
            if not _is_mapping(one) or not _is_mapping(other):
                yield from self._replaced(a, b, path)
                return
            if not (yield from self._mappings(one, other, path, ordered=True)):
                yield from self._replaced(a, b, path)
                return
        for one, other in zip(old.lists + old.mappings, new.lists + new.mappings, strict=True):
            yield from self._compare(one, other, path)
        for one, other in zip(old.sets, new.sets, strict=True):
            yield from self._sets(one, other, path)
        for one, other in zip(old.places, new.places, strict=True):
            yield from self._places(one, other, path)
        if len(self.diff) == told and packed(old.unseen) != packed(new.unseen):
            yield from self._replaced(a, b, path)

    def _parts(self, value: Ready) -> Asking[Parts | None]:
        """Return what an object consists of, opened as far as its kind needs it to say so."""
        shape, plain = shape_of(value.code), value.plain
        if shape.opened_for_parts:
            plain = yield from self._opened(plain)
        if shape.opened_for_parts == 2 and type(plain) is list and len(plain) > 1:
            plain = [plain[0], (yield from self._resolved(plain[1])), *plain[2:]]
        return shape.parts(plain)

    def _places(self, a: Any, b: Any, path: str) -> Asking[None]:
        """Compare the elements of two named tuples: each has its place and cannot have moved."""
        a = yield from self._opened(a)
        b = yield from self._opened(b)
        if type(a) is not list or type(b) is not list or len(a) != len(b):
            yield from self._compare(a, b, path)
            return
        for at, (old, new) in enumerate(zip(a, b, strict=True)):
            yield from self._compare(old, new, f"{path}[{at}]")

    # Lists.

    def _lists(
        self, a: list[Any], b: list[Any], path: str, from_a: int, from_b: int
    ) -> Asking[None]:
        keys_a, keys_b = [packed(e) for e in a], [packed(e) for e in b]
        for tag, i1, i2, j1, j2 in aligned(keys_a, keys_b):
            if tag == "equal":
                continue
            paired = min(i2 - i1, j2 - j1)
            for k in range(paired):
                yield from self._compare(a[i1 + k], b[j1 + k], f"{path}[{from_b + j1 + k}]")
            for i in range(i1 + paired, i2):
                place = f"{path}[{from_a + i}]"
                place = _put(self.diff.removed, place, (yield from self._full(a[i])))
                self._keys["-", place] = (path, keys_a[i])
            for j in range(j1 + paired, j2):
                place = f"{path}[{from_b + j}]"
                place = _put(self.diff.added, place, (yield from self._full(b[j])))
                self._keys["+", place] = (path, keys_b[j])

    def find_moves(self) -> None:
        """Tell of an element that left one place of a list for another that it has moved."""
        came: dict[tuple[str, bytes], list[str]] = {}
        for (sign, place), key in self._keys.items():
            if sign == "+":
                came.setdefault(key, []).append(place)
        for (sign, place), key in self._keys.items():
            if sign == "-" and came.get(key):
                new = came[key].pop(0)
                self.diff.moved[place] = new
                del self.diff.removed[place], self.diff.added[new]

    # Values.

    def _full(self, value: Any) -> Asking[Any]:
        """Return the value that a shallow one stands for, with everything it refers to."""
        if type(value) in _ATOMS:
            return value
        yield from self._need_all(value)
        return self._value(value)

    def _need_all(self, value: Any) -> Asking[None]:
        """Ask for all that a shallow value refers to."""
        level, seen = references(packed(value)), set[bytes]()
        while level:
            yield from self._need([name for name, _ in level])
            names = {name for name, refers in level if refers} - seen
            seen |= names
            level = [ref for name in names for ref in references(self.chunks.opened(name))]

    def _value(self, value: Any) -> Any:
        name = b"\x00"
        self.chunks[name] = packed(value)
        return decode(name, self.chunks, on_unknown="raw", allow_pickle=self.allow_pickle)

    def _whole(self, value: Any) -> Any:
        """Return a shallow value with the content of all it refers to in its place."""
        cls = type(value)
        if cls is list:
            return [self._whole(part) for part in value]
        if cls is dict:
            return {key: self._whole(part) for key, part in value.items()}
        if cls is Ready:
            return (
                value if value.code in bytes_codes else Ready(value.code, self._whole(value.plain))
            )
        if cls is not Hole:
            return value
        if value.code in (REF_LEAF, REF_NODE):
            return self._whole(shallow(self.chunks.opened(value.data)))
        pages = _answered(self._flat(value.data))
        return self._whole(self._together(pages, value.code))


_NOTHING = (None, None)
_ATOMS = (str, int, bool, float, bytes, type(None))


def _answered(asking: Asking[T]) -> T:
    """Return the result of what has all it would ask for."""
    return drive(asking, _refuse)


def _refuse(asked: Any) -> None:
    raise CheckpointIntegrityError(None, "a chunk is missing")


def _put(table: ByPath, path: str, value: Any) -> str:
    """Enter a value; where another has the same path (two keys that read the same), beside it."""
    place, times = path, 1
    while dict.__contains__(table, place):
        times += 1
        place = f"{path} ({times})"
    table[place] = value
    return place


def _is_mapping(value: Any) -> bool:
    return type(value) is dict or (type(value) is Ready and value.code == PAIRS)


def _is_paged_list(value: Any) -> bool:
    return type(value) is Hole and value.code == PAGED_LIST


def _pairs(flat: list[Any], skipped: int) -> dict[Any, Any]:
    """Return keys and values in turn as items; halves of pairs cut through are left out."""
    whole = flat[skipped % 2 :]
    pairs = zip(whole[::2], whole[1::2], strict=False)
    return {key if type(key) is str else packed(key): (key, part) for key, part in pairs}


def _begins_with(a: list[Any], b: list[Any]) -> bool:
    """Return whether the longer of two lists of shallow values begins with the other."""
    return all(packed(one) == packed(other) for one, other in zip(a, b, strict=False))
