"""Messages as AutoGen takes them."""

from __future__ import annotations

from typing import Any

from autogen_core.models import LLMMessage
from pydantic import TypeAdapter, ValidationError

from holdfast.errors import AdapterError

_MESSAGES: TypeAdapter[Any] = TypeAdapter(list[LLMMessage])


def loaded(messages: list[Any]) -> list[Any]:
    """Return what an agent keeps for its model, as objects of AutoGen's."""
    try:
        found: list[Any] = _MESSAGES.validate_python(messages)
    except ValidationError as error:
        raise AdapterError(
            f"these are no messages of AutoGen: {error.errors()[0]['msg']} at "
            f"{'.'.join(map(str, error.errors()[0]['loc']))}"
        ) from error
    return found
