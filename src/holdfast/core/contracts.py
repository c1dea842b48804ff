"""Contracts: the shape that both sides of a handoff agreed on, and where a state departs from it.

A contract is a pydantic model, a dataclass, a JSON Schema (a dict), or a name that is kept only.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.safe_repr import shown
from holdfast.core.value_paths import child_path
from holdfast.errors import ContractError, InvalidArgumentError, MissingPackageError, Problem

Contract = type | Mapping[str, Any] | str
"""A class (pydantic model or dataclass), a JSON Schema, or a name."""

_SECRET = re.compile(r"secret|token|passw|api_?key|credential", re.IGNORECASE)
_SHOWN = 40


def check_contract(contract: Contract, value: Any) -> None:
    """Refuse a value that does not fit; the error names every place where it does not."""
    problems = list(_problems(contract, value))
    if problems:
        raise ContractError(contract_name(contract), problems)


def contract_name(contract: Contract) -> str:
    """What a contract is recorded as: its name, and for a schema also which one."""
    if isinstance(contract, str):
        return contract
    if isinstance(contract, Mapping):
        text = _json(contract)
        title = contract.get("title") or contract.get("$id") or "schema"
        return f"{title}@{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    if isinstance(contract, type):
        return contract.__qualname__
    raise InvalidArgumentError(
        "a contract is a pydantic model, a dataclass, a JSON Schema or a name, "
        f"not {type(contract).__name__}"
    )


def contract_schema(contract: Contract) -> dict[str, Any] | None:
    """The JSON Schema of a contract, where it has one, for those who have not its class."""
    if isinstance(contract, Mapping):
        return dict(contract)
    if hasattr(contract, "model_json_schema"):
        schema: dict[str, Any] = contract.model_json_schema()
        return schema
    return None


def _problems(contract: Contract, value: Any) -> Iterator[Problem]:
    if isinstance(contract, str):
        return iter(())
    if isinstance(contract, Mapping):
        return _schema_problems(contract, value)
    if hasattr(contract, "model_validate"):
        return _pydantic_problems(contract, value)
    if isinstance(contract, type) and dataclasses.is_dataclass(contract):
        return _typed_problems(contract, value, ())
    contract_name(contract)
    raise InvalidArgumentError(
        f"{contract!r} is no contract: give a pydantic model, a dataclass or a JSON Schema"
    )


def _pydantic_problems(model: Any, value: Any) -> Iterator[Problem]:
    import pydantic

    try:
        model.model_validate(value)
    except pydantic.ValidationError as error:
        for each in error.errors(include_url=False):
            missing = each["type"] == "missing"
            came = "nothing" if missing else _shown(each["input"], each["loc"])
            expected = each["msg"].removeprefix("Input should be ")
            yield Problem(_path(each["loc"]), expected, came)


def _schema_problems(schema: Mapping[str, Any], value: Any) -> Iterator[Problem]:
    try:
        import jsonschema  # type: ignore[import-untyped]
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
        from referencing.exceptions import Unresolvable
    except ImportError:
        raise MissingPackageError(
            "a JSON Schema as a contract", "jsonschema", "contracts"
        ) from None
    validator = jsonschema.validators.validator_for(schema)
    try:
        validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InvalidArgumentError(f"the contract is no JSON Schema: {error.message}") from error
    # Its own registry would fetch what a schema refers to, from files and over the network.
    try:
        for each in validator(_plain(schema), registry=REGISTRY).iter_errors(_plain(value)):
            path = tuple(each.absolute_path)
            expected = f"{each.validator} {_json(each.validator_value)}"
            yield Problem(_path(path), expected[:200], _shown(each.instance, path))
    except Unresolvable as error:
        raise InvalidArgumentError(
            f"the contract refers to {error.ref!r}, which it does not hold; nothing is fetched: "
            "put that under $defs"
        ) from None


def _json(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except ValueError:  # an integer of more digits than Python writes
        return shown(value)


def _plain(value: Any) -> Any:
    """A value as JSON would have it."""
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else shown(key): _plain(part) for key, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump())
    return _Long(value) if type(value) is int and value.bit_length() > 2048 else value


class _Long(int):
    """An integer that may have more digits than Python writes; a validator's messages show it."""

    def __repr__(self) -> str:
        return shown(int(self))

    __str__ = __repr__


def _typed_problems(expected: Any, value: Any, path: tuple[Any, ...]) -> Iterator[Problem]:
    """Where a value departs from an annotation."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if expected is Any or isinstance(expected, (str, typing.TypeVar)):
        return
    if origin is typing.Annotated:
        yield from _typed_problems(arguments[0], value, path)
    elif origin in (typing.Union, types.UnionType):
        if not any(not list(_typed_problems(option, value, path)) for option in arguments):
            yield _problem(expected, value, path)
    elif origin is typing.Literal:
        if not any(type(value) is type(option) and value == option for option in arguments):
            yield _problem(expected, value, path)
    elif isinstance(expected, type) and dataclasses.is_dataclass(expected):
        yield from _dataclass_problems(expected, value, path)
    elif not _is_a(value, origin or expected):
        yield _problem(expected, value, path)
    else:
        yield from _parts_problems(origin, arguments, value, path)


def _dataclass_problems(cls: Any, value: Any, path: tuple[Any, ...]) -> Iterator[Problem]:
    if not isinstance(value, (cls, Mapping)):
        yield _problem(cls, value, path)
        return
    annotations = typing.get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        if isinstance(value, Mapping) and field.name not in value:
            has_default = (
                field.default is not dataclasses.MISSING
                or field.default_factory is not dataclasses.MISSING
            )
            if field.init and not has_default:
                expected = _type_name(annotations[field.name])
                yield Problem(_path((*path, field.name)), expected, "nothing")
            continue
        part = value[field.name] if isinstance(value, Mapping) else getattr(value, field.name)
        yield from _typed_problems(annotations[field.name], part, (*path, field.name))


def _parts_problems(
    origin: Any, arguments: tuple[Any, ...], value: Any, path: tuple[Any, ...]
) -> Iterator[Problem]:
    if not arguments:
        return
    if isinstance(value, Mapping) and len(arguments) == 2:
        for key, part in value.items():
            yield from _typed_problems(arguments[0], key, (*path, key))
            yield from _typed_problems(arguments[1], part, (*path, key))
    elif origin is tuple and arguments[-1] is not Ellipsis:
        if len(value) != len(arguments):
            yield Problem(_path(path), f"{len(arguments)} elements", str(len(value)))
            return
        for index, (each, part) in enumerate(zip(arguments, value, strict=True)):
            yield from _typed_problems(each, part, (*path, index))
    elif isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, (str, bytes)):
        for index, part in enumerate(value):
            yield from _typed_problems(arguments[0], part, (*path, index))


def _is_a(value: Any, expected: Any) -> bool:
    if expected is None:
        return value is None
    if not isinstance(expected, type):
        return True  # nothing is known of such an annotation
    if isinstance(value, bool) and expected in (int, float):
        return False
    if expected is float and isinstance(value, int):
        return True
    return isinstance(value, expected)


def _problem(expected: Any, value: Any, path: tuple[Any, ...]) -> Problem:
    return Problem(_path(path), _type_name(expected), _shown(value, path))


def _type_name(annotation: Any) -> str:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "")


def _path(parts: Sequence[Any]) -> str:
    return functools.reduce(child_path, parts, "$")


def _shown(value: Any, path: Sequence[Any]) -> str:
    """What came, in a few words; nothing of it where its name says that it is secret."""
    name = "int" if type(value) is _Long else type(value).__name__
    if isinstance(value, (bool, int, float, str)):
        if any(isinstance(part, str) and _SECRET.search(part) for part in path):
            return name
        text = shown(value)
        return f"{name} {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"
    return "None" if value is None else name
