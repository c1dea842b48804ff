"""Classes that the reader does not have, or not any more: named, and kept as they are."""

import collections
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import CheckpointIntegrityError, SerializationError, UnknownTypeError, register_type
from holdfast.core.chunk_decoder import decode
from holdfast.core.chunk_encoder import encode
from holdfast.core.codec import pack, unpack
from holdfast.core.kinds import table as kinds
from holdfast.core.raw import Raw
from tests import strategies as s
from tests.sameness import same
from tests.samples import SAMPLES
from tests.unit.attacks import Trap, blob, load

HERE = __name__

pytestmark = pytest.mark.usefixtures("nothing_ran")


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
        SAMPLES["pydantic v2 with extra, private and set fields"],
        "Model",
        {"a": [1], "b": 2},
    ),
    "pydantic v1": (SAMPLES["pydantic v1"], "ModelV1", {"a": [1], "b": 2}),
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
    "array": ([s.object_array([1, s.Color.RED])], "$[0][1]"),
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

    assert same(unpack(edited), s.Plain("edited", 2))


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
