"""What cannot be kept is refused at save, with its exact path and what to do about it."""

import asyncio
import enum
import io
import itertools
import os
import re
import socket
import sys
import threading
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pydantic
import pytest

from holdfast import HoldfastError, SerializationError, register_type
from holdfast.core.chunk_encoder import encode
from holdfast.core.codec import Packer, pack, unpack
from tests import strategies as s

REMEDY = "exclude it or register_type(...)"


@pytest.fixture(params=["lock", "socket", "generator", "lambda", "file", "coroutine", "module"])
def unkeepable(request: pytest.FixtureRequest) -> Iterator[Any]:
    makers: dict[str, Any] = {
        "lock": threading.Lock,
        "socket": socket.socket,
        "generator": lambda: (number for number in range(3)),
        "lambda": lambda: lambda: None,
        "file": lambda: open(os.devnull, "rb"),  # noqa: SIM115
        "coroutine": lambda: asyncio.sleep(0),
        "module": lambda: sys,
    }
    made = makers[request.param]()
    yield made
    if hasattr(made, "close"):
        made.close()


PLACES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "itself": (lambda x: x, "$"),
    "list": (lambda x: [1, x], "$[1]"),
    "tuple": (lambda x: (1, x), "$[1]"),
    "dict": (lambda x: {"tools": {"client": x}}, "$.tools.client"),
    "key with a blank": (lambda x: {"a b": x}, "$['a b']"),
    "the design's example": (lambda x: {"tools": [1, 2, 3, {"client": x}]}, "$.tools[3].client"),
    "dict with an int key": (lambda x: {"a": {1: {2: x}}}, "$.a[1][2]"),
    "dict with a tuple key": (lambda x: {("a", 1): [x]}, "$[('a', 1)][0]"),
    "dict with a surrogate key": (lambda x: {"\ud800": x}, "$['\\ud800']"),
    "dict with an enum key": (
        lambda x: {s.Level.LOW: x, s.Color.RED: 1},
        "$[<Level.LOW: 1>]",
    ),
    "list in a tuple": (lambda x: {"t": (0, [1, x])}, "$.t[1][1]"),
    "dict in a tuple": (lambda x: ({"a": x},), "$[0].a"),
    "tuple in a tuple": (lambda x: ((1, (2, x)),), "$[0][1][1]"),
    "deque": (lambda x: {"d": deque([1, [x]])}, "$.d[1][0]"),
    "OrderedDict": (lambda x: OrderedDict(a=[x]), "$.a[0]"),
    "defaultdict": (lambda x: {"d": defaultdict(list, a=[x])}, "$.d.a[0]"),
    "Counter": (lambda x: Counter(a=x), "$.a"),
    "mappingproxy": (lambda x: types.MappingProxyType({"a": x}), "$.a"),
    "SimpleNamespace": (lambda x: types.SimpleNamespace(a=[x]), "$.a[0]"),
    "dataclass": (lambda x: {"d": s.Plain(1, [x])}, "$.d.b[0]"),
    "dataclass with slots": (lambda x: [s.Slotted(x)], "$[0].a"),
    "frozen dataclass in a tuple": (lambda x: (s.Frozen((1, x)),), "$[0].a[1]"),
    "attrs": (lambda x: s.Defined({"k": x}), "$.a.k"),
    "pydantic field": (lambda x: {"m": s.Model(a=[x])}, "$.m.a[0]"),
    "pydantic extra": (lambda x: s.Model(**{"more": x}), "$.more"),
    "pydantic v1": (lambda x: s.ModelV1.construct(a=x), "$.a"),
    "Struct": (lambda x: s.Record(1, x), "$.b"),
    "NamedTuple": (lambda x: s.Point(1, x), "$[1]"),
    "exception argument": (lambda x: {"e": ValueError(1, x)}, "$.e.args[1]"),
    "exception attribute": (lambda x: s.Oops(1, detail=[x]), "$.detail[0]"),
    "list subclass": (lambda x: {"l": s.Items([1, x])}, "$.l[1]"),
    "dict subclass": (lambda x: {"d": s.Mapping({"a": 1, "b": x})}, "$.d.b"),
    "OrderedDict subclass": (lambda x: s.Ordered(a=1, b=[x]), "$.b[0]"),
    "defaultdict subclass": (lambda x: s.Grouped(list, a=x), "$.a"),
    "deque subclass": (lambda x: s.Queue([1, x]), "$[1]"),
    "attribute of a str subclass": (lambda x: s.with_note(s.Text("a"), x), "$.note"),
    "object": (lambda x: s.Thing(a=s.Thing(b=x)), "$.a.b"),
    "slot": (lambda x: s.SlotThing(a=x), "$.a"),
    "private slot": (lambda x: s.SlotThing().hide(x), "$._SlotThing__private"),
    "array of objects": (lambda x: s.object_array([1, x]), "$[1]"),
    "beside what has to be rewritten": (lambda x: ["\ud800", 10**30, {1: x}], "$[2][1]"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_value_that_cannot_be_kept_is_named_by_its_path(place: str) -> None:
    put, path = PLACES[place]

    with pytest.raises(SerializationError) as caught:
        pack(put(threading.Lock()))

    assert caught.value.path == path
    assert str(caught.value) == f"{path}: _thread.lock cannot be checkpointed; {REMEDY}"


def test_each_kind_of_live_thing_is_refused_with_the_remedy(unkeepable: Any) -> None:
    with pytest.raises(SerializationError) as caught:
        pack({"state": [s.Plain(unkeepable)]})

    assert caught.value.path == "$.state[0].a"
    assert type(unkeepable).__name__ in str(caught.value)
    assert str(caught.value).endswith(f"cannot be checkpointed; {REMEDY}")


@pytest.mark.parametrize(
    "value",
    [
        threading.Event(),
        threading.Thread(target=print),
        io.StringIO(),
        io.BytesIO(b"x"),
        itertools.count(),
        iter([]),
        memoryview(b"x"),
        re.compile("x"),
        print,
        len,
        types,
        object.__init__,
        property(),
        staticmethod(len),
        np.ma.masked_array([1]),
        np.array(["x"], np.dtypes.StringDType()),
        np.zeros(2, "V0"),
        np.zeros(1, [("a", "O")]),
        pd.offsets.Day(1),
        os.stat("."),
        type("", (), {"__del__": lambda self: None})(),
        defaultdict(lambda: 1),
        s.Grouped(lambda: 1),
        types.new_class("Dynamic"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_things_without_a_faithful_form_are_refused(value: Any) -> None:
    with pytest.raises(SerializationError, match=r"^\$\.a"):
        pack({"a": value})


def test_an_error_of_pydantic_is_refused_at_save_and_not_at_load() -> None:
    with pytest.raises(pydantic.ValidationError) as invalid:
        pydantic.TypeAdapter(int).validate_python("x")

    with pytest.raises(SerializationError, match=r"^\$\.error: .*ValidationError cannot be"):
        pack({"error": invalid.value})


def test_a_flag_with_its_own_missing_hook_is_refused_where_only_that_could_make_it() -> None:
    class Odd(enum.Flag):
        ONE = 1
        TWO = 2

        @classmethod
        def _missing_(cls, value: object) -> Any:
            return super()._missing_(value)

    assert unpack(pack(Odd.ONE)) is Odd.ONE
    with pytest.raises(SerializationError, match=r"^\$\[0\]: .*_missing_"):
        pack([Odd.ONE | Odd.TWO])


def test_a_struct_that_would_run_code_when_made_is_refused() -> None:
    class Busy(msgspec.Struct):
        a: int

        def __post_init__(self) -> None:
            pass

    with pytest.raises(SerializationError, match=r"^\$\.s: .*__post_init__.*register_type"):
        pack({"s": Busy(1)})


def test_a_struct_with_a_deleted_field_is_refused() -> None:
    record = s.Record(1)
    del record.a

    with pytest.raises(SerializationError, match=r"^\$: .*deleted"):
        pack(record)


@pytest.mark.parametrize("kind", [set, frozenset, s.Unique, s.FrozenUnique])
def test_the_path_of_an_element_of_a_set_shows_the_element(kind: Any) -> None:
    with pytest.raises(SerializationError) as caught:
        pack({"a": [kind({("x", threading.Lock())})]})

    assert re.fullmatch(r"\$\.a\[0\]\{\('x', <unlocked .*\)\}\[1\]", caught.value.path)


def test_the_path_of_a_key_says_that_it_is_a_key() -> None:
    with pytest.raises(SerializationError) as caught:
        pack({"a": {(1, threading.Lock()): 1}})

    assert re.fullmatch(r"\$\.a<key \(1, <unlocked .*\)>\[1\]", caught.value.path)


def test_a_path_stays_short_where_a_key_is_long() -> None:
    with pytest.raises(SerializationError) as caught:
        pack({"x" * 10_000 + " ": threading.Lock()})

    assert len(caught.value.path) < 100


class Unspeakable:
    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def test_a_key_that_cannot_be_shown_does_not_hide_the_error() -> None:
    with pytest.raises(SerializationError, match="lock cannot be checkpointed"):
        pack({Unspeakable(): threading.Lock()})


def a_list() -> Any:
    value: list[Any] = [1]
    value.append(value)
    return value


def a_dict() -> Any:
    value: dict[str, Any] = {"a": {}}
    value["a"]["b"] = value
    return value


def an_odd_dict() -> Any:
    value: dict[Any, Any] = {}
    value[1] = [value]
    return value


def an_object() -> Any:
    value: Any = s.Thing()
    value.me = [value]
    return value


def a_slot() -> Any:
    value = s.SlotThing()
    value.a = (value,)
    return value


def a_model() -> Any:
    value = s.Model()
    value.a = value
    return value


def parent_and_child() -> Any:
    parent: Any = s.Thing(children=[])
    parent.children.append(s.Thing(parent=parent))
    return parent


def an_exception() -> Any:
    error = ValueError()
    error.args = (error,)
    return error


def an_array() -> Any:
    array = np.empty(1, dtype=object)
    array[0] = array
    return array


def a_set() -> Any:
    thing: Any = s.Thing()
    thing.all = {thing}
    return thing


def a_registered_type() -> Any:
    register_type(Loop, lambda loop: [loop], lambda data: Loop())
    return Loop()


class Loop:
    pass


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (a_list, "$.s[1]"),
        (a_dict, "$.s.a.b"),
        (an_odd_dict, "$.s[1][0]"),
        (an_object, "$.s.me[0]"),
        (a_slot, "$.s.a[0]"),
        (a_model, "$.s.a"),
        (parent_and_child, "$.s.children[0].parent"),
        (an_exception, "$.s.args[0]"),
        (an_array, "$.s[0]"),
        (a_registered_type, "$.s[0]"),
    ],
)
@pytest.mark.parametrize("save", [pack, encode])
def test_a_circular_reference_is_refused_with_both_its_ends(
    make: Callable[[], Any], path: str, save: Any
) -> None:
    with pytest.raises(SerializationError) as caught:
        save({"s": make()})

    assert caught.value.path == path
    assert caught.value.problem.startswith("is a circular reference to $.s; break the cycle")


def test_a_circular_reference_through_a_set_is_refused() -> None:
    with pytest.raises(SerializationError, match=r"circular reference to \$\.s;"):
        pack({"s": a_set()})


def nested(depth: int, wrap: Callable[[Any], Any], core: Any = 1) -> Any:
    for _ in range(depth):
        core = wrap(core)
    return core


WRAPS: dict[str, Callable[[Any], Any]] = {
    "list": lambda x: [x],
    "dict": lambda x: {"a": x},
    "dict with odd keys": lambda x: {1: x},
    "tuple": lambda x: (x,),
    "object": lambda x: s.Thing(a=x),
    "slots": s.Slotted,
    "pydantic": lambda x: s.FrozenModel.model_construct(a=x),
    "exception": ValueError,
    "frozenset": lambda x: frozenset([x]),
    "frozenset subclass": lambda x: s.FrozenUnique([x]),
    "deque": lambda x: deque([x]),
    "list subclass": lambda x: s.Items([x]),
    "mixed": lambda x: [{"a": (s.Plain({1: x}),)}],
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("depth", [300, 5_000])
@pytest.mark.parametrize("core", [1, "\ud800"])
@pytest.mark.parametrize("save", [pack, encode])
def test_too_deep_nesting_is_refused_in_words(wrap: str, depth: int, core: Any, save: Any) -> None:
    value = nested(depth, WRAPS[wrap], core)

    with pytest.raises(SerializationError, match="is nested too deep to be checkpointed") as caught:
        save(value)

    assert caught.value.path.startswith("$")
    assert len(str(caught.value)) < 250
    nested_apart(value)


def nested_apart(value: Any) -> None:
    """Take a deep value apart from the outside, or freeing it would overflow the stack."""
    while isinstance(value, (list, dict, deque)) and value:
        inner = value.pop() if not isinstance(value, dict) else value.popitem()[1]
        value = inner


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("core", [1, "\ud800"])
def test_what_is_packed_can_be_unpacked_however_deep(wrap: str, core: Any) -> None:
    deepest = 0
    for depth in (10, 25, 50, 90, 99, 100, 101, 110, 200, 249, 250, 251, 254, 255, 256, 260):
        value = nested(depth, WRAPS[wrap], core)
        try:
            packed = pack(value)
        except SerializationError:
            continue
        deepest = depth
        assert pack(unpack(packed)) == packed

    assert deepest >= (200 if wrap in ("list", "dict") else 25)


def test_a_deep_stack_does_not_turn_into_a_crash() -> None:
    def deeper(levels: int) -> bytes:
        return deeper(levels - 1) if levels else pack(nested(90, s.Slotted, "\ud800"))

    try:
        deeper(sys.getrecursionlimit() - 200)
    except SerializationError as error:
        assert "nested too deep" in str(error)  # noqa: PT017


BROKEN: dict[str, Callable[[], Any]] = {
    "lock": threading.Lock,
    "cycle": a_list,
    "too deep": lambda: nested(400, WRAPS["list"]),
    "cycle of objects": an_object,
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_packer_works_on_after_a_failure(broken: str) -> None:
    packer = Packer()
    good = [s.Plain((1, {2: "\ud800"})), {3, "a"}]
    before = packer.pack(good)

    for name, wrap in WRAPS.items():
        core = threading.Lock() if "frozenset" in name else BROKEN[broken]()
        with pytest.raises(SerializationError):
            packer.pack(nested(3, wrap, core))

    assert packer.pack(good) == before
    assert packer.pack(nested(100, WRAPS["tuple"])) == pack(nested(100, WRAPS["tuple"]))


class Broken:
    """Has a property where its items are asked for, which fails."""

    def __init__(self) -> None:
        self.ok = 1

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise KeyError("no attributes today")


class Stubborn:
    pass


@pytest.mark.parametrize(
    "error", [KeyError("k"), RuntimeError("r"), OverflowError(), TypeError("t")]
)
def test_whatever_a_registered_function_raises_at_save_gets_a_path(error: Exception) -> None:
    def fail(value: Any) -> Any:
        raise error

    register_type(Stubborn, fail, lambda data: Stubborn())

    with pytest.raises(SerializationError, match=r"^\$\.a\[0\]: .*Stubborn could not be read") as e:
        pack({"a": [Stubborn()]})
    assert e.value.__cause__ is error


def test_an_object_whose_attributes_cannot_be_read_is_refused_with_its_path() -> None:
    with pytest.raises(SerializationError, match=r"^\$\[0\]: "):
        pack([Broken()])


@pytest.mark.parametrize("place", PLACES)
def test_no_error_but_our_own_leaves_the_encoder(place: str) -> None:
    put, _ = PLACES[place]
    for value in (threading.Lock(), a_list(), nested(400, WRAPS["tuple"]), an_object()):
        for save in (pack, encode):
            with pytest.raises(HoldfastError):
                save(put(value))
