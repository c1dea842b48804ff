"""What an agent's code has made: the variables of its interpreter, kept with exact types.

Modules are imported again by the agent's own interpreter, under the imports that it allows. What
is code itself (functions and classes that the agent wrote, and instances of these) is left out and
named: nothing that comes from a store is run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import ModuleType
from typing import Any

from smolagents.agent_types import PIL

from holdfast.adapters.smolagents.images import as_png, from_png
from holdfast.core.class_names import unlisted_in
from holdfast.core.codec import pack, unpack
from holdfast.core.value_paths import child_path
from holdfast.errors import AdapterError, SerializationError

_OWN = frozenset({"_print_outputs", "_operations_count", "__name__"})
_PNG, _MODULE = "$png", "$module"


class OnlyHereError(SerializationError):
    """A value is of a class that no other process has: one that the agent's code wrote, say."""


def kept_value(value: Any, path: str) -> Any:
    """Return a value as it is kept: shared with nobody, an image as its PNG."""
    if isinstance(value, PIL.Image.Image):
        return {_PNG: as_png(value, path)}
    if isinstance(value, ModuleType):
        return {_MODULE: value.__name__}
    try:
        data = pack(value)
        if name := unlisted_in(data):
            raise OnlyHereError(
                path, f"holds {name}, a class that no other process finds; give plain data instead"
            )
        return unpack(data)
    except OnlyHereError:
        raise
    except SerializationError as error:
        raise SerializationError(
            path + error.path.removeprefix("$"),
            f"{error.problem}; or leave it out: Checkpoints(exclude=[...])",
        ) from error


def is_only_here(value: Any) -> bool:
    """Return whether a value is of a class that no other process has."""
    try:
        return unlisted_in(pack(value)) is not None
    except SerializationError:  # which is told of where it is kept
        return False


def loaded_value(value: Any, path: str) -> Any:
    """Return a kept value."""
    if isinstance(value, dict) and value.keys() == {_PNG}:
        return from_png(value[_PNG], path)
    return value


def kept_values(
    values: Mapping[str, Any], path: str, exclude: Collection[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return variables as they are kept, and the names of those that are left out."""
    kept, left_out = {}, []
    for name, value in values.items():
        if name in _OWN:
            continue
        if name in exclude or (callable(value) and not isinstance(value, ModuleType)):
            left_out.append(name)
            continue
        try:
            kept[name] = kept_value(value, child_path(path, name))
        except OnlyHereError:
            left_out.append(name)
    return kept, left_out


def put_back(values: Mapping[str, Any], executor: Any, path: str) -> None:
    """Give an interpreter its variables."""
    for name, value in values.items():
        if isinstance(value, dict) and value.keys() == {_MODULE}:
            _import(executor, name, str(value[_MODULE]), child_path(path, name))
        else:
            executor.state[name] = loaded_value(value, child_path(path, name))


def _import(executor: Any, name: str, module: str, path: str) -> None:
    """Have the interpreter import a module, which it does only if the program allows it."""
    parts = module.split(".")
    if not (name.isidentifier() and all(part.isidentifier() for part in parts)):
        raise AdapterError(f"{path}: {module!r} is no module; the checkpoint is damaged")
    try:
        executor(f"import {module} as {name}")
    except Exception as error:
        raise AdapterError(
            f"{path}: the agent's code had imported {module}, and may not now: add it to "
            f"additional_authorized_imports ({error})"
        ) from error
