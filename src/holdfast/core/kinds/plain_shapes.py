"""What the plain data of a kind looks like, for all that look into values without reviving them.

Each kind names its shape. The encoder asks it for the paths that errors tell and for what has to be
put in order, a diff for the parts to compare, the JSON form for what JSON says otherwise, and
whoever follows references for the chunks that are meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Walker(Protocol):
    """Rewrites plain data, part by part, each at its path."""

    def walk(self, value: Any, path: str) -> Any:
        """Return the value as it is to be packed."""

    def walk_list(self, parts: list[Any], path: str) -> list[Any]:
        """Return the elements of a list, each at its position."""

    def walk_elements(self, parts: list[Any], path: str) -> list[Any]:
        """Return the elements of a set, in the order of their bytes."""

    def walk_pairs(self, pairs: list[Any], path: str) -> list[Any]:
        """Return keys and values in turn, each value at its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The plain data of an object taken apart; what it refers to may still be closed."""

    same: tuple[Any, ...] = ()
    """What two objects must have in common to be compared part by part, such as their class."""
    mappings: tuple[Any, ...] = ()
    """Dicts of items or attributes."""
    ordered: tuple[Any, ...] = ()
    """Dicts whose order counts."""
    lists: tuple[Any, ...] = ()
    sets: tuple[Any, ...] = ()
    places: tuple[Any, ...] = ()
    """Lists in which every element has its own place, as in named tuples."""
    unseen: tuple[Any, ...] = ()
    """What no part shows; told only where nothing else differs."""


class PlainShape:
    """Plain data that is looked into by nobody: two values differ as a whole."""

    is_bytes = False
    """Whether it is the bytes of the extension as they are, and not packed once more."""
    has_steps = False
    """Whether its positions are the user's own, and so belong into a path."""
    only_attributes = False
    """Whether it holds the attributes of an object, and nothing beside them."""
    may_be_unordered = False
    """Whether it may hold the elements of a set, which have no order of their own."""
    opened_for_parts = 0
    """What ``parts`` is given: plain data as it is (0), opened (1), its main part resolved (2)."""

    def walk(self, walker: Walker, plain: Any, path: str) -> Any:
        """Return the plain data rewritten; paths read as the user's attributes and elements."""
        if type(plain) is not list:
            return walker.walk(plain, path)
        return [
            walker.walk(part, path if isinstance(part, (dict, list)) else f"{path}[{i}]")
            for i, part in enumerate(plain)
        ]

    def unordered(self, plain: Any) -> list[Any] | None:
        """Return the elements that the encoder is to put in order, or None if there are none."""
        return None

    def parts(self, plain: Any) -> Parts | None:
        """Return what a diff compares part by part, or None where it compares the whole."""
        return None

    def as_json(self, plain: Any) -> Any:
        """Return plain data as the JSON form has it."""
        return plain

    def json_value(self, plain: Any) -> Any:
        """Return what says the value in JSON's own words, or None where JSON has none for it."""
        return None

    def from_json(self, data: Any) -> Any:
        """Return what ``as_json`` was given; ValueError for what it cannot have given."""
        return data

    def chunk_meant(self, plain: Any) -> tuple[bytes, bool] | None:
        """Return the chunk that the value leads to and whether that refers to more, or None."""
        return None


class _Bytes(PlainShape):
    is_bytes = True


class _List(PlainShape):
    has_steps = True

    def walk(self, walker: Walker, plain: Any, path: str) -> Any:
        return walker.walk_list(plain, path)

    def parts(self, plain: Any) -> Parts | None:
        return Parts(lists=(plain,))


class _SetElements(PlainShape):
    has_steps = True
    may_be_unordered = True

    def walk(self, walker: Walker, plain: Any, path: str) -> Any:
        return walker.walk_elements(plain, path)

    def unordered(self, plain: Any) -> list[Any] | None:
        return plain  # type: ignore[no-any-return]

    def parts(self, plain: Any) -> Parts | None:
        return Parts(sets=(plain,))


class PairsInTurn(PlainShape):
    """The items of a dict whose keys are not all strings: keys and values in turn."""

    has_steps = True

    def walk(self, walker: Walker, plain: Any, path: str) -> Any:
        return walker.walk_pairs(plain, path)

    def as_json(self, plain: Any) -> Any:
        if type(plain) is not list:
            return plain
        return [plain[i : i + 2] for i in range(0, len(plain), 2)]

    def from_json(self, data: Any) -> Any:
        if type(data) is not list or any(type(p) is not list or len(p) != 2 for p in data):
            raise ValueError("a dict that is no list of pairs")
        return [part for pair in data for part in pair]


class _Mapping(PlainShape):
    def parts(self, plain: Any) -> Parts | None:
        return Parts(mappings=(plain,))


class _OrderedMapping(PlainShape):
    def parts(self, plain: Any) -> Parts | None:
        return Parts(ordered=(plain,))


class PartsShape(PlainShape):
    """A list that ``take_apart`` knows the parts of; a list of another length fits no value."""

    opened_for_parts = 1

    def __init__(
        self, take_apart: Callable[[list[Any]], Parts], *, only_attributes: bool = False
    ) -> None:
        self._take_apart = take_apart
        self.only_attributes = only_attributes

    def parts(self, plain: Any) -> Parts | None:
        if type(plain) is not list:
            return None
        try:
            return self._take_apart(plain)
        except (ValueError, IndexError):
            return None


WHOLE = PlainShape()
BYTES = _Bytes()
LIST = _List()
SET_ELEMENTS = _SetElements()
PAIRS_IN_TURN = PairsInTurn()
MAPPING = _Mapping()
ORDERED_MAPPING = _OrderedMapping()
