"""Contracts of dataclasses: every annotation is checked or refused, none is passed over."""

import copy
import dataclasses
import subprocess
import sys
import typing
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NewType, NotRequired, Protocol, TypedDict

import annotated_types as at
import pydantic
import pydantic.dataclasses
import pytest

from holdfast import ContractError, InvalidArgumentError
from holdfast.core.contracts import check_contract

T = typing.TypeVar("T")
Number = typing.TypeVar("Number", bound=int)

UserId = NewType("UserId", int)


class Line(TypedDict):
    text: str
    cost: NotRequired[float]


class Partial(TypedDict, total=False):
    text: str


class Color(Enum):
    RED = 1


class Opaque:
    pass


@dataclass
class Person:
    name: str
    age: int = 0
    made_up: int = field(init=False, default=3)

    def __post_init__(self) -> None:
        raise AssertionError("checking makes nothing")


Owner = NewType("Owner", Person)


@dataclass
class Box(Generic[T]):
    item: T


@dataclass
class IntBox(Box[int]):
    pass


@dataclass
class Node:
    value: int
    next: "Node | None" = None
    others: "list[Node]" = field(default_factory=list)


class Speaks(Protocol):
    def speak(self) -> str: ...


class Model(pydantic.BaseModel):
    a: int


@pydantic.dataclasses.dataclass
class Order:
    amount: int = pydantic.Field(gt=0)
    who: Person | None = None


def of(annotation: Any) -> Any:
    """A contract with one field of that annotation."""
    return dataclasses.make_dataclass("Contract", [("x", annotation)], namespace={})


def problems(annotation: Any, value: Any) -> list[str]:
    before = copy.deepcopy(value)
    try:
        check_contract(of(annotation), {"x": value})
    except ContractError as error:
        return [str(problem) for problem in error.problems]
    finally:
        assert same_state(value, before), "a contract checks, it does not rewrite"
    return []


def same_state(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (repr(a) == repr(b) or isinstance(a, Opaque))


person = {"name": "ann", "age": 3}

FITS: list[tuple[Any, Any]] = [
    (Any, Opaque()),
    (int, 3),
    (float, 3),
    (float, 2.5),
    (str, "a"),
    (None, None),
    (bool, True),
    (bytes, b"x"),
    (Decimal, Decimal("1.5")),
    (date, datetime(2026, 1, 1)),
    (Path, Path("a")),
    (Color, Color.RED),
    (Opaque, Opaque()),
    (Model, Model(a=1)),
    (list, [1, "a"]),
    (list[int], [1, 2]),
    (list[Any], [1, "a"]),
    (dict[str, int], {"a": 1}),
    (dict[int, str], {1: "a"}),
    (OrderedDict[str, int], OrderedDict(a=1)),
    (Counter[str], Counter("aab")),
    (Mapping[str, float], {"a": 1}),
    (Sequence[int], (1, 2)),
    (Sequence[str], "text"),
    (Iterable[int], [1, 2]),
    (set[int], {1}),
    (frozenset[int], frozenset({1})),
    (deque[int], deque([1])),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2, 3)),
    (tuple[()], ()),
    (int | None, None),
    (int | str, "a"),
    (Literal["a", 1], 1),
    (UserId, 3),
    (Owner, person),
    (list[UserId], [1, 2]),
    (Line, {"text": "a"}),
    (Line, {"text": "a", "cost": 2, "more": "is let be"}),
    (Partial, {}),
    (list[Line], [{"text": "a"}, {"text": "b", "cost": 1.5}]),
    (Person, person),
    (Person, {"name": "ann", "made_up": 4}),
    (list[Person], [person]),
    (Person | None, person),
    (Box[int], {"item": 1}),
    (Box[list[int]], {"item": [1]}),
    (IntBox, {"item": 1}),
    (Box, {"item": [Opaque]}),
    (Number, 3),
    (Node, {"value": 1, "next": {"value": 2, "others": [{"value": 3}]}}),
    (Annotated[int, "how many"], 3),
    (Annotated[int, at.Gt(0)], 3),
    (Annotated[list[Person], at.MinLen(1)], [person]),
    (list[Annotated[int, pydantic.Field(ge=1)]], [1, 2]),
    (Annotated[str, pydantic.StringConstraints(pattern="^a")], "ab"),
    (Annotated[int, {"unhashable": []}], 3),
    (Annotated[int, at.Gt(0)] | None, None),
    (Callable[[int], str], str),
    (type[int], bool),
    (Order, {"amount": 1}),
    (Order, Order(amount=1)),
    (list[Order], [{"amount": 1}]),
]

DEPARTS: list[tuple[Any, Any, list[str]]] = [
    (int, "1", ["$.x: expected int, got str '1'"]),
    (int, True, ["$.x: expected int, got bool True"]),
    (int, 1.0, ["$.x: expected int, got float 1.0"]),
    (float, "1.5", ["$.x: expected float, got str '1.5'"]),
    (str, 1, ["$.x: expected str, got int 1"]),
    (bytes, "x", ["$.x: expected bytes, got str 'x'"]),
    (date, "2026-01-01", ["$.x: expected date, got str '2026-01-01'"]),
    (Color, 1, ["$.x: expected Color, got int 1"]),
    (Opaque, {}, ["$.x: expected Opaque, got dict"]),
    (Model, {"a": 1}, ["$.x: expected Model, got dict"]),
    (list[int], (1, 2), ["$.x: expected list[int], got tuple"]),
    (
        list[int],
        [1, "2", 3, None],
        ["$.x[1]: expected int, got str '2'", "$.x[3]: expected int, got None"],
    ),
    (dict[str, int], {"a": "1"}, ["$.x.a: expected int, got str '1'"]),
    (dict[str, int], {1: 1}, ["$.x[1]: expected str, got int 1"]),
    (Counter[str], Counter([1]), ["$.x[1]: expected str, got int 1"]),
    (Iterable[int], ["1"], ["$.x[0]: expected int, got str '1'"]),
    (deque[int], deque(["1"]), ["$.x[0]: expected int, got str '1'"]),
    (set[int], {"a"}, ["$.x[0]: expected int, got str 'a'"]),
    (tuple[int, str], (1,), ["$.x: expected 2 elements (not 1), got tuple"]),
    (tuple[int, str], (1, 2), ["$.x[1]: expected str, got int 2"]),
    (int | None, "1", ["$.x: expected int | None, got str '1'"]),
    (Literal["a", 1], True, ["$.x: expected Literal['a', 1], got bool True"]),
    (UserId, "3", ["$.x: expected int, got str '3'"]),
    (UserId, None, ["$.x: expected int, got None"]),
    (list[UserId], [1, "2"], ["$.x[1]: expected int, got str '2'"]),
    (Owner, {"name": 1}, ["$.x.name: expected str, got int 1"]),
    (Line, {}, ["$.x.text: expected str, got nothing"]),
    (
        Line,
        {"text": 1, "cost": "2"},
        ["$.x.text: expected str, got int 1", "$.x.cost: expected float, got str '2'"],
    ),
    (Line, "text", ["$.x: expected Line, got str 'text'"]),
    (Partial, {"text": 1}, ["$.x.text: expected str, got int 1"]),
    (Person, {"age": 1}, ["$.x.name: expected str, got nothing"]),
    (Person, {"name": "ann", "made_up": "4"}, ["$.x.made_up: expected int, got str '4'"]),
    (Person, 3, ["$.x: expected Person, got int 3"]),
    (Box[int], {"item": "1"}, ["$.x.item: expected int, got str '1'"]),
    (Box[list[int]], {"item": ["1"]}, ["$.x.item[0]: expected int, got str '1'"]),
    (IntBox, {"item": "1"}, ["$.x.item: expected int, got str '1'"]),
    (Number, "1", ["$.x: expected int, got str '1'"]),
    (
        Node,
        {"value": 1, "next": {"value": 2, "others": [{"value": "3"}]}},
        ["$.x.next.others[0].value: expected int, got str '3'"],
    ),
    (
        list[Person] | dict[str, Person],
        [{"name": 1}, {"name": 2}],
        ["$.x[0].name: expected str, got int 1", "$.x[1].name: expected str, got int 2"],
    ),
    (Annotated[int, "how many"], "3", ["$.x: expected int, got str '3'"]),
    (Annotated[int, at.Gt(0)], 0, ["$.x: expected greater than 0, got int 0"]),
    (Annotated[int, at.Gt(0)], "3", ["$.x: expected int, got str '3'"]),
    (
        Annotated[list[Person], at.MinLen(1)],
        [],
        ["$.x: expected Value should have at least 1 item"],
    ),
    (
        list[Annotated[int, pydantic.Field(ge=1)]],
        [1, 0],
        ["$.x[1]: expected greater than or equal to 1, got int 0"],
    ),
    (
        Annotated[str, pydantic.StringConstraints(pattern="^a")],
        "b",
        ["$.x: expected String should match pattern '^a', got str 'b'"],
    ),
    (Callable[[int], str], 3, ["$.x: expected callable, got int 3"]),
    (Order, {"amount": "1"}, ["$.x.amount: expected int, got str '1'"]),
    (Order, {"amount": 0}, ["$.x.amount: expected greater than 0, got int 0"]),
    (list[Order], [{"amount": 0}], ["$.x[0].amount: expected greater than 0, got int 0"]),
    (type[int], str, ["$.x: expected a subclass of int"]),
]


def names(cases: list[Any]) -> list[str]:
    return [f"{number} {case[0]}" for number, case in enumerate(cases)]


@pytest.mark.parametrize(("annotation", "value"), FITS, ids=names(FITS))
def test_a_value_that_fits_its_annotation_is_let_through(annotation: Any, value: Any) -> None:
    assert problems(annotation, value) == []


@pytest.mark.parametrize(("annotation", "value", "said"), DEPARTS, ids=names(DEPARTS))
def test_a_value_that_does_not_fit_is_named_with_its_path(
    annotation: Any, value: Any, said: list[str]
) -> None:
    found = problems(annotation, value)

    assert len(found) == len(said)
    for one, wanted in zip(found, said, strict=True):
        assert one.startswith(wanted)


def test_the_error_reads_as_a_sentence_with_the_path_of_each_place() -> None:
    @dataclass
    class Plan:
        tasks: list[Line]

    state = {"tasks": [{"text": "a"}] * 3 + [{"text": None}]}
    with pytest.raises(ContractError, match=r"contract .*Plan: \$\.tasks\[3\]\.text: expected str"):
        check_contract(Plan, state)


def test_an_instance_is_looked_into_as_its_dict_is() -> None:
    node = Node(1, Node("2"))  # type: ignore[arg-type]

    with pytest.raises(ContractError, match=r"\$\.next\.value: expected int"):
        check_contract(Node, node)


def test_what_only_a_constructor_takes_is_not_asked_of_a_state() -> None:
    @dataclass
    class Job:
        name: str
        seed: InitVar[int]

    check_contract(Job, {"name": "a"})


@pytest.mark.parametrize("annotation", [Speaks, list[Speaks], "Missing", "list[Missing]"])
def test_what_cannot_be_checked_is_refused_with_the_remedy(annotation: Any) -> None:
    contract = of(annotation)
    value = [Opaque()] if "list" in str(annotation) else Opaque()

    with pytest.raises(InvalidArgumentError, match=r"the contract Contract cannot be checked"):
        check_contract(contract, {"x": value})


WITHOUT_PYDANTIC = """
import sys
sys.modules["pydantic"] = sys.modules["pydantic_core"] = None
import dataclasses, typing
from typing import *
from holdfast import ContractError, InvalidArgumentError
from holdfast.core.contracts import check_contract

def said(annotation, value):
    contract = dataclasses.make_dataclass("Contract", [("x", annotation)])
    try:
        check_contract(contract, {"x": value})
    except (ContractError, InvalidArgumentError) as error:
        return f"{type(error).__name__}: {error}"
    return "fits"

class Line(TypedDict):
    text: str
    cost: NotRequired[float]

class Speaks(Protocol):
    def speak(self): ...

@dataclasses.dataclass
class Person:
    name: str

UserId = NewType("UserId", int)
for annotation, value, wanted in [
    (list[int], [1], "fits"),
    (list[int], ["1"], "ContractError: .*x.0.: expected int"),
    (UserId, 1, "fits"),
    (UserId, "1", "ContractError: .*expected int, got str"),
    (Line, {"text": "a"}, "fits"),
    (Line, {"cost": 1}, "ContractError: .*x.text: expected str, got nothing"),
    (Person, {"name": "a"}, "fits"),
    (list[Person], [{"name": 1}], "ContractError: .*x.0..name: expected str"),
    (Annotated[int, "how many"], 1, "fits"),
    (Annotated[int, lambda value: value > 0], 1,
     "InvalidArgumentError: .*Contract cannot be checked at ..x: .*pip install pydantic"),
    (Callable[[int], str], print, "InvalidArgumentError: .*at ..x: .*pip install pydantic"),
    (Speaks, 1, "InvalidArgumentError: .*at ..x: Speaks there, .*pip install pydantic"),
    (type[int], int, "InvalidArgumentError: .*pip install pydantic"),
]:
    import re
    found = said(annotation, value)
    assert re.match(wanted, found), (annotation, value, found)
print("checked")
"""


def test_without_pydantic_the_same_is_checked_and_the_rest_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYDANTIC], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "checked\n"


def test_contracts_of_plain_dataclasses_do_not_import_pydantic() -> None:
    script = (
        "import sys, dataclasses\n"
        "from holdfast.core.contracts import check_contract\n"
        "C = dataclasses.make_dataclass('C', [('x', list[int])])\n"
        "check_contract(C, {'x': [1]})\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
