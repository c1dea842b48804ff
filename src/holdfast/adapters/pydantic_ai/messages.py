"""Messages of Pydantic AI in its own JSON form, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import PydanticSerializationError, to_json

from holdfast.errors import AdapterError, SerializationError


def loaded(messages: list[Any]) -> list[Any]:
    """Return messages as objects of Pydantic AI's, for ``message_history=``."""
    return list(read(ModelMessagesTypeAdapter, messages, "$.messages"))


def dumped(messages: Sequence[Any]) -> list[Any]:
    """Return messages in the form in which they are kept."""
    try:
        return list(written(ModelMessagesTypeAdapter, list(messages), "$.messages"))
    except SerializationError as error:
        raise SerializationError(_place_of(messages), error.problem) from error


def _place_of(messages: Sequence[Any]) -> str:
    """Return where the message is that cannot be written, and of which tool it is."""
    for i, message in enumerate(messages):
        for j, part in enumerate(message.parts):
            try:
                ModelMessagesTypeAdapter.dump_python([replace(message, parts=[part])], mode="json")
            except PydanticSerializationError:
                of_tool = f" (of {part.tool_name})" if hasattr(part, "tool_name") else ""
                return f"$.messages[{i}].parts[{j}]{of_tool}"
    return "$.messages"


def written(adapter: TypeAdapter[Any], value: Any, path: str) -> Any:
    """Return a value of Pydantic AI's as plain data; an error names where it is."""
    try:
        return adapter.dump_python(value, mode="json")
    except PydanticSerializationError as error:
        raise SerializationError(
            path, f"Pydantic AI cannot write it as JSON ({error}): have tools return plain data"
        ) from error


def read(adapter: TypeAdapter[Any], value: Any, path: str) -> Any:
    """Return a value of Pydantic AI's that was kept as plain data."""
    try:
        return adapter.validate_json(to_json(value))  # of bytes it reads base64 in JSON only
    except (ValidationError, PydanticSerializationError) as error:
        raise AdapterError(
            f"{path} is not what Pydantic AI reads ({_first(error)}): it was written by another "
            "version of it, or is damaged; restore an earlier checkpoint"
        ) from error


def _first(error: Exception) -> str:
    """Return where and why a value was refused, in one line and without the value."""
    if isinstance(error, ValidationError):
        found = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
    return str(error)
