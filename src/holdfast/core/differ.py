"""Finds what changed between two states; only the chunks that differ are asked for.

Both states are walked as their chunks have them, without reviving anything: equal bytes are equal
values. One value may be kept in two ways, whole here and in pages there, when what stands beside it
has grown; so bytes that differ are opened before two values are called different. What is told of a
difference is the value itself.
"""

from __future__ import annotations

from typing import Any

from xxhash import xxh3_64_hexdigest

from holdfast.core.chunk_format import PAGED_DICT, PAGED_LIST, unpack_index
from holdfast.core.chunk_opener import Asking, ChunkOpener, Fetch
from holdfast.core.diff import ByPath, Diff
from holdfast.core.kinds import Ready, shape_of
from holdfast.core.kinds.plain_shapes import Parts
from holdfast.core.kinds.standard import PAIRS
from holdfast.core.list_alignment import aligned
from holdfast.core.page_alignment import Alignment, Gap, Part, parts_of, unshared
from holdfast.core.safe_repr import shown
from holdfast.core.shallow_reader import Hole, packed
from holdfast.errors import CheckpointIntegrityError

_ByKey = dict[Any, Any]
"""The items of a dict: each key, or its bytes where it is no text, with itself and its value."""

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


class _Differ:
    def __init__(self, fetch: Fetch, allow_pickle: bool) -> None:
        self.diff = Diff()
        self.chunks = ChunkOpener(fetch, allow_pickle)
        self._keys: dict[tuple[str, str], tuple[str, bytes]] = {}  # of items that came or went

    def payloads(self, old: bytes, new: bytes) -> Asking[None]:
        if old == new:
            return
        yield from self.chunks.need((old, new))
        a = yield from self.chunks.opened(self.chunks.read(old))
        b = yield from self.chunks.opened(self.chunks.read(new))
        if type(a) is not dict or type(b) is not dict or not _ROOT_PATHS.keys() >= {*a, *b}:
            raise CheckpointIntegrityError(None, "it holds no state")
        for part, path in _ROOT_PATHS.items():
            if part in a or part in b:
                yield from self._member(part in a, a.get(part), part in b, b.get(part), path)

    def _member(self, in_a: bool, a: Any, in_b: bool, b: Any, path: str) -> Asking[None]:
        if in_a and in_b:
            yield from self._compare(a, b, path)
        elif in_a:
            _put(self.diff.removed, path, (yield from self.chunks.full(a)))
        else:
            _put(self.diff.added, path, (yield from self.chunks.full(b)))

    def _compare(self, a: Any, b: Any, path: str) -> Asking[None]:
        if packed(a) == packed(b):
            return
        a = yield from self.chunks.resolved(a)
        b = yield from self.chunks.resolved(b)
        if type(a) is Hole and type(b) is Hole and a.code == b.code == PAGED_LIST:
            yield from self._paged_lists(a, b, path)
            return
        if type(a) is Hole and type(b) is Hole and a.code == b.code == PAGED_DICT:
            a, b = yield from self._unordered(a, b)
        else:
            a = yield from self.chunks.opened(a)
            b = yield from self.chunks.opened(b)
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
        yield from self.chunks.need_all(a)
        yield from self.chunks.need_all(b)
        if packed(self.chunks.whole(a)) != packed(self.chunks.whole(b)):
            _put(self.diff.changed, path, (self.chunks.value(a), self.chunks.value(b)))

    # Pages.

    def _gaps(self, a: Hole, b: Hole, alignment: Alignment) -> Asking[list[Gap]]:
        """Return what two paged lists do not share; what is below shared indexes is not opened."""
        level, old, new = yield from self._at_one_level(a, b)
        gaps = alignment.apart(Gap(old, new))
        for above in range(level, 0, -1):
            yield from self.chunks.need(name for gap in gaps for name in gap.names)
            gaps = [
                finer
                for gap in gaps
                for finer in alignment.apart(
                    Gap(
                        self.chunks.one_level_down(gap.old, above),
                        self.chunks.one_level_down(gap.new, above),
                        gap.old_start,
                        gap.new_start,
                    )
                )
            ]
        return gaps

    def _at_one_level(self, a: Hole, b: Hole) -> Asking[tuple[int, list[Part], list[Part]]]:
        """Return the parts of two indexes, the deeper of which is opened as far as the other."""
        (level_a, entries_a), (level_b, entries_b) = unpack_index(a.data), unpack_index(b.data)
        old, new = parts_of(entries_a), parts_of(entries_b)
        for above in range(level_a, level_b, -1):
            yield from self.chunks.need(part.name for part in old)
            old = self.chunks.one_level_down(old, above)
        for above in range(level_b, level_a, -1):
            yield from self.chunks.need(part.name for part in new)
            new = self.chunks.one_level_down(new, above)
        return min(level_a, level_b), old, new

    def _elements(self, gap: Gap) -> Asking[tuple[list[Any], list[Any]]]:
        """Return the elements of a gap, shallow."""
        old = yield from self.chunks.joined([part.name for part in gap.old], PAGED_LIST)
        new = yield from self.chunks.joined([part.name for part in gap.new], PAGED_LIST)
        return old, new

    def _paged_lists(self, a: Hole, b: Hole, path: str) -> Asking[None]:
        gaps = yield from self._gaps(a, b, Alignment())
        yield from self.chunks.need(name for gap in gaps for name in gap.names)
        for gap in gaps:
            old, new = yield from self._elements(gap)
            if len(gaps) == 1:
                gap, old, new = yield from self._from_where_unlike(a, b, gap, old, new)
            yield from self._lists(old, new, path, gap.old_start, gap.new_start)

    def _from_where_unlike(
        self, a: Hole, b: Hole, gap: Gap, old: list[Any], new: list[Any]
    ) -> Asking[tuple[Gap, list[Any], list[Any]]]:
        """Return the same, or more of what follows: where contents repeat, what both end with may
        hide how far they begin alike.
        """
        kept = 0
        while _begins_with(old, new):
            kept = kept * 2 or 1
            ends = Alignment(keep_at_end=kept, only_ends=True)
            (more,) = yield from self._gaps(a, b, ends)
            if len(more.old) == len(gap.old):
                break
            gap = more
            old, new = yield from self._elements(gap)
        return gap, old, new

    def _unordered_parts(self, a: Hole, b: Hole) -> Asking[tuple[list[bytes], list[bytes]]]:
        """Return the pages that only one has, of what is not told by its place."""
        level, old, new = yield from self._at_one_level(a, b)
        old, new = unshared(old, new)
        for above in range(level, 0, -1):
            yield from self.chunks.need(part.name for part in (*old, *new))
            old, new = unshared(
                self.chunks.one_level_down(old, above), self.chunks.one_level_down(new, above)
            )
        return [part.name for part in old], [part.name for part in new]

    def _unordered(self, a: Hole, b: Hole) -> Asking[tuple[Any, Any]]:
        """Return two paged dicts or sets without the pages that both have."""
        left, right = yield from self._unordered_parts(a, b)
        old = yield from self.chunks.joined(left, a.code)
        new = yield from self.chunks.joined(right, a.code)
        return old, new

    # Dicts, sets and objects.

    def _mappings(self, a: Any, b: Any, path: str, ordered: bool = False) -> Asking[bool]:
        """Compare two dicts; where order counts and differs, tell nothing and return False."""
        left, right = yield from self._unlike_items(a, b, ordered)
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

    def _unlike_items(self, a: Any, b: Any, ordered: bool) -> Asking[tuple[_ByKey, _ByKey]]:
        """Return the items of two dicts, each key with itself and its value; no common pages."""
        if type(a) is Ready and type(b) is Ready:
            old = yield from self.chunks.resolved(a.plain)
            new = yield from self.chunks.resolved(b.plain)
            if _is_paged_list(old) and _is_paged_list(new):
                return (yield from self._unlike_pairs(old, new, ordered))
            a, b = Ready(PAIRS, old), Ready(PAIRS, new)
        return (yield from self._items(a)), (yield from self._items(b))

    def _unlike_pairs(self, a: Hole, b: Hole, ordered: bool) -> Asking[tuple[_ByKey, _ByKey]]:
        """Return the same of dicts that are kept as lists of keys and values in turn."""
        # A page may end between a key and its value: one more page tells which it is.
        gaps = yield from self._gaps(a, b, Alignment(step=2, keep=1, only_ends=ordered))
        yield from self.chunks.need(name for gap in gaps for name in gap.names)
        left: _ByKey = {}
        right: _ByKey = {}
        for gap in gaps:
            old, new = yield from self._elements(gap)
            left |= _pairs(old, gap.old_start)
            right |= _pairs(new, gap.new_start)
        return left, right

    def _items(self, value: Any) -> Asking[_ByKey]:
        if type(value) is dict:
            return {key: (key, part) for key, part in value.items()}
        plain = yield from self.chunks.opened(value.plain)
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
        text = shown((yield from self.chunks.full(key)))
        if len(text) <= _KEY_WIDTH:
            return text
        return f"{text[: _KEY_WIDTH - 20]}… #{xxh3_64_hexdigest(text.encode('utf-8', 'replace'))}"

    def _sets(self, a: Any, b: Any, path: str) -> Asking[None]:
        a = yield from self.chunks.resolved(a)
        b = yield from self.chunks.resolved(b)
        if _is_paged_list(a) and _is_paged_list(b):
            a, b = yield from self._unordered(a, b)
        else:
            a = yield from self.chunks.opened(a)
            b = yield from self.chunks.opened(b)
        if type(a) is not list or type(b) is not list:
            raise CheckpointIntegrityError(None, "set does not fit its data")
        old, new = {packed(part): part for part in a}, {packed(part): part for part in b}
        for mine, other, table in ((old, new, self.diff.removed), (new, old, self.diff.added)):
            for key, part in mine.items():
                if key not in other:
                    text = yield from self._text(part)
                    _put(table, f"{path}{{{text}}}", (yield from self.chunks.full(part)))

    def _objects(self, a: Ready, b: Ready, path: str) -> Asking[None]:
        """Compare two objects of one kind by what their kind says they consist of."""
        old = yield from self._parts(a)
        new = yield from self._parts(b)
        if old is None or new is None or packed(old.same) != packed(new.same):
            yield from self._replaced(a, b, path)
            return
        told = len(self.diff)
        for one, other in zip(old.ordered, new.ordered, strict=True):
            one = yield from self.chunks.opened(one)
            other = yield from self.chunks.opened(other)
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
            plain = yield from self.chunks.opened(plain)
        if shape.opened_for_parts == 2 and type(plain) is list and len(plain) > 1:
            plain = [plain[0], (yield from self.chunks.resolved(plain[1])), *plain[2:]]
        return shape.parts(plain)

    def _places(self, a: Any, b: Any, path: str) -> Asking[None]:
        """Compare the elements of two named tuples: each has its place and cannot have moved."""
        a = yield from self.chunks.opened(a)
        b = yield from self.chunks.opened(b)
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
                place = _put(self.diff.removed, place, (yield from self.chunks.full(a[i])))
                self._keys["-", place] = (path, keys_a[i])
            for j in range(j1 + paired, j2):
                place = f"{path}[{from_b + j}]"
                place = _put(self.diff.added, place, (yield from self.chunks.full(b[j])))
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


_NOTHING = (None, None)


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


def _pairs(flat: list[Any], skipped: int) -> _ByKey:
    """Return keys and values in turn as items; halves of pairs cut through are left out."""
    whole = flat[skipped % 2 :]
    pairs = zip(whole[::2], whole[1::2], strict=False)
    return {key if type(key) is str else packed(key): (key, part) for key, part in pairs}


def _begins_with(a: list[Any], b: list[Any]) -> bool:
    """Return whether the longer of two lists of shallow values begins with the other."""
    return all(packed(one) == packed(other) for one, other in zip(a, b, strict=False))
