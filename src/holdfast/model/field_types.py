"""What the values of a record's fields are, and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import partial
from operator import attrgetter
from types import NoneType
from typing import Any, Literal, NamedTuple

from holdfast.core.short_repr import brief
from holdfast.errors import InvalidArgumentError
from holdfast.ids import as_iso, microseconds, moment
from holdfast.model import checks

Form = Literal["plain", "packed", "text"]
"""``plain`` is what checksums cover and bundles hold, ``packed`` what databases do, ``text`` what
documents and JSON do."""

Both = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""What writes a value, and what reads it again."""


class FieldType(NamedTuple):
    """What the values of a field are; it never changes, as records hold them."""

    types: tuple[type, ...]
    """Exactly: a subclass of str would come back as str, and no longer fit the checksum."""
    schema: Mapping[str, Any]
    """JSON Schema of the text."""
    accept: Callable[[str, Any], Any]
    """Returns a value that a caller gave as it is kept, or raises InvalidArgumentError."""
    longest: int | None = None
    """Characters of what is stored, which is not empty either."""
    least: int | None = None
    is_rich: bool = False
    """Whether it may hold values of any type."""
    plain: Both | None = None
    packed: Both | None = None
    text: Both | None = None

    def both(self, form: Form) -> Both | None:
        """Return what writes and reads a value in that form; None where it is written as it is."""
        own: Both | None = getattr(self, form)
        return own or self.plain

    def or_none(self) -> FieldType:
        """Return the same, where None may stand for it."""

        def maybe(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda value: None if value is None else convert(value)

        def each(both: Both | None) -> Both | None:
            return None if both is None else (maybe(both[0]), maybe(both[1]))

        return self._replace(
            types=(*self.types, NoneType),
            schema={"anyOf": [self.schema, {"type": "null"}]},
            plain=each(self.plain),
            packed=each(self.packed),
            text=each(self.text),
        )

    def problem(self, what: str, value: Any) -> str:
        """Return what is wrong with a value that is stored, or nothing at all."""
        if type(value) not in self.types:
            wanted = " or ".join(t.__name__ for t in self.types).replace("NoneType", "None")
            return f"{what} is {wanted}, not {type(value).__name__}"
        if value is None:
            return ""
        if self.longest is not None and not 0 < len(value) <= self.longest:
            return f"{what} is empty, or longer than {self.longest} characters"
        if self.least is not None and not value >= self.least:  # nor is nan
            return f"{what} is a number from {self.least}"
        return ""


class Framework(str, Enum):  # noqa: UP042  (StrEnum would lose the repr users compare)
    """The framework an agent runs on.

    >>> from holdfast import Framework
    >>> Framework("langgraph")
    <Framework.LANGGRAPH: 'langgraph'>
    """

    LANGGRAPH = "langgraph"
    CREWAI = "crewai"
    AUTOGEN = "autogen"
    OPENAI_AGENTS = "openai_agents"
    CLAUDE_AGENT_SDK = "claude_agent_sdk"
    PYDANTIC_AI = "pydantic_ai"
    AGENT_FRAMEWORK = "agent_framework"
    GOOGLE_ADK = "google_adk"
    STRANDS = "strands"
    LLAMA_INDEX = "llama_index"
    AGENTSCOPE = "agentscope"
    SMOLAGENTS = "smolagents"
    CUSTOM = "custom"

    def __str__(self) -> str:
        return self.value


def checked_framework(what: str, value: Framework | str) -> Framework:
    """Return the framework of that name; InvalidArgumentError if there is none."""
    if type(value) is Framework:
        return value
    try:
        return Framework(value)
    except ValueError:
        names = ", ".join(framework.value for framework in Framework)
        raise InvalidArgumentError(f"no {what} {brief(value)}; there are {names}") from None


def _as_it_is(what: str, value: Any) -> Any:
    return value


def _moment_of(text: str) -> datetime:
    return checks.checked_moment("created_at", datetime.fromisoformat(text))


def _hex(text: str) -> str:
    return bytes.fromhex(text).hex()


_STRING: Mapping[str, Any] = {"type": "string"}
_INTEGER: Mapping[str, Any] = {"type": "integer"}

NAME = FieldType((str,), _STRING, checks.checked_name, longest=checks.LONGEST_NAME)
ID = NAME._replace(accept=checks.checked_id)
TEXT = FieldType((str,), _STRING, checks.checked_text)
VERSION = TEXT._replace(accept=checks.checked_version)
COUNT = FieldType((int,), _INTEGER, checks.checked_count, least=0)
SIZE = COUNT._replace(accept=checks.checked_size)
SECONDS = FieldType((int, float), {"type": "number"}, checks.checked_seconds, least=0)
MOMENT = FieldType(
    (datetime,),
    {"type": "string", "format": "date-time"},
    checks.checked_moment,
    plain=(microseconds, moment),
    text=(as_iso, _moment_of),
)
FRAMEWORK = FieldType(
    (Framework,),
    _STRING,
    checked_framework,
    plain=(attrgetter("_value_"), {each.value: each for each in Framework}.__getitem__),
    text=(attrgetter("_value_"), partial(checked_framework, "framework")),
)
DIGEST = FieldType((str,), _STRING, _as_it_is, packed=(bytes.fromhex, bytes.hex), text=(str, _hex))
"""A SHA-256, or as much of one as names a content."""
METADATA = FieldType(
    (dict,),
    {"type": "object", "additionalProperties": {"description": "a value in the typed form"}},
    checks.checked_metadata,
    is_rich=True,
)
