"""Loading runs no constructor and no method that the data chooses, one test for each way in."""

import collections
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pydantic
import pydantic.v1
import pytest

from holdfast import CheckpointIntegrityError, SerializationError, UnknownTypeError
from holdfast.core.codec import unpack
from tests.unit.attacks import OPERATORS, TRAP, Trap, blob, ext, load, note, ran

HERE = __name__

pytestmark = pytest.mark.usefixtures("nothing_ran")


# A constructor chosen by data.


def test_no_constructor_of_a_plain_class_runs() -> None:
    obj = load("object", [TRAP, {"a": 1}])

    assert type(obj) is Trap
    assert object.__getattribute__(obj, "__dict__") == {"a": 1}
    ran.remove("__getattribute__ __dict__") if ran else None  # the assertion's own, if any


@dataclass
class Initialised:
    a: int
    b: int = field(default_factory=lambda: note("default_factory"))

    def __post_init__(self) -> None:
        ran.append("__post_init__")


def test_no_post_init_or_default_factory_of_a_dataclass_runs() -> None:
    assert vars(load("object", [f"{HERE}:Initialised", {"a": 1}])) == {"a": 1}


class Validated(pydantic.BaseModel):
    a: int = pydantic.Field(default_factory=lambda: note("default_factory"))

    def __init__(self, **values: Any) -> None:
        ran.append("__init__")
        super().__init__(**values)

    @pydantic.field_validator("a")
    @classmethod
    def check(cls, value: int) -> int:
        ran.append("validator")
        return value

    @pydantic.model_validator(mode="after")
    def check_all(self) -> "Validated":
        ran.append("model validator")
        return self

    def model_post_init(self, context: Any) -> None:
        ran.append("model_post_init")

    def __setattr__(self, name: str, value: Any) -> None:
        ran.append("__setattr__")

    def __setstate__(self, state: Any) -> None:
        ran.append("__setstate__")


def test_no_validator_or_hook_of_pydantic_runs() -> None:
    model = load("pydantic", [f"{HERE}:Validated", {"a": "not checked"}, ["a"], None, None])

    assert model.a == "not checked"


class ValidatedV1(pydantic.v1.BaseModel):
    a: int = 1
    _secret: int = pydantic.v1.PrivateAttr(default=0)

    @pydantic.v1.validator("a", allow_reuse=True)
    def check(cls, value: int) -> int:
        ran.append("validator")
        return value

    @property
    def door(self) -> int:
        return 1

    @door.setter
    def door(self, value: Any) -> None:
        ran.append("setter")


class OtherV1(ValidatedV1):
    pass


def test_no_validator_of_pydantic_v1_runs() -> None:
    model = load("pydantic.v1", [f"{HERE}:ValidatedV1", {"a": "x"}, ["a"], {"_secret": 5}])

    assert (model.a, model._secret) == ("x", 5)


@pytest.mark.parametrize("name", ["door", "__class__", "__dict__", "a", "check"])
def test_private_attributes_of_pydantic_v1_reach_no_setter_and_no_class(name: str) -> None:
    private = {name: ext("class", [f"{HERE}:OtherV1", None])}

    with pytest.raises(CheckpointIntegrityError):
        load("pydantic.v1", [f"{HERE}:ValidatedV1", {"a": 1}, [], private])


class FalseStruct:
    __struct_fields__ = ("command",)

    def __init__(self, command: str) -> None:
        ran.append(command)


class BusyStruct(msgspec.Struct):
    a: int

    def __post_init__(self) -> None:
        ran.append("__post_init__")


class MetaStruct(type(msgspec.Struct)):  # type: ignore[misc]
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        ran.append("metaclass __call__")


class StructWithMeta(msgspec.Struct, metaclass=MetaStruct):
    a: int


@pytest.mark.parametrize("name", ["FalseStruct", "BusyStruct", "StructWithMeta"])
def test_no_constructor_runs_because_a_class_looks_like_a_struct(name: str) -> None:
    field_name = "command" if name == "FalseStruct" else "a"

    with pytest.raises(UnknownTypeError, match=f"{name} (is a class|has a)"):
        load("msgspec", [f"{HERE}:{name}", {field_name: "rm"}])


class LoudError(ValueError):
    def __new__(cls, *args: Any) -> Any:
        ran.append("__new__")
        return super().__new__(cls, *args)

    def __init__(self, *args: Any) -> None:
        ran.append("__init__")

    def __setattr__(self, name: str, value: Any) -> None:
        ran.append("__setattr__")


def test_no_constructor_or_setter_of_an_exception_runs() -> None:
    error = load("exception", [f"{HERE}:LoudError", {"code": 5}, ["x"]])

    assert (error.args, error.code) == (("x",), 5)


class LoudTuple(collections.namedtuple("LoudTuple", "a b")):
    def __new__(cls, *args: Any) -> Any:
        ran.append("__new__")
        return super().__new__(cls, *args)


class LoudList(list):
    def __init__(self, *args: Any) -> None:
        ran.append("__init__")

    def append(self, value: Any) -> None:
        ran.append("append")

    def extend(self, value: Any) -> None:
        ran.append("extend")


class LoudDict(dict):
    def __init__(self, *args: Any) -> None:
        ran.append("__init__")

    def __setitem__(self, key: Any, value: Any) -> None:
        ran.append("__setitem__")

    def update(self, *args: Any) -> None:  # type: ignore[override]
        ran.append("update")


class LoudStr(str):
    def __new__(cls, *args: Any) -> Any:
        ran.append("__new__")
        return super().__new__(cls, *args)


@pytest.mark.parametrize(
    ("kind", "plain", "expected"),
    [
        ("namedtuple", ["LoudTuple", [1, 2]], (1, 2)),
        ("subclass", ["LoudList", [1, 2], "list", {}], [1, 2]),
        ("subclass", ["LoudDict", ["a", 1], "dict", {}], {"a": 1}),
        ("subclass", ["LoudStr", "x", "str", {}], "x"),
    ],
)
def test_no_constructor_or_method_of_a_subclass_runs(kind: str, plain: Any, expected: Any) -> None:
    value = load(kind, [f"{HERE}:{plain[0]}", *plain[1:]])

    assert type(value).__name__ == plain[0]
    assert value == expected


# Methods of objects that the data puts where a constructor of Python's own would call them.

INTO = {
    "tuple": ext("tuple", blob(OPERATORS)),
    "set": ext("set", blob(OPERATORS)),
    "frozenset": ext("frozenset", blob(OPERATORS)),
    "bytearray": ext("bytearray", blob(OPERATORS)),
    "deque": ext("deque", [None, OPERATORS]),
    "deque, maxlen": ext("deque", [OPERATORS, []]),
    "dict": ext("dict", blob(OPERATORS)),
    "OrderedDict": ext("OrderedDict", blob(OPERATORS)),
    "Counter": ext("Counter", blob(OPERATORS)),
    "defaultdict": ext("defaultdict", [OPERATORS, {}]),
    "defaultdict, items": ext("defaultdict", [None, OPERATORS]),
    "mappingproxy": ext("mappingproxy", blob(OPERATORS)),
    "SimpleNamespace": ext("SimpleNamespace", blob(OPERATORS)),
    "range": ext("range", [OPERATORS, 3, 1]),
    "complex": ext("complex", [OPERATORS, 1.0]),
    "Decimal": ext("Decimal", blob(OPERATORS)),
    "Fraction": ext("Fraction", [OPERATORS, 1]),
    "UUID": ext("UUID", blob(OPERATORS)),
    "datetime": ext("datetime", [OPERATORS, 1, 1, 0, 0, 0, 0, 0, None]),
    "datetime, zone": ext("datetime", [1, 1, 1, 0, 0, 0, 0, 0, OPERATORS]),
    "date": ext("date", [OPERATORS, 1, 1]),
    "time": ext("time", [OPERATORS, 1, 1, 0, 0, None]),
    "timedelta": ext("timedelta", [OPERATORS, 1, 1]),
    "timezone": ext("timezone", [OPERATORS]),
    "ZoneInfo": ext("ZoneInfo", blob(OPERATORS)),
    "Path": ext("Path", ["PosixPath", OPERATORS]),
    "Path, kind": ext("Path", [OPERATORS, "x"]),
    "constant": ext("constant", blob(OPERATORS)),
    "registered": ext("registered", [OPERATORS, 1]),
    "class": ext("class", [OPERATORS, None]),
    "object, class": ext("object", [OPERATORS, {}]),
    "object, attributes": ext("object", [TRAP, OPERATORS]),
    "enum": ext("enum", ["tests.strategies:Access", OPERATORS]),
    "namedtuple": ext("namedtuple", ["tests.strategies:Point", OPERATORS]),
    "exception, args": ext("exception", ["builtins:ValueError", {}, OPERATORS]),
    "exception group": ext("exception", ["builtins:ExceptionGroup", {}, None, "m", OPERATORS]),
    "pydantic": ext("pydantic", ["tests.strategies:Model", OPERATORS, [], None, None]),
    "pydantic, set fields": ext("pydantic", ["tests.strategies:Model", {}, OPERATORS, None, None]),
    "pydantic.v1": ext("pydantic.v1", ["tests.strategies:ModelV1", {}, [], OPERATORS]),
    "msgspec": ext("msgspec", ["tests.strategies:Record", OPERATORS]),
    "ndarray, dtype": ext("ndarray", ["numpy:ndarray", b"1234", OPERATORS, [1], "C"]),
    "ndarray, shape": ext("ndarray", ["numpy:ndarray", b"1234", "<i4", [OPERATORS], "C"]),
    "ndarray, data": ext("ndarray", ["numpy:ndarray", OPERATORS, "|O", [1]]),
    "numpy": ext("numpy", ["numpy:generic", OPERATORS, "U"]),
    "numpy, dtype": ext("numpy", ["numpy:generic", b"1234", OPERATORS]),
    "Timestamp": ext("pandas", ["pandas:Timestamp", [OPERATORS, "ns", None, 0]]),
    "Series": ext(
        "pandas",
        ["pandas:Series", [["Int64", [OPERATORS]], ["range", 0, 1, 1, None], None, {}]],
    ),
    "Index": ext("pandas", ["pandas:Index", ["range", OPERATORS, 1, 1, None]]),
    **{
        f"subclass of {base}": ext("subclass", [f"tests.strategies:{name}", OPERATORS, base, {}])
        for base, name in {
            "str": "Text",
            "int": "Whole",
            "float": "Real",
            "complex": "Complex",
            "bytes": "Blob",
            "bytearray": "Buffer",
            "list": "Items",
            "tuple": "Tuple",
            "set": "Unique",
            "dict": "Mapping",
            "deque": "Queue",
            "OrderedDict": "Ordered",
            "defaultdict": "Grouped",
            "datetime": "Moment",
            "Decimal": "Money",
        }.items()
    },
}


@pytest.mark.parametrize("place", INTO)
def test_no_method_of_a_revived_object_is_called_by_the_value_it_is_put_into(place: str) -> None:
    with pytest.raises((CheckpointIntegrityError, SerializationError)):
        unpack(blob(INTO[place]))
