"""Kinds say themselves what they revive and what their data looks like."""

import dataclasses
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import ormsgpack
import pytest

from holdfast import (
    CheckpointIntegrityError,
    HoldfastError,
    InvalidArgumentError,
    Sealed,
    SerializationError,
    UnknownTypeError,
    register_type,
)
from holdfast.core.chunk_encoder import encode
from holdfast.core.class_names import class_name
from holdfast.core.codec import Unpacker, pack, unpack
from holdfast.core.diff import diff_values
from holdfast.core.json_form import from_json
from holdfast.core.kinds import Kind, Revives, add, by_code, by_name, by_type, bytes_codes, table
from holdfast.core.kinds.plain_shapes import BYTES, WHOLE, PlainShape
from holdfast.core.kinds.table import JSON_WORDS, LAST_CODE
from tests.samples import SAMPLES
from tests.unit.attacks import OPERATORS, TRAP, Trap, blob, ext

KINDS = sorted(by_code.values(), key=lambda kind: kind.code)
FREE_CODE = 63

pytestmark = pytest.mark.usefixtures("nothing_ran")

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def of(revives: Revives) -> Any:
    chosen = [kind for kind in KINDS if kind.revives is revives]
    return pytest.mark.parametrize("kind", chosen, ids=lambda kind: kind.name)


@pytest.fixture
def free_code() -> Iterator[int]:
    """A code that a test may take; whatever has it is gone afterwards."""
    assert FREE_CODE not in by_code
    yield FREE_CODE
    kind = by_code.pop(FREE_CODE, None)
    bytes_codes.discard(FREE_CODE)
    if kind is not None:
        by_name.pop(kind.name, None)
        for cls in [cls for cls, its in by_type.items() if its is kind]:
            del by_type[cls]
    table._found.clear()


# All that must be known of a kind is known.


@every_kind
def test_every_kind_has_every_property(kind: Kind) -> None:
    assert all(
        getattr(kind, field.name) is not None for field in dataclasses.fields(Kind) if field.init
    )
    assert isinstance(kind.revives, Revives)
    assert isinstance(kind.shape, PlainShape)
    assert 1 <= kind.code <= LAST_CODE
    assert by_name[kind.name] is kind


def test_no_property_of_a_kind_has_a_default() -> None:
    assert all(field.default is dataclasses.MISSING for field in dataclasses.fields(Kind))
    with pytest.raises(TypeError):
        Kind(FREE_CODE, "half", str, str)  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("lacking", ["revives", "shape"])
def test_a_kind_that_leaves_a_property_open_is_refused(free_code: int, lacking: str) -> None:
    whole = Kind(free_code, "half", str, lambda p, _: p, Revives.OWN_TYPES, WHOLE)

    with pytest.raises(InvalidArgumentError, match="'half' does not say what it revives"):
        add(dataclasses.replace(whole, **{lacking: None}))  # type: ignore[arg-type]

    assert free_code not in by_code


def test_a_kind_has_a_sample_that_goes_through_the_tests_of_all_values() -> None:
    codes = set()

    class Noting(Unpacker):
        def meet(self, code: int, data: bytes) -> Any:
            codes.add(code)
            return super().meet(code, data)

    for value in SAMPLES.values():
        Noting("raw").unpack(pack(value))

    # Of random generators, torch and links there are samples in the tests of their own.
    apart = {by_name[n].code for n in ("random.Random", "numpy.random", "torch.Tensor", "torch")}
    rare = {by_name[n].code for n in ("registered", "pickle", "link", "dict with attributes")}
    assert by_code.keys() - codes <= apart | rare


# Untrusted data is refused by default.

HOSTILE = [
    [TRAP, {}],
    [TRAP, {"attribute": 1}],
    [TRAP, [1, 2]],
    [TRAP, None],
    [TRAP, "x"],
    [TRAP, {}, []],
    [TRAP, {}, [], None, None],
    [TRAP, {}, [], {}],
    [TRAP, "", "str", {}],
    [TRAP, [], "list", {}],
    [TRAP, b"", "<i4", [0], "C"],
    ["os:system", {}],
    ["os:system", ["true"], "str", {}],
    ["subprocess:Popen", {"args": ["true"]}],
    TRAP,
    {TRAP: TRAP},
    [OPERATORS, OPERATORS],
    [OPERATORS],
    OPERATORS,
    b"\x80\x04cos\nsystem\n(S'true'\ntR.",
]


@of(Revives.NAMED_CLASS)
@pytest.mark.parametrize("plain", HOSTILE, ids=range(len(HOSTILE)))
def test_a_class_that_nobody_trusts_is_never_revived(kind: Kind, plain: Any) -> None:
    strict = Unpacker("raw", trusts=lambda name: False)

    try:
        value = strict.unpack(blob(ext(kind.name, plain)))
    except CheckpointIntegrityError:
        return  # it fits no value of the kind at all

    assert not isinstance(value, Trap)
    assert type(value).__name__ == "Raw"
    assert value.type_name == plain[0]


@of(Revives.NAMED_CLASS)
def test_a_class_that_is_not_imported_is_named(kind: Kind) -> None:
    with pytest.raises((UnknownTypeError, CheckpointIntegrityError)):
        unpack(blob(ext(kind.name, ["no.such.module:Class", {}])))


@of(Revives.OWN_TYPES)
@pytest.mark.parametrize("plain", HOSTILE, ids=range(len(HOSTILE)))
def test_a_kind_of_its_own_types_makes_nothing_else_whatever_the_data_says(
    kind: Kind, plain: Any
) -> None:
    strict = Unpacker("raise", trusts=lambda name: False)
    try:
        value = strict.unpack(blob(ext(kind.name, plain)))
    except HoldfastError:
        return
    assert not isinstance(value, Trap)
    assert not callable(value)


@of(Revives.ANYTHING)
@pytest.mark.parametrize("plain", HOSTILE, ids=range(len(HOSTILE)))
def test_what_would_run_is_refused_unless_it_is_allowed(kind: Kind, plain: Any) -> None:
    data = plain if type(plain) is bytes else blob(plain)

    with pytest.raises(SerializationError, match="allow_pickle=True"):
        unpack(blob(ormsgpack.Ext(kind.code, data)))


@pytest.mark.parametrize(
    "revives", [each for each in Revives if each is not Revives.OWN_TYPES], ids=lambda r: r.name
)
def test_a_new_kind_cannot_escape_the_rules_of_what_it_revives(
    free_code: int, revives: Revives
) -> None:
    made = []
    add(Kind(free_code, "new", list, lambda plain, _: made.append(plain), revives, WHOLE))
    data = blob(ormsgpack.Ext(free_code, blob([TRAP, {}])))
    tagged = {"$type": "new", "value": [TRAP, {}]}

    if revives is Revives.ANYTHING:
        for read in (lambda: unpack(data), lambda: from_json(tagged)):
            with pytest.raises(SerializationError, match="of the kind new"):
                read()
    else:
        value = Unpacker(trusts=lambda name: False).unpack(data)
        assert value.type_name == TRAP
    assert not made


# What is taken stays taken.


def hijack(code: int, name: str, *types: type) -> None:
    add(Kind(code, name, str, lambda p, _: "HIJACKED", Revives.OWN_TYPES, BYTES), *types)


def test_a_used_code_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="'tuple' has the code 4"):
        hijack(by_name["tuple"].code, "mine")

    assert unpack(pack((1, 2))) == (1, 2)
    assert "mine" not in by_name


@every_kind
def test_no_kind_can_be_replaced(kind: Kind) -> None:
    with pytest.raises(InvalidArgumentError, match="take another code and name"):
        hijack(kind.code, "mine")
    assert by_code[kind.code] is kind


def test_a_used_name_is_refused(free_code: int) -> None:
    with pytest.raises(InvalidArgumentError, match="'tuple' has the code 4"):
        hijack(free_code, "tuple")
    assert free_code not in by_code


@pytest.mark.parametrize("word", sorted(JSON_WORDS))
def test_a_word_of_the_json_form_is_no_name_for_a_kind(free_code: int, word: str) -> None:
    with pytest.raises(InvalidArgumentError, match="are taken"):
        hijack(free_code, word)


def test_a_type_that_has_a_kind_does_not_get_another(free_code: int) -> None:
    with pytest.raises(InvalidArgumentError, match="tuple is of the kind 'tuple' already"):
        hijack(free_code, "mine", tuple)
    assert free_code not in by_code


@pytest.mark.parametrize("code", [0, -1, 64, 65, 69, 127, 128, 1000, True, "4", None])
def test_a_code_out_of_range_is_refused(code: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="from 1 to 63"):
        hijack(code, "mine")


# register_type


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


HOME = f"{__name__}:Celsius"


@pytest.fixture
def celsius() -> Iterator[type[Celsius]]:
    register_type(Celsius, lambda c: c.degrees, Celsius)
    yield Celsius
    for key in [key for key, its in table.registered.items() if its.cls.__name__ == "Celsius"]:
        by_type.pop(table.registered.pop(key).cls, None)
    by_type.pop(Celsius, None)
    table._found.clear()


def register_from(module: str, cls: type, **options: Any) -> None:
    scope: dict[str, Any] = {"__name__": module, "register_type": register_type, "cls": cls}
    exec("def enter(**options): register_type(cls, str, cls, **options)", scope)
    scope["enter"](**options)


def test_a_module_may_register_its_class_again(celsius: type[Celsius]) -> None:
    register_type(Celsius, lambda c: [c.degrees], lambda data: Celsius(data[0]))

    assert unpack(pack(Celsius(20.5))).degrees == 20.5


def test_a_class_that_its_module_defines_anew_takes_the_place_of_the_old(
    celsius: type[Celsius],
) -> None:
    anew = type("Celsius", (), dict(vars(Celsius)))
    anew.__module__, anew.__qualname__ = Celsius.__module__, Celsius.__qualname__
    saved = pack(Celsius(1.0))

    register_type(anew, lambda c: c.degrees, anew)

    assert type(unpack(saved)) is anew


@pytest.mark.parametrize("name", [None, "another"])
def test_a_class_that_another_module_registered_is_refused(
    celsius: type[Celsius], name: str | None
) -> None:
    with pytest.raises(InvalidArgumentError, match=r"registered by .*test_kinds already.*remove"):
        register_from("a.plugin", Celsius, name=name)

    assert unpack(pack(Celsius(3.0))).degrees == 3.0


def test_the_name_of_another_class_is_refused(celsius: type[Celsius]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"registered for Celsius of .*another name="):
        register_type(Trap, str, str, name=HOME)


def test_a_module_may_give_its_class_a_new_name_and_still_read_the_old(
    celsius: type[Celsius],
) -> None:
    old = pack(Celsius(1.0))

    register_type(Celsius, lambda c: [c.degrees], lambda data: Celsius(data[0]), name="celsius/2")

    assert unpack(old).degrees == 1.0
    assert unpack(pack(Celsius(2.0))).degrees == 2.0


@pytest.mark.parametrize("cls", [tuple, dict, str, int, set, bool, float, bytes, list, type(None)])
def test_a_type_that_holdfast_keeps_itself_is_not_registered(cls: type) -> None:
    with pytest.raises(InvalidArgumentError, match="kept by Holdfast itself"):
        register_type(cls, lambda value: 0, lambda data: "HIJACKED")

    assert unpack(pack((1, {2: "a"}))) == (1, {2: "a"})


@pytest.mark.parametrize("name", ["", 3, b"name"])
def test_a_registered_name_is_text(name: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="name is text"):
        register_type(Celsius, str, str, name=name)


# What a shape says is seen by all.


class Steps(OrderedDict[str, int]):
    pass


@pytest.mark.parametrize("cls", [OrderedDict, Steps])
def test_a_diff_tells_of_another_order_where_order_counts(cls: Any) -> None:
    diff = diff_values({"s": cls(a=1, b=2)}, {"s": cls(b=2, a=1)})

    assert list(diff.changed) == ["$.s"]


def test_the_name_under_which_stores_hold_our_own_class_stays() -> None:
    assert class_name(Sealed) == "holdfast.core.raw:Sealed"
    assert encode(Sealed("msgpack", b"x")).root.hex() == SEALED_ROOT


SEALED_ROOT = "261a60df765d44bc6b526fc542afef87d6b87937"


def test_an_array_of_numpy_is_kept_by_holdfast_itself() -> None:
    with pytest.raises(InvalidArgumentError, match="kept by Holdfast itself"):
        register_type(np.ndarray, lambda array: "gone", lambda value: value)
