"""Where a value departs from an annotation: nothing is coerced, rewritten or made to find out.

What states are made of is looked through here: dataclasses and TypedDicts (each may also stand as a
dict), unions, literals, collections, names for types. The rest is left to pydantic's
``TypeAdapter``, in strict mode, where pydantic is installed; where it is not, a contract that needs
it is refused. pydantic is not asked for all of it: strict, it takes no dict for a dataclass, and
before Python 3.12 no TypedDict of ``typing`` at all.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from holdfast.core.safe_repr import briefly
from holdfast.core.value_paths import path_to
from holdfast.errors import InvalidArgumentError

Steps = tuple[Any, ...]
Departure = tuple[Steps, str, Any]
"""Where, what was expected there, and what came; ``MISSING`` where nothing did."""

MISSING = dataclasses.MISSING

_WRAPPERS = tuple(
    getattr(typing, name)
    for name in ("Required", "NotRequired", "ReadOnly", "Final")
    if hasattr(typing, name)
)


def departures(cls: type, value: Any) -> Iterator[Departure]:
    """Yield where a value departs from a dataclass, of which it may be an instance or the dict."""
    return _Check(cls).typed(cls, value, ())


def type_name(annotation: Any) -> str:
    """Return an annotation as it is written."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    name = getattr(annotation, "__name__", None) if not typing.get_args(annotation) else None
    return str(name or annotation).replace("typing.", "")


class _Check:
    """One look at a value; what is asked of an annotation is worked out once."""

    def __init__(self, contract: type) -> None:
        self.contract = contract.__qualname__
        # By identity, as not all can be hashed; each is kept, so that no other gets its id.
        self._hints: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._adapters: dict[int, tuple[Any, Callable[[Any], list[Departure]]]] = {}

    def typed(self, expected: Any, value: Any, path: Steps) -> Iterator[Departure]:
        origin, arguments = typing.get_origin(expected), typing.get_args(expected)
        if expected is Any or expected is object:
            return
        if isinstance(expected, typing.TypeVar):
            yield from self._variable(expected, value, path)
        elif origin is Annotated:
            yield from self._annotated(expected, value, path)
        elif origin in _WRAPPERS:
            yield from self.typed(arguments[0], value, path)
        elif isinstance(expected, typing.NewType):
            yield from self.typed(expected.__supertype__, value, path)
        elif type(expected).__name__ == "TypeAliasType":
            yield from self.typed(expected.__value__, value, path)
        elif origin in (typing.Union, types.UnionType):
            yield from self._union(expected, value, path)
        elif origin is typing.Literal:
            if not any(type(value) is type(option) and value == option for option in arguments):
                yield path, type_name(expected), value
        elif _is_dataclass(origin or expected):
            yield from self._dataclass(expected, value, path)
        elif typing.is_typeddict(origin or expected):
            yield from self._typed_dict(expected, value, path)
        elif expected is None or (isinstance(expected, type) and _can_be_asked(expected)):
            if not _is_a(value, expected):
                yield path, type_name(expected), value
        elif isinstance(origin, type) and issubclass(origin, Iterable) and arguments:
            yield from self._collection(expected, value, path)
        else:
            yield from self._by_pydantic(expected, value, path)

    def _variable(self, variable: typing.TypeVar, value: Any, path: Steps) -> Iterator[Departure]:
        """Yield what departs from a parameter that nobody has given: it is what it is bound to."""
        if variable.__bound__ is not None:
            yield from self.typed(variable.__bound__, value, path)
        elif variable.__constraints__:
            yield from self.typed(typing.Union[variable.__constraints__], value, path)  # noqa: UP007

    def _union(self, expected: Any, value: Any, path: Steps) -> Iterator[Departure]:
        tried = []
        for option in typing.get_args(expected):
            found = list(self.typed(option, value, path))
            if not found:
                return
            tried.append(found)
        # Where one option takes the value itself, what is told is what departs within it.
        inside = [found for found in tried if all(len(at) > len(path) for at, *_ in found)]
        if len(inside) == 1:
            yield from inside[0]
        else:
            yield path, type_name(expected), value

    def _annotated(self, expected: Any, value: Any, path: Steps) -> Iterator[Departure]:
        inner, *metadata = typing.get_args(expected)
        found = list(self.typed(inner, value, path))
        yield from found
        if not found and not all(isinstance(said, str) for said in metadata):
            yield from self._by_pydantic(expected, value, path)

    def _dataclass(self, expected: Any, value: Any, path: Steps) -> Iterator[Departure]:
        cls = typing.get_origin(expected) or expected
        if not isinstance(value, (cls, Mapping)):
            yield path, type_name(expected), value
            return
        found = list(self._fields(expected, value, path))
        yield from found
        if not found and "__pydantic_validator__" in vars(cls):
            # It has validators of its own. Types fit already, so that there is nothing to coerce.
            yield from self._by_pydantic(expected, value, path, strict=False)

    def _fields(self, expected: Any, value: Any, path: Steps) -> Iterator[Departure]:
        hints = self._hints_of(expected)
        for field in dataclasses.fields(typing.get_origin(expected) or expected):
            if isinstance(value, Mapping) and field.name not in value:
                has_default = field.default is not MISSING or field.default_factory is not MISSING
                if field.init and not has_default:
                    yield (*path, field.name), type_name(hints[field.name]), MISSING
                continue
            part = value[field.name] if isinstance(value, Mapping) else getattr(value, field.name)
            yield from self.typed(hints[field.name], part, (*path, field.name))

    def _typed_dict(self, expected: Any, value: Any, path: Steps) -> Iterator[Departure]:
        if not isinstance(value, Mapping):
            yield path, type_name(expected), value
            return
        cls = typing.get_origin(expected) or expected
        for name, hint in self._hints_of(expected).items():
            if name in value:
                yield from self.typed(hint, value[name], (*path, name))
            elif _is_required(cls, name, hint):
                yield (*path, name), type_name(hint), MISSING

    def _hints_of(self, expected: Any) -> dict[str, Any]:
        """Return the annotations of a class, forward references and given parameters resolved."""
        if id(expected) not in self._hints:
            cls = typing.get_origin(expected) or expected
            try:
                hints = typing.get_type_hints(cls, include_extras=True)
            except (NameError, AttributeError, TypeError, SyntaxError) as error:
                raise InvalidArgumentError(
                    f"the contract {self.contract} cannot be checked: the annotations of "
                    f"{cls.__qualname__} cannot be read ({error}); define what they name at the "
                    "top of its module"
                ) from error
            given = _parameters(expected)
            filled = {name: _filled(hint, given) for name, hint in hints.items()}
            self._hints[id(expected)] = expected, filled
        return self._hints[id(expected)][1]

    def _collection(self, expected: Any, value: Any, path: Steps) -> Iterator[Departure]:
        origin: Any = typing.get_origin(expected)
        arguments = typing.get_args(expected)
        if not _is_a(value, origin):
            yield path, type_name(expected), value
        elif isinstance(value, Mapping):
            of_key, of_value = arguments if len(arguments) == 2 else (arguments[0], Any)
            for key, part in value.items():
                yield from self.typed(of_key, key, (*path, key))
                yield from self.typed(of_value, part, (*path, key))
        elif origin is tuple and arguments[-1] is not Ellipsis:
            wanted = () if arguments == ((),) else arguments
            if len(value) != len(wanted):
                yield path, f"{len(wanted)} elements (not {len(value)})", value
                return
            for index, (each, part) in enumerate(zip(wanted, value, strict=True)):
                yield from self.typed(each, part, (*path, index))
        elif isinstance(value, (str, bytes)):
            return  # a sequence of itself
        elif isinstance(value, (Sequence, set, frozenset)):
            for index, part in enumerate(value):
                yield from self.typed(arguments[0], part, (*path, index))
        else:
            yield from self._by_pydantic(expected, value, path)

    def _by_pydantic(
        self, expected: Any, value: Any, path: Steps, strict: bool = True
    ) -> Iterator[Departure]:
        if id(expected) not in self._adapters:
            self._adapters[id(expected)] = expected, self._adapter(expected, path, strict)
        ask = self._adapters[id(expected)][1]
        for where, wanted, came in ask(value):
            yield (*path, *where), wanted, came

    def _adapter(
        self, expected: Any, path: Steps, strict: bool
    ) -> Callable[[Any], list[Departure]]:
        """Return what asks pydantic about values of an annotation."""
        if isinstance(expected, (str, typing.ForwardRef)):
            raise self._unchecked(
                expected, path, "it is not resolved: write the type, not its name as text"
            )
        try:
            from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
            from pydantic.errors import PydanticUndefinedAnnotation
            from pydantic_core import SchemaError
        except ImportError:
            raise self._unchecked(
                expected, path, "only pydantic can check it: pip install pydantic"
            ) from None
        asked = expected
        if typing.get_origin(expected) is Annotated and _holds_fields(expected):
            # Of what may stand as a dict, pydantic is asked for what is said beside the type.
            asked = Annotated[(Any, *typing.get_args(expected)[1:])]
        try:
            # The list carries the settings: a class that has its own would not take them.
            listed: Any = types.GenericAlias(list, (asked,))
            adapter: Any = TypeAdapter(
                listed,
                config=ConfigDict(strict=strict, arbitrary_types_allowed=True),
            )
        except (
            *(PydanticUserError, PydanticUndefinedAnnotation, SchemaError),
            *(TypeError, NameError, AttributeError),
        ) as error:
            said = str(error).partition("\n")[0]
            raise self._unchecked(expected, path, f"pydantic says: {said}") from error

        def ask(value: Any) -> list[Departure]:
            try:
                adapter.validate_python([value])
            except ValidationError as error:
                return list(departures_of(error, skip=1))
            except (PydanticUserError, TypeError) as error:
                raise self._unchecked(expected, path, f"checking it failed: {error}") from error
            return []

        return ask

    def _unchecked(self, expected: Any, path: Steps, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"the contract {self.contract} cannot be checked at {path_to(path)}: "
            f"{briefly_named(expected)} there, and {why}; or give a JSON Schema"
        )


def departures_of(error: Any, skip: int = 0) -> Iterator[Departure]:
    """Yield what a ValidationError of pydantic tells, without so many first steps of each path."""
    for each in error.errors(include_url=False):
        came = MISSING if each["type"] == "missing" else each["input"]
        yield each["loc"][skip:], each["msg"].removeprefix("Input should be "), came


def briefly_named(annotation: Any) -> str:
    """Return an annotation at a length that an error can hold."""
    name = type_name(annotation)
    return name if len(name) <= 80 else briefly(annotation)


def _is_dataclass(cls: Any) -> bool:
    return isinstance(cls, type) and dataclasses.is_dataclass(cls)


def _holds_fields(annotation: Any) -> bool:
    """Return whether dataclasses or TypedDicts are in an annotation, for which dicts may stand."""
    cls = typing.get_origin(annotation) or annotation
    if _is_dataclass(cls) or typing.is_typeddict(cls):
        return True
    return any(map(_holds_fields, typing.get_args(annotation)))


def _is_required(cls: Any, name: str, hint: Any) -> bool:
    # Before Python 3.14, __required_keys__ does not see what is said in annotations kept as text.
    while (origin := typing.get_origin(hint)) in (*_WRAPPERS, Annotated):
        if origin is typing.Required or origin is typing.NotRequired:
            return origin is typing.Required
        hint = typing.get_args(hint)[0]
    return name in cls.__required_keys__


def _can_be_asked(cls: type) -> bool:
    """Return whether ``isinstance`` answers for a class: for a Protocol, only if that says so.

    Of ``list`` alone it does, of ``list[int]`` it does not.
    """
    if typing.get_args(cls):
        return False
    return not getattr(cls, "_is_protocol", False) or getattr(cls, "_is_runtime_protocol", False)


def _is_a(value: Any, expected: Any) -> bool:
    if expected is None:
        return value is None
    if isinstance(value, bool) and expected in (int, float):
        return False
    if expected is float and isinstance(value, int):
        return True
    return isinstance(value, expected)


def _parameters(expected: Any) -> dict[Any, Any]:
    """Return what stands for the parameters of a generic class: ``{T: int}`` of ``Box[int]``."""
    cls = typing.get_origin(expected) or expected
    given = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(expected), strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        if _is_dataclass(typing.get_origin(base)) or typing.is_typeddict(typing.get_origin(base)):
            for parameter, argument in _parameters(base).items():
                given.setdefault(parameter, _filled(argument, given))
    return given


def _filled(hint: Any, given: dict[Any, Any]) -> Any:
    """Return an annotation with arguments in place of parameters."""
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    if not given or not parameters or isinstance(hint, type):
        return hint
    return hint[tuple(given.get(each, each) for each in parameters)]
