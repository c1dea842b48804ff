"""Contracts: the shape that both sides of a handoff agreed on, and where a state departs from it.

A contract is a pydantic model, a dataclass, a JSON Schema (a dict), or a name that is kept only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.annotations import MISSING, Departure, departures, departures_of
from holdfast.core.safe_repr import shown
from holdfast.core.value_paths import path_to
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
    """Return what a contract is recorded as: its name, and for a schema also which one."""
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
    """Return the JSON Schema of a contract, where it has one, for those who have not its class."""
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
        return map(_problem, departures(contract, value))
    contract_name(contract)
    raise InvalidArgumentError(
        f"{contract!r} is no contract: give a pydantic model, a dataclass or a JSON Schema"
    )


def _pydantic_problems(model: Any, value: Any) -> Iterator[Problem]:
    import pydantic

    try:
        model.model_validate(value)
    except pydantic.ValidationError as error:
        yield from map(_problem, departures_of(error))


def _problem(departure: Departure) -> Problem:
    path, expected, came = departure
    return Problem(path_to(path), expected, "nothing" if came is MISSING else _shown(came, path))


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
            yield Problem(path_to(path), expected[:200], _shown(each.instance, path))
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
    """Return a value as JSON would have it."""
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


def _shown(value: Any, path: Sequence[Any]) -> str:
    """Return what came, in a few words; nothing of it where its name says that it is secret."""
    name = "int" if type(value) is _Long else type(value).__name__
    if isinstance(value, (bool, int, float, str)):
        if any(isinstance(part, str) and _SECRET.search(part) for part in path):
            return name
        text = shown(value)
        return f"{name} {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"
    return "None" if value is None else name
