"""Loading runs nothing that the data names: no module, no callable, no pickle, no setter."""

import collections
import enum
import importlib.util
import pickle
import subprocess
import sys
import types
from typing import Any

import numpy as np
import ormsgpack
import pydantic
import pydantic.v1
import pytest

from holdfast import CheckpointIntegrityError, SerializationError, UnknownTypeError
from holdfast.core.codec import OnUnknown, pack, unpack
from holdfast.core.kinds import by_name
from holdfast.core.kinds.pickled import PICKLE
from tests import strategies as s
from tests.samples import SAMPLES
from tests.unit.attacks import TRAP, Trap, blob, ext, load, ran

HERE = __name__

pytestmark = pytest.mark.usefixtures("nothing_ran")


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
    stored = [pack(np.arange(3)), pack(np.float64(1)), pack(SAMPLES["Series"])]

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
    attributes = {"default_factory": ext("class", [TRAP, None])}

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
    obj = load("object", [f"{HERE}:Plain", {name: ext("class", [TRAP, None]), "slot": 1}])

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
        load("class", [TRAP, {"a": 1}, 3, 4][:0])


def test_an_error_that_points_outside_its_text_is_damaged() -> None:
    for name, text in (("Decode", b"abc"), ("Encode", "abc"), ("Translate", "abc"), ("Decode", 5)):
        for start in (-500_000_000, 4, 10**9):
            fields = {"object": text, "start": start, "end": start + 1, "reason": "r"}
            with pytest.raises(CheckpointIntegrityError):
                load("exception", [f"builtins:Unicode{name}Error", fields, []])
