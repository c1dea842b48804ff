"""Loading runs nothing that the data chooses: one test for each way it has been done elsewhere."""

import collections
import enum
import importlib.util
import pickle
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import ormsgpack
import pydantic
import pydantic.v1
import pytest

from holdfast import CheckpointIntegrityError, SerializationError, UnknownTypeError, register_type
from holdfast.core import kinds
from holdfast.core.chunks import encode
from holdfast.core.codec import PICKLE, OnUnknown, pack, unpack
from holdfast.core.kinds import by_name
from holdfast.core.raw import Raw
from holdfast.core.tree import decode
from tests import strategies as s

HERE = __name__


def ext(kind: str, plain: Any) -> ormsgpack.Ext:
    """A value of a kind with plain data of the attacker's choice."""
    return ormsgpack.Ext(by_name[kind].code, plain if type(plain) is bytes else blob(plain))


def blob(value: Any) -> bytes:
    return ormsgpack.packb(value)


def load(kind: str, plain: Any) -> Any:
    return unpack(blob(ext(kind, plain)))


ran: list[str] = []


def note(what: str) -> int:
    ran.append(what)
    return 0


@pytest.fixture(autouse=True)
def nothing_ran() -> Iterator[None]:
    ran.clear()
    yield
    assert ran == []


class Trap:
    """Every way in that a constructor, an attribute or an operator could open."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        ran.append("__new__")
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        ran.append("__init__")

    def __setattr__(self, name: str, value: Any) -> None:
        ran.append("__setattr__")

    def __getattr__(self, name: str) -> Any:
        ran.append(f"__getattr__ {name}")
        raise AttributeError(name)

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":
            ran.append("__getattribute__ __dict__")
        return super().__getattribute__(name)

    def __setstate__(self, state: Any) -> None:
        ran.append("__setstate__")

    def __reduce__(self) -> Any:
        ran.append("__reduce__")
        return (print, ("pwned",))

    def __call__(self, *args: Any) -> Any:
        ran.append("__call__")

    def __set_name__(self, owner: Any, name: str) -> None:
        ran.append("__set_name__")

    @property
    def attribute(self) -> Any:
        ran.append("property")
        return None

    @attribute.setter
    def attribute(self, value: Any) -> None:
        ran.append("setter")


def _spring(name: str, answer: Any = None) -> Any:
    def method(self: Any, *args: Any) -> Any:
        ran.append(name)
        return answer

    return method


class Operators:
    """What a constructor of Python's own would call on an argument of this class."""


for _name, _answer in {
    "__index__": 3,
    "__int__": 3,
    "__float__": 1.0,
    "__complex__": 1j,
    "__str__": "s",
    "__bytes__": b"b",
    "__fspath__": "p",
    "__iter__": iter(()),
    "__len__": 0,
    "__getitem__": 1,
    "__eq__": True,
    "__bool__": True,
    "__format__": "f",
    "__array__": np.zeros(1),
    "__getstate__": {},
    "keys": [],
    "partition": ("os", ":", "system"),
    "items": [],
    "encode": b"",
    "decode": "",
    "utcoffset": None,
}.items():
    setattr(Operators, _name, _spring(_name, _answer))
Operators.dtype = property(_spring("dtype", np.dtype("i4")))  # type: ignore[attr-defined]
Operators.__hash__ = object.__hash__  # type: ignore[method-assign]


# A constructor chosen by data.


def test_no_constructor_of_a_plain_class_runs() -> None:
    obj = load("object", [f"{HERE}:Trap", {"a": 1}])

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

OPERATORS = ext("object", [f"{HERE}:Operators", {}])
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
    "object, attributes": ext("object", [f"{HERE}:Trap", OPERATORS]),
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


# A module imported by data.


def test_no_module_is_imported_because_data_names_it() -> None:
    assert "wave" not in sys.modules
    before = set(sys.modules)

    for kind, plain in {
        "object": ["wave:Error", {}],
        "exception": ["wave:Error", {}, []],
        "enum": ["wave:X", "Y"],
        "class": ["wave:Error", None],
        "subclass": ["wave:Error", 1, "int", {}],
        "namedtuple": ["wave:_wave_params", []],
        "pydantic": ["wave:Error", {}, [], None, None],
        "pydantic.v1": ["wave:Error", {}, [], {}],
        "msgspec": ["wave:Error", {}],
        "registered": ["wave:Error", 1],
    }.items():
        with pytest.raises(UnknownTypeError):
            load(kind, plain)

    assert set(sys.modules) == before


def test_neither_numpy_nor_pandas_is_imported_by_data() -> None:
    script = (
        "import sys\n"
        "from holdfast.core.codec import unpack\n"
        "for data in sys.argv[1:]:\n"
        "    print(type(unpack(bytes.fromhex(data), on_unknown='raw')).__name__)\n"
        "print('numpy' in sys.modules, 'pandas' in sys.modules)"
    )
    stored = [pack(np.arange(3)), pack(np.float64(1)), pack(s.SAMPLES["Series"])]

    done = subprocess.run(
        [sys.executable, "-c", script, *(data.hex() for data in stored)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["Raw", "Raw", "Raw", "False", "False"]


def test_the_getattr_of_a_module_is_not_asked_for_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("loud_module")
    module.__getattr__ = lambda name: ran.append(f"module __getattr__ {name}")  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "loud_module", module)

    with pytest.raises(UnknownTypeError):
        load("object", ["loud_module:Thing", {}])


def test_a_lazy_module_is_not_loaded_by_looking_into_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    path = tmp_path / "lazy_module.py"
    path.write_text("import tests.unit.test_codec_safety as t\nt.ran.append('imported')\n")
    spec = importlib.util.spec_from_file_location(
        "lazy_module",
        path,
        loader=importlib.util.LazyLoader(
            importlib.machinery.SourceFileLoader("lazy_module", str(path))
        ),
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "lazy_module", module)

    with pytest.raises(UnknownTypeError):
        load("object", ["lazy_module:Thing", {}])


class Proxy:
    """Answers to everything, as the proxies of web frameworks do."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        ran.append("__dict__")
        return {"Inner": Trap}

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        ran.append("__class__")
        return type


proxy = Proxy()


@pytest.mark.parametrize("name", ["proxy", "proxy.Inner", "proxy.Inner.Other"])
def test_no_object_in_a_module_is_asked_what_it_has(name: str) -> None:
    with pytest.raises(UnknownTypeError):
        load("object", [f"{HERE}:{name}", {}])


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            ":",
            "os",
            "os:",
            ":system",
            "os:path.join",
            "os:system",
            "os:environ",
            "a:b:c",
            "..:x",
        ),
        *("builtins:eval", "builtins:print", "sys:modules.os", "tests.unit.test_codec_safety:load"),
    ],
)
def test_what_is_not_a_class_is_not_found(name: str) -> None:
    rests: dict[str, list[Any]] = {"object": [{}], "class": [None], "exception": [{}, []]}
    for kind, rest in rests.items():
        with pytest.raises(UnknownTypeError):
            load(kind, [name, *rest])


@pytest.mark.parametrize(
    "name", ["builtins:type", "builtins:int", "subprocess:Popen", "threading:Thread", "io:BytesIO"]
)
@pytest.mark.parametrize("kind", ["exception", "namedtuple", "pydantic", "msgspec", "enum"])
def test_a_class_is_not_revived_as_another_kind_than_it_is(name: str, kind: str) -> None:
    plain: Any = {
        "exception": [name, {}, []],
        "namedtuple": [name, []],
        "pydantic": [name, {}, [], None, None],
        "msgspec": [name, {}],
        "enum": [name, "x"],
    }[kind]

    with pytest.raises(UnknownTypeError):
        load(kind, plain)


@pytest.mark.parametrize(
    "name", ["builtins:type", "subprocess:Popen", "_io:BytesIO", "builtins:int"]
)
def test_a_class_with_state_outside_python_or_a_finaliser_is_not_made(name: str) -> None:
    with pytest.raises(UnknownTypeError):
        load("object", [name, {}])


# A callable invoked by data.


class Finalised:
    def __del__(self) -> None:
        ran.append("__del__")


class FinalisedModel(pydantic.BaseModel):
    def __del__(self) -> None:
        ran.append("__del__")


class FinalisedError(Exception):
    def __del__(self) -> None:
        ran.append("__del__")


class FinalisedList(list):
    def __del__(self) -> None:
        ran.append("__del__")


class FinalisedTuple(collections.namedtuple("FinalisedTuple", "a")):
    def __del__(self) -> None:
        ran.append("__del__")


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("object", ["Finalised", {}]),
        ("pydantic", ["FinalisedModel", {}, [], None, None]),
        ("exception", ["FinalisedError", {}, []]),
        ("subclass", ["FinalisedList", [], "list", {}]),
        ("namedtuple", ["FinalisedTuple", [1]]),
    ],
)
def test_no_finaliser_is_armed_by_data(kind: str, plain: Any) -> None:
    with pytest.raises(UnknownTypeError, match="__del__"):
        load(kind, [f"{HERE}:{plain[0]}", *plain[1:]])


class LoudMeta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        ran.append("metaclass __call__")

    def __getattr__(cls, name: str) -> Any:
        ran.append(f"metaclass __getattr__ {name}")
        raise AttributeError(name)

    def __instancecheck__(cls, instance: Any) -> bool:
        ran.append("__instancecheck__")
        return True

    def __subclasscheck__(cls, subclass: Any) -> bool:
        ran.append("__subclasscheck__")
        return True

    @property
    def loud(cls) -> Any:
        ran.append("metaclass property")
        return None


class WithLoudMeta(metaclass=LoudMeta):
    pass


def test_no_method_of_a_metaclass_runs() -> None:
    assert type(load("object", [f"{HERE}:WithLoudMeta", {"loud": 1}])) is WithLoudMeta
    assert load("class", [f"{HERE}:WithLoudMeta", None]) is WithLoudMeta


class Loud(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        ran.append("_missing_")
        return cls.A


class LoudFlag(enum.Flag):
    A = 1
    B = 2

    @classmethod
    def _missing_(cls, value: object) -> Any:
        ran.append("_missing_")
        return cls.A


@pytest.mark.parametrize(
    ("name", "member"), [("Loud", "B"), ("Loud", 2), ("LoudFlag", 3), ("LoudFlag", "C")]
)
def test_the_missing_hook_of_an_enum_is_not_asked(name: str, member: Any) -> None:
    with pytest.raises(UnknownTypeError):
        load("enum", [f"{HERE}:{name}", member])


@pytest.mark.parametrize("name", ["_missing_", "__class__", "mro", "name", "_member_map_"])
def test_only_members_of_an_enum_are_found_by_name(name: str) -> None:
    with pytest.raises(UnknownTypeError, match="has no member"):
        load("enum", [f"{HERE}:Loud", name])


@pytest.mark.parametrize("factory", ["print", "eval", "object", "Popen", "__import__", "type", ""])
def test_a_defaultdict_calls_nothing_but_built_in_types(factory: str) -> None:
    with pytest.raises(CheckpointIntegrityError):
        load("defaultdict", [factory, {}])
    with pytest.raises(CheckpointIntegrityError):
        load("subclass", ["tests.strategies:Grouped", [factory, []], "defaultdict", {}])


def test_the_factory_of_a_defaultdict_subclass_is_no_attribute_that_data_may_set() -> None:
    attributes = {"default_factory": ext("class", [f"{HERE}:Trap", None])}

    value = load("subclass", ["tests.strategies:Grouped", [None, []], "defaultdict", attributes])

    assert value.default_factory is None


@pytest.mark.parametrize("name", ["function", "method", "builtin", "partial", "lambda", "callable"])
def test_there_is_no_kind_for_functions(name: str) -> None:
    assert name not in by_name


def test_reduce_is_neither_written_nor_read() -> None:
    trap = object.__new__(Trap)

    revived = unpack(pack([trap]))[0]

    assert type(revived) is Trap
    ran.clear()  # what save asked is its own affair


# Pickle smuggled in.


class Exploit:
    def __reduce__(self) -> Any:
        return (ran.append, ("unpickled",))


EXPLOIT = pickle.dumps(Exploit())


def test_a_pickle_is_refused_unless_allowed() -> None:
    on_unknowns: tuple[OnUnknown, ...] = ("raise", "raw")
    for data in (
        blob(ormsgpack.Ext(PICKLE, EXPLOIT)),
        blob([{"a": ormsgpack.Ext(PICKLE, EXPLOIT)}]),
    ):
        for on_unknown in on_unknowns:
            with pytest.raises(SerializationError, match="allow_pickle=True"):
                unpack(data, on_unknown=on_unknown)


def test_bytes_that_are_a_pickle_stay_bytes() -> None:
    for allow_pickle in (False, True):
        assert unpack(pack({"a": EXPLOIT}), allow_pickle=allow_pickle) == {"a": EXPLOIT}


def test_arrays_of_objects_hold_no_pickle() -> None:
    array = np.empty(1, dtype=object)
    array[0] = EXPLOIT

    assert unpack(pack(array)).tolist() == [EXPLOIT]


@pytest.mark.parametrize(
    "dtype", ["O", "|O8", "<O", "T", "|T16", "V1000000000000", "i4,O", "(2,)O"]
)
def test_raw_bytes_become_no_object_pointers(dtype: str) -> None:
    with pytest.raises(CheckpointIntegrityError):
        load("ndarray", ["numpy:ndarray", b"\x01" * 16, dtype, [2], "C"])
    with pytest.raises(CheckpointIntegrityError):
        load("numpy", ["numpy:generic", b"\x01" * 16, dtype])


def test_a_pickle_is_only_written_where_it_is_allowed() -> None:
    value = {"pattern": __import__("re").compile("a+")}

    with pytest.raises(SerializationError, match=r"^\$\.pattern: "):
        pack(value)
    assert unpack(pack(value, allow_pickle=True), allow_pickle=True) == value


def test_a_pickle_that_cannot_be_loaded_is_an_error_of_ours() -> None:
    for data in (b"", b"garbage", b"cnowhere\nThing\n."):
        with pytest.raises(SerializationError, match="pickled value cannot be loaded"):
            unpack(blob(ormsgpack.Ext(PICKLE, data)), allow_pickle=True)


# Attribute tricks.


class Plain:
    __slots__ = ("__dict__", "slot")
    slot: int

    @property
    def shut(self) -> str:
        return "from the class"

    @shut.setter
    def shut(self, value: Any) -> None:
        ran.append("setter")


@pytest.mark.parametrize(
    "name",
    ["__class__", "__dict__", "__slots__", "__init__", "__reduce__", "__del__", "shut", "mro"],
)
def test_attributes_with_special_names_change_no_class_and_call_no_setter(name: str) -> None:
    obj = load("object", [f"{HERE}:Plain", {name: ext("class", [f"{HERE}:Trap", None]), "slot": 1}])

    assert type(obj) is Plain
    assert obj.__class__ is Plain
    assert obj.shut == "from the class"
    assert obj.slot == 1
    assert vars(obj) == {name: Trap}


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("pydantic", ["tests.strategies:Model", {"__class__": 1}, [], {"__class__": 1}, {"_x": 1}]),
        ("exception", ["builtins:ValueError", {"__class__": 1, "__traceback__": 1}, []]),
        ("subclass", ["tests.strategies:Items", [], "list", {"__class__": 1}]),
    ],
)
def test_special_names_change_no_class_of_other_kinds_either(kind: str, plain: Any) -> None:
    value = load(kind, plain)

    assert type(value).__name__ == plain[0].partition(":")[2]


def test_attributes_are_set_on_the_instance_and_never_on_the_class() -> None:
    before = dict(vars(s.Thing))

    load("object", ["tests.strategies:Thing", {"__init__": 1, "__doc__": "x"}])

    assert dict(vars(s.Thing)) == before


def test_a_class_revived_as_a_value_cannot_be_given_attributes() -> None:
    with pytest.raises(CheckpointIntegrityError):
        load("class", [f"{HERE}:Trap", {"a": 1}, 3, 4][:0])


def test_an_error_that_points_outside_its_text_is_damaged() -> None:
    for name, text in (("Decode", b"abc"), ("Encode", "abc"), ("Translate", "abc"), ("Decode", 5)):
        for start in (-500_000_000, 4, 10**9):
            fields = {"object": text, "start": start, "end": start + 1, "reason": "r"}
            with pytest.raises(CheckpointIntegrityError):
                load("exception", [f"builtins:Unicode{name}Error", fields, []])


# What was registered.


class Registered:
    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.fixture
def registered() -> Iterator[str]:
    name = f"{HERE}:Registered"
    register_type(Registered, lambda r: {"v": r.value}, lambda data: Registered(data["v"]))
    yield name
    kinds.registered.pop(name, None)
    kinds.by_type.pop(Registered, None)
    kinds._found.clear()


def test_a_registered_type_that_is_not_registered_on_load_is_unknown(registered: str) -> None:
    packed = pack({"r": Registered(1)})
    kinds.registered.pop(registered)

    with pytest.raises(UnknownTypeError, match="register_type") as caught:
        unpack(packed)
    assert caught.value.type_name == registered

    raw = unpack(packed, on_unknown="raw")["r"]
    assert raw == {"v": 1}
    assert pack({"r": raw}) == packed


def test_the_decode_function_gets_only_the_data_of_its_own_name(registered: str) -> None:
    with pytest.raises(UnknownTypeError):
        load("registered", ["someone.else:Registered", {"v": 1}])


def test_whatever_a_decode_function_raises_is_an_error_of_ours(registered: str) -> None:
    hostile: list[Any] = [{}, 5, None]
    for data in hostile:
        with pytest.raises(SerializationError, match=r"decode function of .*Registered failed"):
            load("registered", [registered, data])


def test_a_name_is_not_registered_for_two_classes(registered: str) -> None:
    from holdfast import InvalidArgumentError

    with pytest.raises(InvalidArgumentError, match="is registered for Registered"):
        register_type(Trap, str, str, name=registered)
    with pytest.raises(InvalidArgumentError):
        register_type("no class", str, str)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError):
        register_type(Trap, "no function", str)  # type: ignore[arg-type]


# What is unknown.


UNKNOWN: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "dataclass": (s.Plain(1, [2]), "Plain", {"a": 1, "b": [2]}),
    "slots": (s.Slotted(1, 2), "Slotted", {"a": 1, "b": 2}),
    "attrs": (s.Defined(1, 2), "Defined", {"a": 1, "b": 2}),
    "enum": (s.Color.RED, "Color", {"value": "RED"}),
    "flag": (s.Access.READ | s.Access.RUN, "Access", {"value": 5}),
    "namedtuple": (s.Point(1, 2), "Point", {"value": [1, 2]}),
    "pydantic": (
        s.SAMPLES["pydantic v2 with extra, private and set fields"],
        "Model",
        {"a": [1], "b": 2},
    ),
    "pydantic v1": (s.SAMPLES["pydantic v1"], "ModelV1", {"a": [1], "b": 2}),
    "struct": (s.Record(1, 2), "Record", {"a": 1, "b": 2}),
    "exception": (s.Oops(1, detail=2), "Oops", {"code": 1, "detail": 2}),
    "subclass": (s.Items([1, 2]), "Items", {"value": [1, 2]}),
    "object": (s.Thing(a=1), "Thing", {"a": 1}),
    "class": (s.Plain, "Plain", {"value": None}),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_unknown_class_is_named_with_its_path_and_what_to_do(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, name, _ = UNKNOWN[kind]
    encoded = encode({"a": [1, {"b c": (0, value)}]})
    monkeypatch.delattr(s, name)

    with pytest.raises(UnknownTypeError) as caught:
        decode(encoded.root, encoded.chunks)

    assert caught.value.type_name == f"tests.strategies:{name}"
    assert caught.value.path == "$.a[1]['b c'][1]"
    assert str(caught.value).startswith(
        f"$.a[1]['b c'][1]: tests.strategies:{name} is not imported;"
    )
    assert 'on_unknown="raw"' in str(caught.value)


@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_unknown_class_gives_its_fields_and_packs_to_the_same_bytes(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, name, fields = UNKNOWN[kind]
    packed = pack({"x": [value]})
    monkeypatch.delattr(s, name)

    loaded = unpack(packed, on_unknown="raw")

    raw = loaded["x"][0]
    assert type(raw) is Raw
    assert raw.type_name == f"tests.strategies:{name}"
    assert dict(raw) == fields
    assert pack(loaded) == packed


PLACES_FOR_UNKNOWN: dict[str, tuple[Any, str]] = {
    "key": ({"a": {s.Color.RED: 1}}, "$.a"),
    "set": ({"a": {s.Color.RED}}, "$.a"),
    "frozenset": ({"a": frozenset({s.Color.RED})}, "$.a"),
    "slots": ([s.Slotted(s.Color.RED)], "$[0].a"),
    "private slot": ([s.SlotThing().hide(s.Color.RED)], "$[0]._SlotThing__private"),
    "deque": ([collections.deque([1, s.Color.RED])], "$[0][1]"),
    "dataclass": ([s.Plain(s.Color.RED)], "$[0].a"),
    "model": ([s.Model(a=[s.Color.RED])], "$[0].a[0]"),
    "struct": ([s.Record(s.Color.RED)], "$[0].a"),
    "exception": ([s.Oops(1, detail=s.Color.RED)], "$[0].detail"),
    "subclass attribute": ([s.with_note(s.Text("a"), s.Color.RED)], "$[0].note"),
    "array": ([s._object_array([1, s.Color.RED])], "$[0][1]"),
    "field of an unknown class": ([s.Frozen(s.Color.RED)], "$[0].a"),
}


@pytest.mark.parametrize("place", PLACES_FOR_UNKNOWN)
def test_an_unknown_class_in_any_place_is_unknown_and_not_damage(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = encode(PLACES_FOR_UNKNOWN[place][0])
    monkeypatch.delattr(s, "Color")

    with pytest.raises(UnknownTypeError, match=r"tests\.strategies:Color"):
        decode(encoded.root, encoded.chunks)


@pytest.mark.parametrize("place", PLACES_FOR_UNKNOWN)
def test_the_path_of_an_unknown_class_is_found_in_any_place(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, path = PLACES_FOR_UNKNOWN[place]
    encoded = encode(value)
    monkeypatch.delattr(s, "Color")

    with pytest.raises(UnknownTypeError) as caught:
        decode(encoded.root, encoded.chunks)

    assert caught.value.path.startswith(path)


@pytest.mark.parametrize("place", PLACES_FOR_UNKNOWN)
def test_an_unknown_class_in_any_place_is_kept_raw_and_saved_again_unchanged(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, _ = PLACES_FOR_UNKNOWN[place]
    encoded = encode(value)
    monkeypatch.delattr(s, "Color")

    raw = decode(encoded.root, encoded.chunks, on_unknown="raw")

    assert encode(raw).root == encoded.root


def test_the_fields_of_a_raw_value_can_be_edited_and_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack(s.Plain(1, 2))
    with monkeypatch.context() as patch:
        patch.delattr(s, "Plain")
        raw = unpack(packed, on_unknown="raw")
        raw["a"] = "edited"
        edited = pack(raw)

    assert s.same(unpack(edited), s.Plain("edited", 2))


def test_a_registered_type_with_an_unknown_value_inside_stays_whole(
    registered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_type(Registered, lambda r: s.Plain(r.value), lambda data: Registered(data.a))
    packed = pack(Registered(5))
    kinds.registered.pop(registered)
    monkeypatch.delattr(s, "Plain")

    raw = unpack(packed, on_unknown="raw")

    assert pack(raw) == packed


def test_an_enum_member_that_is_gone_is_unknown_and_not_another_member() -> None:
    with pytest.raises(UnknownTypeError, match="has no member 'PURPLE' now"):
        load("enum", ["tests.strategies:Color", "PURPLE"])


def test_a_named_tuple_with_other_fields_now_is_unknown() -> None:
    with pytest.raises(UnknownTypeError, match="has other fields now"):
        load("namedtuple", ["tests.strategies:Point", [1, 2, 3]])


def test_a_struct_with_other_fields_now_is_unknown() -> None:
    with pytest.raises(UnknownTypeError, match="has other fields now"):
        load("msgspec", ["tests.strategies:Record", {"a": 1, "z": 2}])


def test_a_path_of_the_other_operating_system_comes_back_pure() -> None:
    assert type(load("Path", ["WindowsPath", "C:\\x"])).__name__ == "PureWindowsPath"


def test_a_time_zone_that_is_not_known_here_is_no_damage() -> None:
    with pytest.raises(SerializationError, match="no time zone 'Mars/Olympus' here; install"):
        load("ZoneInfo", blob("Mars/Olympus"))


@pytest.mark.parametrize(
    "key", ["America", "../../etc/passwd", "/etc/passwd", "", "\x00", ".", "a" * 999]
)
def test_a_time_zone_reads_no_other_file(key: str) -> None:
    with pytest.raises((SerializationError, CheckpointIntegrityError)):
        load("ZoneInfo", blob(key))
