"""A diff of two plain values, written down as simply as can be: what ``client.diff`` has to say."""

import types
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import msgspec
import pydantic
import pydantic.v1
from hypothesis import reject

from holdfast.core.codec import pack
from holdfast.core.diff import Diff
from holdfast.core.kinds import kind_of
from holdfast.core.kinds.objects import OBJECT, STRUCT, SUBCLASS, attributes
from holdfast.core.kinds.subclasses import base_of
from holdfast.core.list_alignment import aligned
from tests.sameness import same


class PlainDiff:
    """What differs, by path."""

    def __init__(self, old: Any, new: Any) -> None:
        self.added: dict[str, Any] = {}
        self.removed: dict[str, Any] = {}
        self.changed: dict[str, Any] = {}
        self.moved: dict[str, str] = {}
        self._compare(old, new, "$")

    def _compare(self, a: Any, b: Any, path: str) -> None:
        if type(a) is not type(b):
            self._put(self.changed, path, (a, b))
        elif pack(a) != pack(b):
            self._compare_parts(type(a), a, b, path)

    def _compare_parts(self, cls: type, a: Any, b: Any, path: str) -> None:
        code = kind_of(cls).code
        base = base_of(cls) if code == SUBCLASS else None
        shape = cls if base is None else base.cls
        if shape in (list, tuple) and not hasattr(cls, "_fields"):
            self._lists(list(shape.__iter__(a)), list(shape.__iter__(b)), path)
        elif hasattr(cls, "_fields") and shape is cls:
            for at, parts in enumerate(zip(a, b, strict=True)):
                self._compare(*parts, f"{path}[{at}]")
        elif shape is deque and a.maxlen == b.maxlen:
            self._lists(list(a), list(b), path)
        elif shape in (set, frozenset):
            self._sets(a, b, path)
        elif shape in (OrderedDict, defaultdict) and not _are_of_one_kind(a, b, base is None):
            self._put(self.changed, path, (a, b))
        elif shape in (dict, OrderedDict, Counter, defaultdict, types.MappingProxyType):
            self._items(dict(a), dict(b), path)
        elif issubclass(cls, pydantic.BaseModel):
            self._models(a, b, path, ("__dict__", "__pydantic_extra__", "__pydantic_private__"))
        elif issubclass(cls, pydantic.v1.BaseModel):
            self._v1_models(a, b, path)
        elif issubclass(cls, BaseException) and pack(a.args) == pack(b.args):
            self._items(attributes(a), attributes(b), path)
        elif code in (OBJECT, STRUCT) or cls is types.SimpleNamespace:
            fields = getattr(cls, "__struct_fields__", ())
            self._items(_chosen(a, fields), _chosen(b, fields), path)
            if issubclass(cls, msgspec.Struct):
                self._items(_rest(a, fields), _rest(b, fields), path)
            return
        elif base is None or pack(base.reduce(a)) != pack(base.reduce(b)):
            self._put(self.changed, path, (a, b))
            return
        if base is not None and path not in self.changed:
            self._items(attributes(a), attributes(b), path)

    def _models(self, a: Any, b: Any, path: str, parts: tuple[str, ...]) -> None:
        before = self._size()
        for part in parts:
            self._items(getattr(a, part) or {}, getattr(b, part) or {}, path)
        if self._size() == before and a.model_fields_set != b.model_fields_set:
            self._put(self.changed, path, (a, b))

    def _v1_models(self, a: Any, b: Any, path: str) -> None:
        before = self._size()
        self._items(a.__dict__, b.__dict__, path)
        old, new = ({n: getattr(m, n) for n in m.__private_attributes__} for m in (a, b))
        self._items(old, new, path)
        if self._size() == before and a.__fields_set__ != b.__fields_set__:
            self._put(self.changed, path, (a, b))

    def _size(self) -> int:
        return sum(map(len, (self.added, self.removed, self.changed)))

    def _items(self, a: dict[Any, Any], b: dict[Any, Any], path: str) -> None:
        left = {pack(key): (key, value) for key, value in a.items()}
        right = {pack(key): (key, value) for key, value in b.items()}
        for key in [*left, *(key for key in right if key not in left)]:
            place = _item_path(path, (left.get(key) or right[key])[0])
            if key not in right:
                self._put(self.removed, place, left[key][1])
            elif key not in left:
                self._put(self.added, place, right[key][1])
            else:
                self._compare(left[key][1], right[key][1], place)

    def _sets(self, a: Any, b: Any, path: str) -> None:
        old = {pack(part): part for part in a}
        new = {pack(part): part for part in b}
        for key in sorted(old.keys() - new.keys()):
            self._put(self.removed, f"{path}{{{_long(old[key])}}}", old[key])
        for key in sorted(new.keys() - old.keys()):
            self._put(self.added, f"{path}{{{_long(new[key])}}}", new[key])

    def _lists(self, a: list[Any], b: list[Any], path: str) -> None:
        keys_a, keys_b = list(map(pack, a)), list(map(pack, b))
        went: list[int] = []
        came: list[int] = []
        for tag, i1, i2, j1, j2 in aligned(keys_a, keys_b):
            paired = 0 if tag == "equal" else min(i2 - i1, j2 - j1)
            for i, j in zip(range(i1, i1 + paired), range(j1, j1 + paired), strict=True):
                self._compare(a[i], b[j], f"{path}[{j}]")
            went += [] if tag == "equal" else range(i1 + paired, i2)
            came += [] if tag == "equal" else range(j1 + paired, j2)
        for i in went:
            again = next((j for j in came if keys_b[j] == keys_a[i]), None)
            if again is None:
                self._put(self.removed, f"{path}[{i}]", a[i])
            else:
                came.remove(again)
                self.moved[f"{path}[{i}]"] = f"{path}[{again}]"
        for j in came:
            self._put(self.added, f"{path}[{j}]", b[j])

    def _put(self, table: dict[str, Any], path: str, value: Any) -> None:
        places = [path, *(f"{path} ({times})" for times in range(2, 100))]
        table[next(place for place in places if place not in table)] = value


def _are_of_one_kind(a: Any, b: Any, is_plain: bool) -> bool:
    if isinstance(a, defaultdict):
        return a.default_factory is b.default_factory
    return not is_plain or _in_one_order(a, b)


def _in_one_order(a: Any, b: Any) -> bool:
    keys_a, keys_b = list(map(pack, a)), list(map(pack, b))
    return [k for k in keys_a if k in keys_b] == [k for k in keys_b if k in keys_a]


def _chosen(obj: Any, names: tuple[str, ...]) -> dict[str, Any]:
    held = attributes(obj)
    return {name: held[name] for name in names} if names else held


def _rest(obj: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in attributes(obj).items() if name not in names}


def _item_path(path: str, key: Any) -> str:
    if type(key) is str and key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{_long(key)}]"


def _long(key: Any) -> str:
    text = repr(key)
    if len(text) > 200:  # long keys have a test of their own
        reject()
    return text


def explain(diff: Diff, plain: PlainDiff) -> str | None:
    """How a diff is not what it should be, or None."""
    for name in ("added", "removed", "changed", "moved"):
        given, wanted = dict(getattr(diff, name)), getattr(plain, name)
        if given.keys() != wanted.keys():
            return f"{name} at {sorted(given)}, not {sorted(wanted)}"
        for path, value in wanted.items():
            if not same(given[path], value):
                return f"{name} at {path}: {given[path]!r}, not {value!r}"
    return None
